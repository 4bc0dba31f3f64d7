//! Tests of the list of sparse rows.

use super::*;
use crate::executor::readback::{read, submit};
use crate::options::Options;
use autobatch_ir::ParamId;
use autobatch_shaders::Library;
use std::time::Duration;

#[test]
fn a_failed_allocation_keeps_the_old_list_and_a_retry_succeeds() {
    let Some(gpu) = Gpu::of_tests(Options::default()) else { return };
    // Rows as lookups name them. Row 99 is clamped to the last row.
    let named: Vec<u32> = [5, 3, 5, 7, 99].into_iter().chain([3; 200]).collect();
    let memory = Memory::of_tests(&gpu, &named);
    let tables = gpu.buffer("tables", 64, Usage::STORAGE).expect("there is memory");
    let gradients = |lookups: &Range<u32>, accumulated: bool| {
        let indices = vec![([0, lookups.start, 1, 1], lookups.end - lookups.start)];
        let table = SparseTable { param: ParamId::new(0), rows: 9, indices };
        ArenaGradients::of_tests(vec![table], tables.clone(), accumulated)
    };
    let mut sparse_rows = SparseRows::default();
    sparse_rows.fit(&gpu).expect("there is memory");
    let library = Library::new(false, gpu.joins());
    let starved = {
        let mut starved = gpu.clone();
        starved.limits.max_buffer_size = 0;
        starved
    };
    let all = [0..2, 2..5, 5..205];
    for (number, lookups) in all.iter().enumerate() {
        let gradients = gradients(lookups, number > 0);
        for (gpu, is_starved) in [(&starved, true), (&gpu, false)] {
            let mut encoder = gpu.encoder();
            let builder = Builder { gpu, library: &library, cache: None };
            match sparse_rows.list(builder, &memory, &gradients, &mut encoder) {
                Ok(listing) => {
                    if is_starved {
                        // The buffer was large enough. The list is dropped before its submission.
                        continue;
                    }
                    submit(gpu, encoder.finish()).expect("executes");
                    sparse_rows.listing = listing;
                }
                Err(error) => {
                    assert!(is_starved && matches!(error, GpuError::TooLarge { .. }), "{error}")
                }
            }
        }
    }
    let listing = &sparse_rows.listing;
    assert_eq!(listing.lookups(StoreId(0)), Some(all.as_slice()));
    let words = [(listing.rows(), 0, 9 + 205)];
    let words = read(&gpu, &words, Duration::from_secs(60)).expect("reads");
    let listed: Vec<u32> = named.iter().map(|&row| row.min(8)).collect();
    let last = |row: u32| listed.iter().rposition(|&own| own == row).map_or(0, |at| at as u32 + 1);
    assert_eq!(words[..9], (0..9).map(last).collect::<Vec<_>>());
    assert_eq!(words[9..], listed);
}

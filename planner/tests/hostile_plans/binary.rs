//! Mutations of `.abp` files, most of them with a correct checksum.

use crate::{corpus, executed};
use autobatch_ir::codec::LoadError;
use autobatch_ir::plan::Plan;
use autobatch_testing::hostile::{HEADER, limit, measured, read_mutated, reseal};

fn files() -> Vec<Vec<u8>> {
    corpus().iter().map(|text| Plan::from_text(text).expect("a committed plan is valid").to_bytes()).collect()
}

#[test]
fn mutated_files_are_rejected_or_sound() {
    let mut reverse = 0;
    let verify = |error: &LoadError| matches!(error, LoadError::VerifyPlan(_));
    read_mutated(0x5eed_0003, &files(), Plan::from_bytes, verify, |plan, what| {
        reverse += usize::from(executed(&plan).is_some() && !plan.reductions.is_empty());
        let mut normal = plan.into_inner();
        let again = Plan::from_bytes(&normal.to_bytes()).expect("the written form is readable");
        assert!(*again == normal, "{what}");
        let text = normal.to_text();
        normal.normalise();
        let back = Plan::from_text(&text).unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
        assert!(back == normal, "{what}:\n{text}");
    });
    assert!(reverse > 0, "no valid plan has reductions");
}

#[test]
fn every_forged_count_takes_little_memory() {
    for bytes in files().iter().take(3) {
        for at in (HEADER..bytes.len() - 8).step_by(4) {
            for count in [1u32 << 16, 1 << 30, u32::MAX] {
                let mut forged = bytes.clone();
                forged[at..at + 4].copy_from_slice(&count.to_le_bytes());
                reseal(&mut forged);
                let (_, peak) = measured(|| Plan::from_bytes(&forged).is_ok());
                assert!(peak <= limit(forged.len()), "count {count} at {at}: {peak} bytes held");
            }
        }
    }
}

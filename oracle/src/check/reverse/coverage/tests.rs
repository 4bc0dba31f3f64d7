//! Blocks cover each element as often as a use counts.

use super::{BTreeMap, Block, covers};

fn covered(blocks: &[([u32; 4], u32)], count: u32, area: u64) -> bool {
    let block = |[r0, r1, c0, c1]: [u32; 4]| Block { uses: 0, rows: (r0, r1), columns: (c0, c1) };
    let blocks: BTreeMap<Block, u32> = blocks.iter().map(|&(own, times)| (block(own), times)).collect();
    covers(&blocks, count, area)
}

#[test]
fn each_element_is_covered_as_often_as_the_use_counts() {
    let (whole, left, right) = ([0, 2, 0, 4], [0, 2, 0, 1], [0, 2, 1, 4]);
    assert!(covered(&[(whole, 1)], 1, 8) && covered(&[(left, 1), (right, 1)], 1, 8));
    assert!(covered(&[(whole, 2)], 2, 8) && covered(&[(whole, 1), (left, 1), (right, 1)], 2, 8));
    assert!(!covered(&[(whole, 1)], 2, 8) && !covered(&[(left, 1)], 1, 8));
    // The right sum of areas, with one part twice and one part missing.
    let middle = [0, 2, 1, 2];
    assert!(!covered(&[(left, 1), ([0, 2, 1, 3], 1), (middle, 1)], 1, 8));
    assert!(!covered(&[(left, 3), (whole, 1), ([0, 1, 0, 2], 1)], 2, 8));
}

//! Tests of common stretches of arrays.

use super::*;

fn segment(buffer: usize, end: u64) -> Segment {
    Segment { buffer, base: buffer as u32, end }
}

#[test]
fn a_stretch_ends_where_any_array_changes_its_buffer() {
    let (gradient, param) = (vec![segment(3, 10), segment(4, 30)], vec![segment(0, 20), segment(1, 30)]);
    let found = stretches(30, [&gradient, &param, &Vec::new()]);
    let ends: Vec<(u64, u64, [usize; 3])> =
        found.iter().map(|stretch| (stretch.first, stretch.end, stretch.buffers)).collect();
    assert_eq!(ends, [(0, 10, [3, 0, 0]), (10, 20, [4, 0, 0]), (20, 30, [4, 1, 0])]);
}

//! Tests of aligned buffers and scratch space.

use crate::kernels::{Aligned, Scratch};

#[test]
fn buffers_are_aligned_to_cache_lines_and_oversized_ones_fail() {
    let buffer = Aligned::zeroed(33).expect("132 bytes can be allocated");
    assert_eq!(buffer.floats().as_ptr() as usize % 64, 0);
    assert!(buffer.floats().len() >= 33 && buffer.floats().iter().all(|x| *x == 0.0));
    assert!(Aligned::zeroed(usize::MAX / 4).is_none());
}

#[test]
fn scratch_grows_and_never_shrinks() {
    let mut scratch = Scratch::new();
    assert_eq!(scratch.floats(100).len(), 100);
    let before = scratch.floats(5).as_ptr();
    assert_eq!(scratch.floats(90).as_ptr(), before);
}

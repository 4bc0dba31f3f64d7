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

#[test]
fn buffers_keep_their_floats_when_they_grow() {
    let mut buffer = Aligned::default();
    let mut places = std::collections::BTreeSet::new();
    for floats in (1..2000).step_by(37) {
        let before = buffer.floats().len();
        buffer.fit_growing(floats).expect("a few KiB");
        assert!(buffer.floats().len() >= floats && buffer.floats().len() < floats + Aligned::LINE);
        assert_eq!(buffer.floats().as_ptr() as usize % 64, 0);
        assert!(buffer.floats()[..before].iter().all(|&x| x == 1.0), "{floats}: floats were lost");
        assert!(buffer.floats()[before..].iter().all(|&x| x == 0.0), "{floats}: new floats are not zero");
        buffer.floats_mut().fill(1.0);
        places.insert(buffer.floats().as_ptr() as usize);
    }
    assert!(places.len() < 10, "a buffer moved {} times", places.len());
    buffer.fit(5).expect("it is large enough");
    assert!(buffer.floats().iter().all(|&x| x == 1.0));
    assert!(buffer.fit_growing(usize::MAX - 3).is_none() && buffer.fit(usize::MAX / 2).is_none());
    assert!(buffer.floats().iter().all(|&x| x == 1.0), "a failed allocation changes nothing");
}

//! Parts that several suites share.
//!
//! * [`agreement`]: the check that every runtime computes the values of the reference.
//! * [`work_of_an_item`]: a model whose emitting takes long.
//! * [`tidy`]: rules about sources and manifests.
//! * [`dependencies`]: rules about the crates that the project builds with.

pub mod agreement;
pub mod dependencies;
pub mod tidy;

/// Takes about as long as emitting an item of a real model, so that preparing the next part on another thread pays.
pub fn work_of_an_item() {
    let step = |x: u64, _| std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    std::hint::black_box((0..20_000).fold(1, step));
}

//! Parts that several suites share.
//!
//! * [`agreement`]: the check that every runtime computes the values of the reference.
//! * [`tidy`]: rules about sources and manifests.
//! * [`dependencies`]: rules about the crates that the project builds with.

pub mod agreement;
pub mod dependencies;
pub mod tidy;

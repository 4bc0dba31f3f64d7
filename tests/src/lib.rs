//! The repository's own rules, as functions on text.
//!
//! * [`tidy`]: rules about sources and manifests.
//! * [`dependencies`]: rules about the crates that the project builds with.

pub mod dependencies;
pub mod tidy;

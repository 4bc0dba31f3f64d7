//! Data for models: readers of public corpora, generators of data of the same kind, and minibatches.
//!
//! Each corpus format has one module with `parse` (from content), `read` (from a path) and `write` (the exact
//! inverse). All return plain owned structs. For content that violates its format they return a [`DataError`],
//! which names the place. No content makes a reader panic, overflow the stack or allocate more than a small
//! multiple of the content. [`generate`] makes instances of the same structs from a seed. [`peers`] holds the
//! instances of the comparative benchmarks. [`sampling`] (re-exported from the facade) iterates over slices of
//! instances, and [`vocab`] numbers words.
//!
//! This module does not depend on graphs.

pub mod binary_tree;
pub mod conllu;
pub mod dependency;
mod error;
pub mod generate;
pub mod graphs;
pub mod idx;
pub mod lattice;
pub mod listops;
pub mod names;
pub mod parallel;
pub mod peers;
pub mod sick;
pub mod snli;
pub mod sst;
mod summary;
mod text;
pub mod vocab;
pub mod wikiner;

#[cfg(test)]
mod mutation;

pub use autobatch::{random, sampling};
pub use error::{DataError, Place};
pub use summary::Summary;

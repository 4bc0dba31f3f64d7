//! Data for models: readers of public corpora, generators of data of the same kind, and minibatches.
//!
//! One module per corpus format reads (`parse` from content, `read` from a path) and writes it
//! (`write`, the exact inverse); all return plain owned structs and, for content that is not what
//! its format promises, a [`DataError`] that names the place. No content makes a reader panic,
//! overflow the stack or allocate more than a small multiple of the content. [`generate`] makes
//! instances of the same structs from a seed. [`peers`] holds the instances of the comparative
//! benchmarks. [`sampling`] (the facade's) goes through slices of instances, [`vocab`] numbers words.
//!
//! Nothing here knows of graphs.

pub mod binary_tree;
pub mod conllu;
pub mod dependency;
mod error;
pub mod generate;
pub mod idx;
pub mod lattice;
pub mod listops;
pub mod names;
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

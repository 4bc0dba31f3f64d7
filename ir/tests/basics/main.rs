//! Tests of types, ids, weights and module bundles through the public interface.

mod bundles;
mod ids;
mod types;
mod weights;

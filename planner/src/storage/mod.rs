//! Storage: which field of which slab holds the results of each signature.
//!
//! *Needs* the clusters of a graph. *Ensures* that all values that can arrive at one operand port of one signature live in one
//! field. So a step names one field for an operand, whatever steps wrote the rows. Results that always come together (the `h` and `c` of a cell) become fields of one slab and share a row number.
//!
//! Constants do not merge fields. A zero constant often feeds both `h` and `c` of a recurrence. If the constant merged the two
//! fields, their rows would interleave, and a kernel that reads every `h` would read with a stride of two rows. Instead, each
//! field that reads the constant stores its own copy, at the cost of one row per field.
//!
//! A growing plan has one field for each type instead ([`by_type`]).
//!
//! *Cost.* One union-find operation for each pair of a port and a result that arrives there.

mod by_type;
mod classes;
mod fields;
mod slabs;
mod unify;

pub(crate) use fields::{NO_FIELD, SigStorage, Storage};
pub(crate) use slabs::Memory;

use crate::cluster::Clusters;
use crate::context::Context;
use autobatch_ir::plan::Plan;

/// Assigns a field to every result. The slabs and fields of a growing plan come first and keep their numbers.
pub(crate) fn assign_storage(
    context: &Context<'_>,
    memory: &mut Memory,
    clusters: &Clusters,
    growing: &Plan,
    storage: &mut Storage,
) {
    let graph = context.graph;
    storage.clear(graph);
    if context.is_growing() {
        storage.assign_by_type(graph, &clusters.signatures, growing);
    } else {
        memory.unions.unify(context, &clusters.arrivals);
        storage.assign_by_use(graph, &clusters.signatures, memory);
    }
}

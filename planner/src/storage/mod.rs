//! Storage: which field of which slab holds the results of each signature.
//!
//! *Needs* the clusters of a graph. *Ensures* that all values that can arrive at one operand port of one signature live in one
//! field, so that a step names one field for an operand, whatever steps wrote the rows: results that arrive at one port are
//! unified. Results that always come together (the `h` and `c` of a cell) become fields of one slab and share a row number.
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
mod slabs;
mod unify;

use crate::cluster::Clusters;
use crate::pipeline::Context;
use autobatch_ir::Type;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{Field, FieldId, Plan, Slab, SlabId};
use classes::{Classes, MakerChains};
use unify::Unions;

const NONE: u32 = u32::MAX;

/// The field of a port where no value arrives.
pub(crate) const NO_FIELD: FieldId = FieldId(NONE);

/// A block of rows that a step writes: one row for each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) slab: SlabId,
    /// Distinguishes several results of one signature in one field.
    repeat: u32,
}

/// Where the results of a signature go.
#[derive(Debug, Default)]
pub(crate) struct SigStorage {
    /// The blocks that a step writes.
    pub(crate) blocks: Vec<Block>,
    /// Per result its field and its block.
    pub(crate) results: Vec<(FieldId, u32)>,
    /// Extra fields that hold copies of a constant, with their blocks: first fields of the first block, then those of each
    /// further block.
    pub(crate) extra_fields: Vec<(FieldId, u32)>,
}

impl SigStorage {
    fn clear(&mut self) {
        self.blocks.clear();
        self.results.clear();
        self.extra_fields.clear();
    }

    /// Whether a constant has copies in several fields. Each copy is a batch of its own.
    fn is_copied(&self) -> bool {
        !self.extra_fields.is_empty()
    }

    /// How many batches write the rows of a source: one for each block of a copied constant.
    pub(crate) fn source_batches(&self) -> u32 {
        if self.is_copied() { self.blocks.len() as u32 } else { 1 }
    }

    /// The blocks that a batch writes: all, or the block of one copy of a constant.
    pub(crate) fn blocks_of(&self, copy: u32) -> &[Block] {
        if self.is_copied() { &self.blocks[copy as usize..=copy as usize] } else { &self.blocks }
    }
}

/// Slabs and fields for a graph.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    /// Slabs with the rows of an earlier plan, if any.
    pub(crate) slabs: Vec<Slab>,
    /// Fields without names.
    pub(crate) fields: Vec<Field>,
    /// Per signature; entries of earlier graphs may follow.
    pub(crate) sigs: Vec<SigStorage>,
    /// Per signature its first operand port.
    port_base: Vec<u32>,
    /// Per operand port the field that it reads, or [`NONE`].
    port_fields: Vec<FieldId>,
}

/// Scratch memory of [`assign_storage`].
#[derive(Debug, Default)]
pub(crate) struct Memory {
    unions: Unions,
    classes: Classes,
    chains: MakerChains,
    /// The classes that become one slab.
    bundle: Vec<usize>,
    /// The memory of the last product.
    pub(crate) spare: Storage,
}

/// Assigns a field to every result. The slabs and fields of an `earlier` plan come first and keep their numbers.
pub(crate) fn assign_storage(
    context: &Context<'_>,
    memory: &mut Memory,
    clusters: &Clusters,
    earlier: Option<&Plan>,
) -> Storage {
    let graph = context.graph;
    let mut storage = std::mem::take(&mut memory.spare);
    storage.clear(graph);
    if context.is_growing() {
        storage.assign_by_type(graph, &clusters.signatures, earlier);
    } else {
        memory.unions.unify(context, &clusters.arrivals);
        storage.assign_by_use(graph, &clusters.signatures, memory);
    }
    storage
}

impl Storage {
    fn clear(&mut self, graph: &GraphData) {
        let signatures = graph.sigs.items();
        self.slabs.clear();
        self.fields.clear();
        self.port_fields.clear();
        if self.sigs.len() < signatures.len() {
            self.sigs.resize_with(signatures.len(), SigStorage::default);
        }
        self.sigs.iter_mut().for_each(SigStorage::clear);
        self.port_base.clear();
        let mut ports = 0;
        for signature in signatures {
            self.port_base.push(ports);
            ports += signature.operands.len() as u32;
        }
    }

    /// The field that an operand port reads; [`NO_FIELD`] if no value arrives there.
    pub(crate) fn port_field(&self, sig: SigId, port: usize) -> FieldId {
        self.port_fields[self.port_base[sig.index()] as usize + port]
    }
}

fn nameless(slab: SlabId, ty: Type) -> Field {
    Field { slab, name: String::new(), ty }
}

//! The product of the stage: slabs, fields, and which field holds the results and operands of each signature.

use crate::ids::{BlockId, PortId};
use crate::index_vec::{Bases, IndexVec};
use crate::schedule::Batches;
use crate::spelling::field_name;
use crate::stage::{Product, Stage, print_list};
use autobatch_ir::Type;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{Field, FieldId, Slab, SlabId};
use std::fmt::{self, Write};

/// The field of a port where no value arrives.
pub(crate) const NO_FIELD: FieldId = FieldId(u32::MAX);

/// A block of rows that a step writes: one row for each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) slab: SlabId,
    /// Distinguishes several results of one signature in one field.
    pub(super) repeat: u32,
}

/// Where the results of a signature go.
#[derive(Debug, Default)]
pub(crate) struct SigStorage {
    /// The blocks that a step writes.
    pub(crate) blocks: IndexVec<BlockId, Block>,
    /// Per result its field and its block.
    pub(crate) results: Vec<(FieldId, BlockId)>,
    /// Extra fields that hold copies of a constant, with their blocks: first fields of the first block, then those of each
    /// further block.
    pub(crate) extra_fields: Vec<(FieldId, BlockId)>,
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
    pub(crate) fn blocks_of(&self, copy: BlockId) -> &[Block] {
        if self.is_copied() { &self.blocks[copy..BlockId(copy.0 + 1)] } else { &self.blocks }
    }
}

/// Slabs and fields for a graph.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    /// Slabs with the rows of an earlier plan, if any.
    pub(crate) slabs: IndexVec<SlabId, Slab>,
    /// Fields without names.
    pub(crate) fields: IndexVec<FieldId, Field>,
    /// Per signature; entries of earlier graphs may follow.
    pub(crate) sigs: IndexVec<SigId, SigStorage>,
    /// The operand ports of each signature.
    port_of: Bases<SigId, PortId>,
    /// Per operand port the field that it reads, or [`NO_FIELD`].
    pub(super) port_fields: IndexVec<PortId, FieldId>,
}

impl Storage {
    pub(super) fn clear(&mut self, graph: &GraphData) {
        let signatures = graph.sigs.items();
        self.slabs.clear();
        self.fields.clear();
        self.port_fields.clear();
        self.sigs.grow_with(signatures.len(), SigStorage::default);
        self.sigs.iter_mut().for_each(SigStorage::clear);
        self.port_of.number(signatures.iter().map(|signature| signature.operands.len()));
    }

    /// The field that the operand at a place reads; [`NO_FIELD`] if no value arrives there.
    pub(crate) fn port_field(&self, sig: SigId, place: usize) -> FieldId {
        self.port_fields[self.port_of.of(sig, place)]
    }
}

pub(super) fn nameless(slab: SlabId, ty: Type) -> Field {
    Field { slab, name: String::new(), ty }
}

/// Prints slabs with their fields, then the fields of each signature's results and operands.
impl Product for Storage {
    type After = Batches;
    const STAGE: Stage = Stage {
        name: "storage",
        turns: "signatures -> fields",
        what: "Gives results that arrive at one operand one field, and results that always come together one slab.",
    };

    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result {
        for (slab, number) in self.slabs.iter().zip(0..) {
            write!(out, "slab s{number}:")?;
            let mut fields = slab.fields.clone().map(FieldId);
            fields
                .try_for_each(|field| write!(out, " {} {}", self.spelling(field), self.fields[field].ty))?;
            out.push('\n');
        }
        for (sig, own) in self.sigs.entries().filter(|(_, own)| !own.results.is_empty()) {
            out.push_str(&graph.callee_name(sig));
            let ports = 0..graph.sigs.get(sig).operands.len();
            print_list(out, " reads ", ports.map(|port| self.spelling(self.port_field(sig, port))))?;
            print_list(out, " writes ", own.results.iter().map(|&(field, _)| self.spelling(field)))?;
            print_list(out, " copies to ", own.extra_fields.iter().map(|&(field, _)| self.spelling(field)))?;
            out.push('\n');
        }
        Ok(())
    }
}

impl Storage {
    /// A field as slab and letter; `-` for a port where no value arrives.
    fn spelling(&self, field: FieldId) -> String {
        let Some(own) = self.fields.get(field) else { return "-".to_owned() };
        let first = self.slabs[own.slab].fields.start;
        format!("s{}.{}", own.slab.0, field_name(field.index() - first as usize))
    }
}

//! Storage of a growing plan: a field for each type, those of the earlier plan first.
//!
//! Which results will arrive at one port later is unknown, and rows do not move. But an operand has one type, so all results that
//! ever arrive at its port share the field of that type.

use super::fields::{Block, NO_FIELD, Storage, nameless};
use autobatch_ir::Type;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{FieldId, Plan, Slab, SlabId, SlabKind};

impl Storage {
    pub(super) fn assign_by_type(&mut self, graph: &GraphData, used: &[SigId], growing: &Plan) {
        self.slabs.extend_from_slice(&growing.slabs);
        self.fields.extend(growing.fields.iter().map(|field| nameless(field.slab, field.ty)));
        for &sig in used {
            for &ty in &graph.sigs.get(sig).results {
                let field = self.field_of_type(graph.ty(ty));
                let slab = self.fields[field.index()].slab;
                let own = &mut self.sigs[sig.index()];
                let repeat = own.blocks.iter().filter(|block| block.slab == slab).count() as u32;
                own.results.push((field, own.blocks.len() as u32));
                own.blocks.push(Block { slab, repeat });
            }
        }
        for signature in graph.sigs.items() {
            for &ty in &signature.operands {
                let ty = Type { is_list: false, ..graph.ty(ty) };
                let known = self.fields.iter().position(|field| field.ty == ty);
                self.port_fields.push(known.map_or(NO_FIELD, |field| FieldId(field as u32)));
            }
        }
    }

    /// The field of a type, in a slab of its own if it is new.
    fn field_of_type(&mut self, ty: Type) -> FieldId {
        let known = self.fields.iter().position(|field| field.ty == ty);
        let number = known.unwrap_or_else(|| {
            let (slab, field) = (SlabId(self.slabs.len() as u32), self.fields.len() as u32);
            self.fields.push(nameless(slab, ty));
            self.slabs.push(Slab { kind: SlabKind::Value, rows: 0, fields: field..field + 1 });
            field as usize
        });
        FieldId(number as u32)
    }
}

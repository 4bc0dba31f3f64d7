//! Storage of a growing plan: a field for each type, those of the earlier plan first.
//!
//! Which results will arrive at one port later is unknown, and rows do not move. But an operand has one type, so all results that
//! ever arrive at its port share the field of that type.

use super::fields::{Block, NO_FIELD, Storage, nameless};
use autobatch_ir::Type;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::SigId;
use autobatch_ir::plan::{FieldId, Plan, Slab, SlabKind};

impl Storage {
    pub(super) fn assign_by_type(&mut self, graph: &GraphData, used: &[SigId], growing: &Plan) {
        self.slabs.extend(growing.slabs.iter().cloned());
        self.fields.extend(growing.fields.iter().map(|field| nameless(field.slab, field.ty)));
        for &sig in used {
            for &ty in &graph.sigs.get(sig).results {
                let field = self.field_of_type(graph.ty(ty));
                let slab = self.fields[field].slab;
                let own = &mut self.sigs[sig];
                let repeat = own.blocks.iter().filter(|block| block.slab == slab).count() as u32;
                let block = own.blocks.push(Block { slab, repeat });
                own.results.push((field, block));
            }
        }
        for signature in graph.sigs.items() {
            for &ty in &signature.operands {
                let ty = Type { is_list: false, ..graph.ty(ty) };
                self.port_fields.push(self.known_field(ty).unwrap_or(NO_FIELD));
            }
        }
    }

    /// The field of a type, if there is one.
    fn known_field(&self, ty: Type) -> Option<FieldId> {
        self.fields.entries().find(|(_, field)| field.ty == ty).map(|(id, _)| id)
    }

    /// The field of a type, in a slab of its own if it is new.
    fn field_of_type(&mut self, ty: Type) -> FieldId {
        self.known_field(ty).unwrap_or_else(|| {
            let field = self.fields.next_id();
            let slab = self.slabs.push(Slab { kind: SlabKind::Value, rows: 0, fields: field.0..field.0 + 1 });
            self.fields.push(nameless(slab, ty))
        })
    }
}

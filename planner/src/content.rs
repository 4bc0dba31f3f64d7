//! The identity of a kernel: what a signature says, with the bodies of the cells it calls.
//!
//! Passes make modules of their own, which come and go, so neither a module's address nor a cell's
//! number names a kernel for longer than one plan. Like the identity of a graph's structure this is
//! a hash of 128 bits that nothing else decides, and like it, it says the same in every process.

use crate::compile::Tables;
use autobatch_ir::graph::Callee;
use autobatch_ir::hash::StructureHash;
use autobatch_ir::id::{SigId, TypeId};
use std::hash::{Hash, Hasher};

/// The identity of the kernel of a signature.
pub(crate) fn of_signature(tables: Tables<'_>, sig: SigId) -> u128 {
    let mut content = Content::default();
    content.signature(tables, sig);
    content.0.value()
}

/// The structural hash as a hasher of anything.
#[derive(Default)]
struct Content(StructureHash);

impl Hasher for Content {
    fn finish(&self) -> u64 {
        self.0.value() as u64
    }

    fn write_u64(&mut self, word: u64) {
        self.0.push(word);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.push(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0.push(u64::from_le_bytes(word));
        }
    }
}

impl Content {
    fn types(&mut self, tables: Tables<'_>, ids: &[TypeId]) {
        self.write_usize(ids.len());
        ids.iter().for_each(|&id| tables.types.get(id).hash(self));
    }

    fn signature(&mut self, tables: Tables<'_>, sig: SigId) {
        let signature = tables.sigs.get(sig);
        self.types(tables, &signature.operands);
        self.types(tables, &signature.param_types);
        self.types(tables, &signature.results);
        signature.params.hash(self);
        match signature.callee {
            Callee::Op(op) => op.hash(self),
            Callee::Cell(cell) => {
                let decl = tables.module.cell_decl(cell);
                decl.name.hash(self);
                let body = &decl.body;
                (body.ports, body.noise).hash(self);
                for app in body.arena.ids() {
                    self.signature(tables, body.arena.app(app).sig);
                    let operands = body.arena.operands(app);
                    self.write_usize(operands.len());
                    operands.iter().for_each(|operand| self.write_u64(operand.word().into()));
                }
                self.write_usize(body.results.len());
                body.results.iter().for_each(|value| self.write_usize(value.index()));
            }
        }
    }
}

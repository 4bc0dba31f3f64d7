//! The content of a signature: a hash of the signature and of the bodies of the cells that it calls.
//!
//! Passes create and drop modules, so neither a module's address nor a cell's number identifies a kernel beyond one plan. Like the
//! structure of a graph, the content is a hash of 128 bits that is the same in every process.

use super::Tables;
use autobatch_ir::graph::Callee;
use autobatch_ir::hash::StructureHash;
use autobatch_ir::id::{CellId, SigId, TypeId};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// The content of a signature: that of its kernel, and the parameters that it names.
pub(crate) fn of_signature(tables: Tables<'_>, sig: SigId) -> u128 {
    let mut content = Content::default();
    content.types_of(tables, sig);
    content.callee(tables, sig)
}

/// The content of a signature's kernel. A kernel takes parameters through ports, so signatures that differ in parameters share it.
pub(crate) fn of_kernel(tables: Tables<'_>, sig: SigId) -> u128 {
    let mut content = Content::default();
    content.port_types(tables, sig);
    content.callee(tables, sig)
}

/// The structure hash as a [`Hasher`].
#[derive(Default)]
struct Content {
    hash: StructureHash,
    /// The contents of cells that bodies call. Each body is hashed once; inlining could double the work at each level of calls.
    called: HashMap<CellId, u128>,
}

impl Hasher for Content {
    fn finish(&self) -> u64 {
        self.hash.value() as u64
    }

    fn write_u64(&mut self, word: u64) {
        self.hash.push(word);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.hash.push(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.hash.push(u64::from_le_bytes(word));
        }
    }
}

impl Content {
    fn callee(mut self, tables: Tables<'_>, sig: SigId) -> u128 {
        match tables.sigs.get(sig).callee {
            Callee::Op(op) => op.hash(&mut self),
            Callee::Cell(cell) => self.body(tables, cell),
        }
        self.hash.value()
    }

    fn types(&mut self, tables: Tables<'_>, ids: &[TypeId]) {
        self.write_usize(ids.len());
        ids.iter().for_each(|&id| tables.types.get(id).hash(self));
    }

    /// Hashes a signature without its callee.
    fn types_of(&mut self, tables: Tables<'_>, sig: SigId) {
        self.port_types(tables, sig);
        tables.sigs.get(sig).params.hash(self);
    }

    fn port_types(&mut self, tables: Tables<'_>, sig: SigId) {
        let signature = tables.sigs.get(sig);
        self.types(tables, &signature.operands);
        self.types(tables, &signature.param_types);
        self.types(tables, &signature.results);
    }

    fn body(&mut self, tables: Tables<'_>, cell: CellId) {
        let decl = tables.module.cell_decl(cell);
        decl.name.hash(self);
        let body = &decl.body;
        (body.ports, body.noise).hash(self);
        for node in body.arena.ids() {
            let sig = body.arena.node(node).sig;
            self.types_of(tables, sig);
            match tables.sigs.get(sig).callee {
                Callee::Op(op) => op.hash(self),
                Callee::Cell(cell) => {
                    let called = self.called(tables, cell);
                    self.write_u64(called as u64);
                    self.write_u64((called >> 64) as u64);
                }
            }
            let operands = body.arena.operands(node);
            self.write_usize(operands.len());
            operands.iter().for_each(|operand| self.write_u64(operand.word().into()));
        }
        self.write_usize(body.results.len());
        body.results.iter().for_each(|value| self.write_usize(value.index()));
    }

    /// The content of a cell that a body calls.
    fn called(&mut self, tables: Tables<'_>, cell: CellId) -> u128 {
        if let Some(&known) = self.called.get(&cell) {
            return known;
        }
        let around = std::mem::take(&mut self.hash);
        self.body(tables, cell);
        let called = std::mem::replace(&mut self.hash, around).value();
        self.called.insert(cell, called);
        called
    }
}

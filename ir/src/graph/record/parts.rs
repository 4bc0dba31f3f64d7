//! Appending a part: several threads emit parts of one graph.
//!
//! Each thread records consecutive instances into a graph of its own. The caller appends these parts
//! in the order of the instances.
//!
//! *Ensures.* The result equals the graph that a single thread would have recorded. Both number types,
//! signatures and source lines by first appearance. Value ids, slots and cuts of the part get offsets,
//! and the structural hash continues over the appended nodes.
//!
//! *Cost.* One pass over the part, about a fifth of the time of emitting it (`examples/append_speed.rs`).

use super::{Caller, Recorder};
use crate::graph::arena::{Operand, OperandKind};
use crate::graph::data::{Cut, GraphData, hash_cut, hash_node};
use crate::graph::error::{EmitError, Fault};
use crate::id::{MAX_INDEX, NodeId, SigId, SiteId, TypeId, ValueId};

pub(super) const TOO_LARGE: &str = "the graph is full: it holds 2^30 nodes, operands and numbers";

impl Recorder {
    /// Appends a part and returns the offset of its value ids. Stores a fault and appends nothing if
    /// the part belongs to another module or the graph would become too large.
    pub(crate) fn append_part(&mut self, part: &Self, caller: Caller) -> Option<u32> {
        if part.data.module.tag != self.data.module.tag {
            let message = "the graph to append belongs to another module".to_owned();
            return self.refuse("append", message, caller);
        }
        if let (None, Some(error)) = (&self.error, &part.error) {
            self.error = Some(renumbered(error, self.data.arena.values()));
        }
        if self.is_too_large_with(&part.data) {
            return self.refuse("append", TOO_LARGE.to_owned(), caller);
        }
        let offset = self.data.arena.values() as u32;
        let ids = self.intern_tables(&part.data);
        self.append_nodes(part, &ids);
        self.append_rest(part, offset, caller);
        Some(offset)
    }

    /// Interns the types, signatures and sites of the part and returns their ids here.
    pub(super) fn intern_tables(&mut self, part: &GraphData) -> PartIds {
        let data = &mut self.data;
        let types: Vec<TypeId> = part.types.items().iter().map(|&ty| data.types.intern(ty)).collect();
        let renamed = |ids: &[TypeId]| ids.iter().map(|id| types[id.index()]).collect();
        let mut sigs = Vec::with_capacity(part.sigs.items().len());
        for signature in part.sigs.items() {
            let mut signature = signature.clone();
            signature.operands = renamed(&signature.operands);
            signature.param_types = renamed(&signature.param_types);
            signature.results = renamed(&signature.results);
            sigs.push(data.sigs.intern(signature, &data.types));
        }
        let sites = part.sites.items().iter().map(|site| data.sites.intern(site.clone())).collect();
        PartIds { types, sigs, sites }
    }

    /// Whether a part would exceed the index range.
    pub(super) fn is_too_large_with(&self, part: &GraphData) -> bool {
        let own = &self.data;
        let sizes = [
            (own.arena.len(), part.arena.len()),
            (own.arena.values(), part.arena.values()),
            (own.arena.operand_pool().len(), part.arena.operand_pool().len()),
            (own.bindings.words.len(), part.bindings.words.len()),
            (own.bindings.floats.len(), part.bindings.floats.len()),
        ];
        sizes.iter().any(|(own, part)| own + part > MAX_INDEX)
    }

    fn append_nodes(&mut self, part: &Self, ids: &PartIds) {
        let data = &mut self.data;
        let (values, words, floats) =
            (data.arena.values(), data.bindings.words.len() as u32, data.bindings.floats.len() as u32);
        let shifted = |operand: &Operand| match operand.kind() {
            Some(OperandKind::Value(id)) => Operand::value(ValueId::new(id.index() + values)),
            Some(OperandKind::Index(slot)) => Operand::index(slot + words),
            Some(OperandKind::Data(slot)) => Operand::data(slot + floats),
            None => *operand,
        };
        let mut cuts = part.data.cuts.iter().peekable();
        let base = data.arena.len() as u32;
        // Nodes before the first instance of the part belong to no instance here.
        let prefix = part.data.cuts.first().map_or(part.data.arena.len(), |cut| cut.first as usize);
        if prefix > 0 && data.cuts.last().is_some_and(|cut| cut.key.is_some()) {
            let cut = Cut { first: base, key: None };
            hash_cut(&mut data.hash, cut);
            data.cuts.push(cut);
        }
        for node in part.data.arena.ids() {
            while let Some(cut) = cuts.next_if(|cut| cut.first as usize <= node.index()) {
                let cut = Cut { first: base + cut.first, key: cut.key };
                hash_cut(&mut data.hash, cut);
                data.cuts.push(cut);
            }
            ids.append(data, &part.data, node, shifted);
        }
        for cut in cuts {
            let cut = Cut { first: base + cut.first, key: cut.key };
            hash_cut(&mut data.hash, cut);
            data.cuts.push(cut);
        }
        data.bindings.words.extend_from_slice(&part.data.bindings.words);
        data.bindings.floats.extend_from_slice(&part.data.bindings.floats);
    }

    /// Appends outputs and marks, and takes over the current instance of the part.
    fn append_rest(&mut self, part: &Self, offset: u32, caller: Caller) {
        let shifted = |value: ValueId| ValueId::new(value.index() + offset as usize);
        let nodes = self.data.arena.len() - part.data.arena.len();
        for output in &part.data.outputs {
            self.add_output(&output.name, shifted(output.value), output.kind, caller);
        }
        self.data.shared.extend(part.data.shared.iter().map(|&value| shifted(value)));
        self.data.alone.extend(part.data.alone.iter().map(|node| NodeId::new(node.index() + nodes)));
        if !part.data.cuts.is_empty() || !part.data.arena.is_empty() {
            self.interrupt();
            self.interrupted.extend(&part.interrupted);
            self.instance = part.instance;
            self.noise_ordinal = part.noise_ordinal;
        }
    }
}

/// The error with the value ids of its operands increased by the number of earlier values.
fn renumbered(error: &EmitError, before: usize) -> EmitError {
    let mut fault = Fault::clone(error);
    for operand in &mut fault.operands {
        let number = operand.strip_prefix('%').and_then(|rest| rest.split_once(':'));
        if let Some((Ok(number), ty)) = number.map(|(number, ty)| (number.parse::<usize>(), ty)) {
            *operand = format!("%{}:{ty}", number + before);
        }
    }
    fault.into()
}

/// The ids in this graph of the types, signatures and sites of a part.
#[derive(Debug)]
pub(super) struct PartIds {
    pub(super) types: Vec<TypeId>,
    sigs: Vec<SigId>,
    sites: Vec<SiteId>,
}

impl PartIds {
    /// Appends a node of the part with other operands. Returns the index of its first result.
    pub(super) fn append(
        &self,
        data: &mut GraphData,
        part: &GraphData,
        node: NodeId,
        renamed: impl Fn(&Operand) -> Operand,
    ) -> u32 {
        let mark = data.arena.operand_mark();
        part.arena.operands(node).iter().for_each(|operand| data.arena.push_operand(renamed(operand)));
        let recorded = part.arena.node(node);
        let (sig, site) = (self.sigs[recorded.sig.index()], self.sites[recorded.site.index()]);
        hash_node(&mut data.hash, data.sigs.hash(sig), &data.arena.operand_pool()[mark as usize..]);
        data.arena.push(sig, mark, &data.sigs.get(sig).results, site)
    }
}

//! Clustering: which applications are needed, and which may share a batch.
//!
//! *Needs* a verified graph and the values that are wanted. *Ensures* a node for every application
//! that a wanted value depends on and that takes a step of its own, with a dense type number: two
//! nodes of one type have one signature and take each index from the same kind of place (bound or
//! computed), so one kernel with one kind of operand serves them all. Lists are no nodes: their
//! elements become operands. Inputs, constants and parameters are no nodes either: they wait for
//! nothing, so they are played first, a signature at a time.
//!
//! *Cost.* Linear in applications and operands.

use autobatch_ir::graph::{Callee, GraphData, Op, Operand, OperandKind};
use autobatch_ir::id::{AppId, SigId, ValueId};
use std::collections::BTreeMap;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// The nodes of a graph, ready for a scheduler.
#[derive(Debug, Default)]
pub(crate) struct Clusters {
    /// The application of each node, ascending.
    pub(crate) nodes: Vec<AppId>,
    /// The node of each application, or [`NONE`].
    pub(crate) node_of: Vec<u32>,
    /// The type of each node.
    pub(crate) ty: Vec<u32>,
    /// The signature of each type.
    pub(crate) types: Vec<SigId>,
    /// Where each node's operands begin, and where the last one's end.
    pub(crate) operand_start: Vec<u32>,
    /// Operand nodes.
    pub(crate) operands: Vec<u32>,
    /// Nodes that must be batches of their own, ascending.
    pub(crate) alone: Vec<u32>,
    /// Needed sources, a signature at a time.
    pub(crate) sources: Vec<Vec<AppId>>,
    needed: Vec<bool>,
    type_of_sig: Vec<u32>,
}

/// Whether an application only names numbers that are there before the first step.
pub(crate) fn is_source(callee: Callee) -> bool {
    matches!(callee, Callee::Op(Op::Input(_) | Op::Fill { .. } | Op::Param))
}

impl Clusters {
    /// Fills the clusters anew; memory is kept.
    pub(crate) fn fill(&mut self, graph: &GraphData, wanted: &[ValueId]) {
        self.mark_needed(graph, wanted);
        self.nodes.clear();
        self.ty.clear();
        self.types.clear();
        self.operands.clear();
        self.operand_start.clear();
        self.node_of.clear();
        self.node_of.resize(graph.arena.len(), NONE);
        self.type_of_sig.clear();
        self.type_of_sig.resize(graph.sigs.items().len(), NONE);
        let mut mixed = BTreeMap::new();
        let mut sources: BTreeMap<SigId, Vec<AppId>> = BTreeMap::new();
        for id in graph.arena.ids() {
            if !self.needed[id.index()] {
                continue;
            }
            let sig = graph.arena.app(id).sig;
            let signature = graph.sigs.get(sig);
            if is_source(signature.callee) {
                sources.entry(sig).or_default().push(id);
                continue;
            }
            if signature.is_list() {
                continue;
            }
            self.node_of[id.index()] = self.nodes.len() as u32;
            self.nodes.push(id);
            let ty = self.type_number(graph, id, sig, &mut mixed);
            self.ty.push(ty);
            self.operand_start.push(self.operands.len() as u32);
            self.push_operands(graph, id);
        }
        self.operand_start.push(self.operands.len() as u32);
        self.sources.clear();
        self.sources.extend(sources.into_values());
        self.alone.clear();
        self.alone.extend(graph.alone.iter().map(|id| self.node_of[id.index()]).filter(|&node| node != NONE));
        self.alone.sort_unstable();
        self.alone.dedup();
    }

    fn mark_needed(&mut self, graph: &GraphData, wanted: &[ValueId]) {
        self.needed.clear();
        self.needed.resize(graph.arena.len(), false);
        for &value in wanted {
            self.needed[graph.arena.producer(value).index()] = true;
        }
        for id in graph.arena.ids().rev() {
            if self.needed[id.index()] {
                for value in graph.arena.operands(id).iter().filter_map(|operand| operand.as_value()) {
                    self.needed[graph.arena.producer(value).index()] = true;
                }
            }
        }
    }

    /// The type of a node: its signature, unless some of its indices are computed and some bound.
    fn type_number(
        &mut self,
        graph: &GraphData,
        id: AppId,
        sig: SigId,
        mixed: &mut BTreeMap<(SigId, [u64; 2], Vec<u64>), u32>,
    ) -> u32 {
        let operands = graph.arena.operands(id);
        let is_bound = |operand: &Operand| !matches!(operand.kind(), Some(OperandKind::Value(_)));
        // Next to no application has more than 128 operands, so next to none allocates.
        let mut bound = [0u64; 2];
        let mut more = Vec::new();
        for (word, places) in operands.chunks(64).enumerate() {
            let mask =
                (0..).zip(places).fold(0, |mask, (bit, operand)| mask | u64::from(is_bound(operand)) << bit);
            match bound.get_mut(word) {
                Some(bound) => *bound = mask,
                None => more.push(mask),
            }
        }
        let known = if bound == [0; 2] && more.iter().all(|&mask| mask == 0) {
            &mut self.type_of_sig[sig.index()]
        } else {
            mixed.entry((sig, bound, more)).or_insert(NONE)
        };
        if *known == NONE {
            *known = self.types.len() as u32;
            self.types.push(sig);
        }
        *known
    }

    fn push_operands(&mut self, graph: &GraphData, id: AppId) {
        for operand in graph.arena.operands(id) {
            let Some(value) = operand.as_value() else { continue };
            let producer = graph.arena.producer(value);
            match self.node_of[producer.index()] {
                NONE if graph.signature(producer).is_list() => {
                    for item in graph.arena.operands(producer).iter().filter_map(|item| item.as_value()) {
                        let node = self.node_of[graph.arena.producer(item).index()];
                        if node != NONE {
                            self.operands.push(node);
                        }
                    }
                }
                NONE => {}
                node => self.operands.push(node),
            }
        }
    }
}

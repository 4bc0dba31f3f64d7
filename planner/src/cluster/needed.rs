//! The nodes that the roots of a plan need.

use crate::context::Context;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ValueId};

/// Marks of needed nodes.
#[derive(Debug, Default)]
pub(super) struct Needed {
    /// Per node whether a root needs it and it is not there yet.
    marks: Vec<bool>,
    /// Nodes whose operands are not marked yet.
    pending: Vec<NodeId>,
    /// The lists among the nodes that a growing plan marked.
    lists: Vec<NodeId>,
    /// The growing plan that these marks belong to, if any. Marks of nodes before the first stay valid: they are not needed.
    growing: Option<Growing>,
}

/// A growing plan as the last call saw it.
#[derive(Clone, Copy, Debug)]
struct Growing {
    /// Its number.
    plan: u64,
    /// The first node that it needed.
    first: usize,
}

impl Needed {
    pub(super) fn marks(&self) -> &[bool] {
        &self.marks
    }

    /// Marks what the roots need and lists in `reused` the existing values that needed nodes read besides lists, once for each read. Returns
    /// the first node whose facts may differ from the call before.
    pub(super) fn mark(&mut self, context: &Context<'_>, reused: &mut Vec<ValueId>) -> usize {
        reused.clear();
        match context.existing.plan() {
            None => {
                self.growing = None;
                self.mark_all(context.graph, context.roots);
                0
            }
            Some(plan) => self.mark_new(context, plan, reused),
        }
    }

    /// Marks what a growing plan needs and does not have.
    fn mark_new(&mut self, context: &Context<'_>, plan: u64, reused: &mut Vec<ValueId>) -> usize {
        let Context { graph, existing, .. } = *context;
        let Self { marks, pending, lists, growing } = self;
        let last = growing.filter(|growing| growing.plan == plan).map_or(0, |growing| growing.first);
        marks.truncate(last);
        marks.resize(graph.arena.len(), false);
        let mut first = marks.len();
        lists.clear();
        let mut mark = |node: NodeId, pending: &mut Vec<NodeId>| {
            if !std::mem::replace(&mut marks[node.index()], true) {
                pending.push(node);
                if graph.signature(node).is_list() {
                    lists.push(node);
                } else {
                    first = first.min(node.index());
                }
            }
        };
        for &value in context.roots.iter().filter(|&&value| existing.get(value).is_none()) {
            mark(graph.arena.producer(value), pending);
        }
        while let Some(node) = pending.pop() {
            let is_list = graph.signature(node).is_list();
            for value in graph.arena.operands(node).iter().filter_map(|operand| operand.as_value()) {
                match existing.get(value) {
                    // Lists find their existing items without help.
                    Some(_) if is_list => {}
                    Some(_) => reused.push(value),
                    None if existing.has_list(value) => {}
                    None => mark(graph.arena.producer(value), pending),
                }
            }
        }
        // A list that grew is as old as its first items, and the walk need not begin there: it finds lists by their signatures.
        lists.iter().for_each(|list| marks[list.index()] = false);
        *growing = Some(Growing { plan, first });
        first.min(last)
    }

    /// Marks everything that the roots need.
    ///
    /// A first pass marks every node that any node reads, needed or not. If this marks all nodes, all are needed: the last node is
    /// then a root, and each other node has a later reader. Only otherwise a second pass walks backwards.
    fn mark_all(&mut self, graph: &GraphData, roots: &[ValueId]) {
        self.mark_roots(graph, roots);
        if let Some(last) = graph.arena.values().checked_sub(1).map(ValueId::new) {
            let marks = self.marks.as_mut_slice();
            let last_node = graph.arena.producer(last).index();
            let is_root = marks[last_node];
            for operand in graph.arena.operand_pool() {
                // An operand that is no value marks the last node, whose mark is restored below: a branch would be hard to predict.
                marks[graph.arena.producer(operand.as_value().unwrap_or(last)).index()] = true;
            }
            marks[last_node] = is_root;
        }
        // No early exit: nearly always all are needed, and this loop vectorizes.
        if !self.marks.iter().fold(true, |all, &needed| all & needed) {
            self.mark_roots(graph, roots);
            self.mark_backwards(graph);
        }
    }

    /// Marks the producers of the roots and nothing else.
    fn mark_roots(&mut self, graph: &GraphData, roots: &[ValueId]) {
        self.marks.clear();
        self.marks.resize(graph.arena.len(), false);
        for &value in roots {
            self.marks[graph.arena.producer(value).index()] = true;
        }
    }

    /// Marks the producers of everything that marked nodes read.
    fn mark_backwards(&mut self, graph: &GraphData) {
        let (nodes, pool) = (graph.arena.nodes(), graph.arena.operand_pool());
        let marks = self.marks.as_mut_slice();
        let mut end = pool.len();
        for (index, node) in nodes.iter().enumerate().rev() {
            let start = node.operands as usize;
            if marks[index] {
                for value in pool[start..end].iter().filter_map(|operand| operand.as_value()) {
                    marks[graph.arena.producer(value).index()] = true;
                }
            }
            end = start;
        }
    }
}

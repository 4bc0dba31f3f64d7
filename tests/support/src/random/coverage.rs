//! Counts the constructs in a set of graphs, so a test can name missing ones.

mod cells;
mod forms;

use crate::op_table::Kind;
use autobatch_ir::graph::{Arena, Callee, Op, OperandKind, OutputKind, ParamArg, Signature};
use autobatch_ir::{DType, GraphData, INDEX, NodeId, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// Counts of the constructs in graphs, including the bodies of cells.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// The number of nodes per kind of op.
    pub ops: BTreeMap<Kind, usize>,
    /// The number of graphs in which each fact holds.
    pub facts: BTreeMap<&'static str, usize>,
}

/// Everything that [`Coverage`] counts besides ops.
pub const FACTS: &[&str] = &[
    "a list of no values",
    "a list of one value",
    "a list of six values or more",
    "a list that grew by two items",
    "two lists that grew from one",
    "a value read more than three times",
    "a value that nothing reads",
    "a value read twice by one node",
    "a parameter used by two nodes",
    "a cell that calls a cell",
    "a call of a noisy cell",
    "two names of one body",
    "a list port",
    "an index port",
    "an instance without nodes",
    "an instance of one node",
    "a common prefix",
    "a common stretch after instances",
    "a value of the prefix read by an instance",
    "an output",
    "a loss",
    "a node in a batch of one",
    "an affine of rows",
    "an affine of two parts",
    "a table row at a computed index",
    "a parameter stored in 16 bits",
    "an operand bound directly",
    "rank 0",
    "rank 1",
    "rank 2",
    "rank 3",
    "rank 4",
    "i32 values",
    "u32 values",
    "bool values",
    "a row of more than sixteen elements",
    "an elementwise op of a scalar",
    "a select with a scalar branch",
    "a select under a scalar condition",
    "a clamp without an end",
    "a broadcast of an inner axis",
    "a transpose of rank 3",
    "a transpose of rank 4",
    "a transpose of words",
    "a concat along a middle axis",
    "a concat along the outermost of several axes",
    "a concat of words",
    "a split along a middle axis",
    "a split along the outermost of several axes",
    "a split of words",
    "a slice along a middle axis",
    "a slice along the outermost of several axes",
    "a slice of words",
    "a stack of integers",
    "a stack of truth values",
    "a pick of integers",
    "a pick of truth values",
    "rows of one element",
    "a layer norm without eps",
    "labels of a block of rows",
    "a stretch of a product behind the first row",
    "a stretch of a product of rows",
    "a stretch of a product of two parts",
    "a list of scalars",
    "a list of matrices",
    "a list that two nodes read",
    "one list in two places of a node",
    "one list in two places of a call",
    "an empty list given to a cell",
    "a cell without ports",
    "a port of words",
    "a cell that returns a value twice",
    "a cell that returns a port",
    "a cell that returns a reshaped value",
    "a cell that returns words",
    "calls of one cell in three instances",
];

impl Coverage {
    /// Counts a graph.
    pub fn add(&mut self, graph: &GraphData) {
        let mut seen = BTreeSet::new();
        self.add_arena(graph, &graph.arena, &mut seen);
        cells::of_graph(graph, &mut seen);
        for decl in &graph.module.cells {
            self.add_arena(graph, &decl.body.arena, &mut seen);
            cells::of_body(graph, &decl.body, &mut seen);
            let calls = decl
                .body
                .arena
                .nodes()
                .iter()
                .any(|node| matches!(graph.module.sigs.get(node.sig).callee, Callee::Cell(_)));
            note(&mut seen, calls, "a cell that calls a cell");
            let ports = || decl.body.port_types().map(|ty| graph.ty(ty));
            note(&mut seen, ports().any(|ty| ty.is_list), "a list port");
            note(&mut seen, !decl.body.noise && ports().any(|ty| ty == INDEX), "an index port");
        }
        let exports = graph.module.exports.len();
        note(&mut seen, exports > graph.module.cells.len(), "two names of one body");
        note(
            &mut seen,
            graph.module.params.iter().any(|p| p.ty.dtype == DType::BF16),
            "a parameter stored in 16 bits",
        );
        note(&mut seen, !graph.alone.is_empty(), "a node in a batch of one");
        for output in &graph.outputs {
            let fact = if output.kind == OutputKind::Loss { "a loss" } else { "an output" };
            seen.insert(fact);
        }
        stretches(graph, &mut seen);
        for fact in seen {
            *self.facts.entry(fact).or_default() += 1;
        }
    }

    /// Returns the ops and facts that occur in no graph.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let ops = Kind::ALL.iter().filter(|&kind| !self.ops.contains_key(kind));
        let facts = FACTS.iter().filter(|&fact| !self.facts.contains_key(fact));
        ops.map(|kind| format!("{kind:?}")).chain(facts.map(|&fact| fact.to_owned())).collect()
    }

    fn add_arena(&mut self, graph: &GraphData, arena: &Arena, seen: &mut BTreeSet<&'static str>) {
        let mut readers = vec![0usize; arena.values()];
        let mut params: BTreeMap<(bool, usize), usize> = BTreeMap::new();
        for id in arena.ids() {
            let signature = graph.sigs.get(arena.node(id).sig);
            if let Callee::Op(op) = signature.callee {
                *self.ops.entry(Kind::of(&op)).or_default() += 1;
            }
            note_node(graph, arena, id, signature, seen);
            forms::of_node(graph, arena, id, signature, seen);
            let mut own = BTreeSet::new();
            for value in arena.operands(id).iter().filter_map(|operand| operand.as_value()) {
                readers[value.index()] += 1;
                note(seen, !own.insert(value), "a value read twice by one node");
            }
            let used: BTreeSet<(bool, usize)> = signature.params.iter().map(|&arg| number(arg)).collect();
            used.into_iter().for_each(|param| *params.entry(param).or_default() += 1);
        }
        note(seen, readers.iter().any(|&count| count > 3), "a value read more than three times");
        note(seen, readers.contains(&0), "a value that nothing reads");
        let lists =
            (0..arena.values()).map(ValueId::new).filter(|&value| graph.ty(arena.type_of(value)).is_list);
        note(seen, lists.into_iter().any(|list| readers[list.index()] > 1), "a list that two nodes read");
        note(seen, params.values().any(|&count| count > 1), "a parameter used by two nodes");
        for &ty in arena.value_types() {
            const RANKS: [&str; 5] = ["rank 0", "rank 1", "rank 2", "rank 3", "rank 4"];
            let ty = graph.ty(ty);
            seen.insert(RANKS[ty.shape.rank()]);
            note(seen, ty.dtype == DType::I32, "i32 values");
            note(seen, ty.dtype == DType::U32, "u32 values");
            note(seen, ty.dtype == DType::Bool, "bool values");
        }
    }
}

fn number(arg: ParamArg) -> (bool, usize) {
    match arg {
        ParamArg::Module(id) => (false, id.index()),
        ParamArg::Port(port) => (true, port as usize),
    }
}

fn note(seen: &mut BTreeSet<&'static str>, holds: bool, fact: &'static str) {
    debug_assert!(FACTS.contains(&fact), "a fact must be listed: {fact}");
    if holds {
        seen.insert(fact);
    }
}

fn note_node(
    graph: &GraphData,
    arena: &Arena,
    id: NodeId,
    signature: &Signature,
    seen: &mut BTreeSet<&'static str>,
) {
    let operands = arena.operands(id);
    match signature.callee {
        Callee::Op(Op::List) => {
            note(seen, operands.is_empty(), "a list of no values");
            note(seen, operands.len() == 1, "a list of one value");
            note(seen, operands.len() >= 6, "a list of six values or more");
        }
        Callee::Op(Op::Append) => {
            let from = operands[0].as_value().expect("lists are values");
            let producer = arena.producer(from);
            note(seen, arena.appended(producer, &graph.sigs).is_some(), "a list that grew by two items");
            let mut others =
                arena.ids().take(id.index()).filter_map(|other| arena.appended(other, &graph.sigs));
            note(seen, others.any(|(other, _)| other == from), "two lists that grew from one");
        }
        Callee::Op(Op::Affine { .. }) => {
            let rows = graph.ty(signature.operands[0]).shape.rank() == 2;
            note(seen, rows, "an affine of rows");
            note(seen, operands.len() == 2, "an affine of two parts");
        }
        Callee::Op(Op::Lookup) => {
            let computed = operands[0].as_value().is_some_and(|value| {
                let callee = graph.sigs.get(arena.node(arena.producer(value)).sig).callee;
                callee == Callee::Op(Op::ArgMax)
            });
            note(seen, computed, "a table row at a computed index");
        }
        Callee::Cell(_) => {
            let noisy = graph.module.noise_ports(signature) > 0;
            note(seen, noisy, "a call of a noisy cell");
        }
        Callee::Op(_) => {}
    }
    let is_input = matches!(signature.callee, Callee::Op(Op::Input(_) | Op::Dropout { .. }));
    let bound = operands.iter().any(|operand| matches!(operand.kind(), Some(OperandKind::Index(_))));
    note(seen, bound && !is_input, "an operand bound directly");
}

fn stretches(graph: &GraphData, seen: &mut BTreeSet<&'static str>) {
    let prefix = graph.cuts.first().map_or(0, |cut| cut.first as usize);
    note(seen, prefix > 0 && !graph.cuts.is_empty(), "a common prefix");
    for (key, nodes) in graph.stretches() {
        match key {
            None => note(seen, nodes.start > 0, "a common stretch after instances"),
            Some(_) => {
                note(seen, nodes.is_empty(), "an instance without nodes");
                note(seen, nodes.len() == 1, "an instance of one node");
                let reads = nodes.clone().map(NodeId::new).flat_map(|id| graph.arena.operands(id));
                let from_prefix = reads
                    .filter_map(|operand| operand.as_value())
                    .any(|value| graph.arena.producer(value).index() < prefix);
                note(seen, from_prefix, "a value of the prefix read by an instance");
            }
        }
    }
}

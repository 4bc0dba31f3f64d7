//! Outlining: a run of ops that repeats everywhere becomes a call of a new cell.
//!
//! A model without cells emits the same dozen ops for every node of every tree. As ops, each is a batch at every depth; as a cell,
//! they are one batch. This pass finds such runs and declares the cells.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value with readers outside of its run, because the cell holds the same
//! ops in the same order. Other values of a run lose their names. The new module begins with the old declarations. Parameters become
//! arguments, so both directions and all layers of a recurrent model call one cell.
//!
//! *How.* A run is a contiguous stretch of nodes of one instance; sources (inputs, constants, parameters) and lists of outside values
//! do not interrupt it. Replacing a contiguous stretch by a call at its last node cannot create a cycle and moves no node before its
//! operands. The search starts from a *head*: it follows all nodes with the signature of the head in parallel, and the run grows
//! while *all* of them continue alike: same signature, and same operands from inside the run (by relative position). So either all
//! nodes with the signature of the head are replaced, or none. A run also ends
//! * before a node that reads no value of the run, because it may wait for other nodes;
//! * before a *heavy* op (a product, a lookup, a fold over lists) if its signature also occurs elsewhere: they could share a batch;
//! * before a heavy op that reads a value of the run which is also read later. The state of a recurrence flows on, and a product of
//!   that state (an output layer, the next layer) may run for all steps at once;
//! * before calls of cells, because the model chose their grain; before dropout, whose noise keys belong to the graph; before marked
//!   nodes; and after [`MAX_RUN`](find::MAX_RUN) nodes.
//!
//! Outside operands become ports, and operands that are equal in all occurrences share a port. Constants that are equal in all
//! occurrences move into the cell.
//!
//! *Cost.* Every node is visited at most once inside a run and once as its end.
//!
//! *Gradients.* A value with several readers in a run gets one gradient from the cell instead of one from each op, so sums may round
//! differently. The pass is off in training by default.
//!
//! ```text
//! %2 = affine[@w](%0)  %3 = tanh(%2)      %4 = affine[@w](%3)  %5 = tanh(%4)
//! cell @run.affine[@0](%0) { %1 = affine[@0](%0)  %2 = tanh(%1)  return %2 }
//! %2 = call @run.affine[@w](%0)           %3 = call @run.affine[@w](%2)
//! ```

mod cell;
mod find;

use super::pass::{Change, Context, count};
use autobatch_ir::graph::GraphData;
use autobatch_ir::graph::rebuild::{Extension, Rebuild};
use autobatch_ir::id::ValueId;
use cell::declare;
use find::{Finder, NodeRun};

/// The rewrite of a node.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Stays,
    /// A node of a run, but not the last.
    Inside,
    /// The last node of this occurrence of this run.
    Last {
        run: u32,
        occurrence: u32,
    },
}

/// Replaces repeated runs by calls.
pub(crate) fn outline(graph: &GraphData, context: &Context<'_>) -> Option<Change> {
    let runs = Finder::new(graph, context).runs();
    if runs.is_empty() {
        return None;
    }
    let mut fates = vec![Fate::Stays; graph.arena.len()];
    for (number, run) in runs.iter().enumerate() {
        run.members.iter().flatten().for_each(|node| fates[node.index()] = Fate::Inside);
        for (occurrence, node) in run.last().iter().enumerate() {
            fates[node.index()] = Fate::Last { run: number as u32, occurrence: occurrence as u32 };
        }
    }
    let before = graph.module.cells.len();
    let mut extension = Extension::new(graph);
    let calls: Vec<_> = runs.iter().map(|run| declare(&mut extension, graph, run)).collect();
    let module = extension.finish();
    let cells = module.cells.len() - before;
    let mut rebuild = Rebuild::over(graph, module);
    let sigs: Vec<_> = calls.into_iter().map(|signature| rebuild.sig(signature)).collect();
    let mut operands = Vec::new();
    for node in graph.arena.ids() {
        match fates[node.index()] {
            Fate::Stays => {
                rebuild.copy(node);
            }
            Fate::Inside => {}
            Fate::Last { run, occurrence } => {
                let (number, occurrence) = (run as usize, occurrence as usize);
                let run = &runs[number];
                operands.clear();
                operands.extend(run.ports.iter().map(|&port| run.operand(graph, port, occurrence)));
                let site = graph.arena.node(run.heads()[occurrence]).site;
                let first = rebuild.apply(node, sigs[number], &operands, site);
                for (place, &(member, result)) in run.results.iter().enumerate() {
                    let old = graph.arena.results(run.members[member][occurrence]).start + result as usize;
                    rebuild.name(ValueId::new(old), ValueId::new(first.index() + place));
                }
            }
        }
    }
    let occurrences: usize = runs.iter().map(NodeRun::occurrences).sum();
    let (graph, renaming) = rebuild.finish();
    let note = format!("{} for {}", count(cells, "cell"), count(occurrences, "run"));
    Some(Change { graph, renaming, note })
}

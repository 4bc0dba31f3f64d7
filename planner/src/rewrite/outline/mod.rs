//! Outlining: a run of ops that is repeated everywhere becomes a call of a new cell.
//!
//! A model that emits plain ops writes the same dozen nodes for every node of every tree. As
//! ops, each is a batch of its own at every depth; as a cell, they are one. This pass finds such
//! runs and gives the planner the cell that the model did not write.
//!
//! *Needs* a verified graph. *Ensures* the same bits of every value that is read outside of its run:
//! the cell holds the same ops in the same order. A value inside a run has no name afterwards. The
//! new module begins with everything the graph knew; parameters are lifted to arguments, so that
//! both directions and all layers of a recurrent model call one cell.
//!
//! *How.* A run is an unbroken stretch of nodes of one instance; sources (inputs, constants,
//! parameters) and lists of values from outside do not break it. Replacing an unbroken stretch by a
//! call in its last place can make no cycle and moves nothing before what it reads. A run is found
//! from its *head*: all nodes with the head's signature are followed in step, and the run
//! grows while *all* of them do the same: the same signature, the same operands where these come
//! from the run (by relative place), anything where they come from outside. What not all of them do
//! ends the run, so either all nodes of the head's signature are replaced or none. A run
//! ends, too,
//! * before a node that reads nothing of the run: it may wait for other things;
//! * before a *heavy* op (a product, a lookup, a fold over lists) if others of its signature are
//!   elsewhere: they could share a batch with it;
//! * before a heavy op that reads a value of the run which is read later as well: the state of a
//!   recurrence flows on, and what is computed *from* the state (an output layer, the next layer)
//!   must not be tied to it, for it may be done for all steps at once;
//! * before calls of cells: whoever wrote cells chose the grain; before dropout, whose noise keys
//!   belong to the graph; before marked nodes; and after [`MAX_RUN`] nodes.
//!
//! Operands from outside become ports, equal ones one port if they are equal in all occurrences;
//! constants that all occurrences agree on move into the cell.
//!
//! *Cost.* Each node is looked at once as part of a run and at most once as what ends one.
//!
//! *Gradients.* A value read by several ops of a run gets one contribution from the cell instead of
//! one from each op, so sums may round differently: off in training unless asked for.
//!
//! ```text
//! %2 = affine[@w](%0)  %3 = tanh(%2)      %4 = affine[@w](%3)  %5 = tanh(%4)
//! cell @run.affine[@0](%0) { %1 = affine[@0](%0)  %2 = tanh(%1)  return %2 }
//! %2 = call @run.affine[@w](%0)           %3 = call @run.affine[@w](%2)
//! ```

mod cell;
mod find;

use super::{Change, Context, count};
use autobatch_ir::graph::GraphData;
use autobatch_ir::graph::rebuild::{Extension, Rebuild};
use autobatch_ir::id::{NodeId, ValueId};
use find::{Finder, Run};

/// The most nodes that a run has.
pub(crate) const MAX_RUN: usize = 256;

/// What becomes of a node.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Stays,
    /// It is inside the run and not its last.
    Inside,
    /// It is the last of this occurrence of this run.
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
        for column in &run.members[..run.members.len() - 1] {
            column.iter().for_each(|&node| fates[node as usize] = Fate::Inside);
        }
        for (occurrence, &node) in run.last().iter().enumerate() {
            fates[node as usize] = Fate::Last { run: number as u32, occurrence: occurrence as u32 };
        }
    }
    let before = graph.module.cells.len();
    let mut extension = Extension::new(graph);
    let calls: Vec<cell::Call> = runs.iter().map(|run| cell::declare(&mut extension, graph, run)).collect();
    let module = extension.finish();
    let cells = module.cells.len() - before;
    let mut rebuild = Rebuild::over(graph, module);
    let sigs: Vec<_> = calls.iter().map(|call| rebuild.sig(call.signature.clone())).collect();
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
                operands.extend(run.ports.iter().map(|port| run.operand(graph, port.first, occurrence)));
                let head = NodeId::new(run.members[0][occurrence] as usize);
                let first = rebuild.apply(node, sigs[number], &operands, graph.arena.node(head).site);
                for (place, &(member, result)) in run.results.iter().enumerate() {
                    let maker = NodeId::new(run.members[member as usize][occurrence] as usize);
                    let old = graph.arena.results(maker).start + result as usize;
                    rebuild.name(ValueId::new(old), ValueId::new(first.index() + place));
                }
            }
        }
    }
    let occurrences: usize = runs.iter().map(Run::occurrences).sum();
    let (graph, renaming) = rebuild.finish();
    let note = format!("{} for {}", count(cells, "cell"), count(occurrences, "run"));
    Some(Change { graph, renaming, note })
}

//! Passes from graph to graph.
//!
//! One pass is one file with one function: it takes a verified graph and gives a better one with the
//! same bits, or `None` where it finds nothing to do, so that a graph which needs no pass is not even
//! copied. The order of the passes and what each promises stand in [`passes`](crate::passes). What
//! they may do is what the normal form of
//! [`equivalent`](autobatch_oracle::equivalent::equivalent) identifies; tests hold every pass
//! to that proof.

pub(crate) mod cse;
pub(crate) mod dead;
pub(crate) mod fold;
pub(crate) mod hoist;
pub(crate) mod outline;

use autobatch_ir::graph::GraphData;
use autobatch_ir::graph::rebuild::Renaming;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;

/// What a pass is told besides the graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// Values that must stay readable, besides the graph's outputs.
    pub wanted: &'a [ValueId],
    /// What the plan will promise.
    pub mode: Mode,
    /// Whether nodes of different instances may become one.
    pub across_instances: bool,
    /// Whether what has a price is done wherever it can be.
    pub eager: bool,
}

impl Context<'_> {
    /// Every value that must stay readable.
    pub(crate) fn kept<'b>(&'b self, graph: &'b GraphData) -> impl Iterator<Item = ValueId> + 'b {
        self.wanted.iter().copied().chain(graph.outputs.iter().map(|output| output.value))
    }
}

/// What a pass did.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The rewritten graph.
    pub graph: GraphData,
    /// What became of each value.
    pub renaming: Renaming,
    /// What was done, in a few words.
    pub note: String,
}

/// Marks the nodes that passes leave alone: those that must be batches of their own, and
/// those whose values every consumer must share.
pub(crate) fn marked(graph: &GraphData) -> Vec<bool> {
    let mut marked = vec![false; graph.arena.len()];
    graph.alone.iter().for_each(|node| marked[node.index()] = true);
    graph.shared.iter().for_each(|&value| marked[graph.arena.producer(value).index()] = true);
    marked
}

/// For each node the number of its stretch.
pub(crate) fn stretches(graph: &GraphData) -> Vec<u32> {
    let mut stretch_of = vec![0; graph.arena.len()];
    for (number, (_, nodes)) in graph.stretches().enumerate() {
        stretch_of[nodes].fill(number as u32);
    }
    stretch_of
}

/// `1 node`, `2 nodes`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

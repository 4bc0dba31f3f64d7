//! The input and the result of a pass, and tools that passes share.

use autobatch_ir::graph::GraphData;
use autobatch_ir::graph::rebuild::Renaming;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;

/// The input of a pass besides the graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    /// Values that must stay readable, besides the graph's outputs.
    pub wanted: &'a [ValueId],
    /// The mode of the plan to be made.
    pub mode: Mode,
    /// Whether nodes of different instances may merge.
    pub across_instances: bool,
    /// Whether a pass with a cost model applies every legal rewrite.
    pub eager: bool,
}

impl Context<'_> {
    /// All values that must stay readable.
    pub(crate) fn requested<'b>(&'b self, graph: &'b GraphData) -> impl Iterator<Item = ValueId> + 'b {
        self.wanted.iter().copied().chain(graph.outputs.iter().map(|output| output.value))
    }
}

/// The result of a pass.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The rewritten graph.
    pub graph: GraphData,
    /// The new name of each value.
    pub renaming: Renaming,
    /// A summary of a few words for the log.
    pub note: String,
}

/// Marks the nodes that passes must not touch: `alone` nodes, and nodes whose values are `shared`.
pub(crate) fn marked(graph: &GraphData) -> Vec<bool> {
    let mut marked = vec![false; graph.arena.len()];
    graph.alone.iter().for_each(|node| marked[node.index()] = true);
    graph.shared.iter().for_each(|&value| marked[graph.arena.producer(value).index()] = true);
    marked
}

/// The stretch number of each node.
pub(crate) fn stretches(graph: &GraphData) -> Vec<u32> {
    let mut stretch_of = vec![0; graph.arena.len()];
    for (number, (_, nodes)) in graph.stretches().enumerate() {
        stretch_of[nodes].fill(number as u32);
    }
    stretch_of
}

/// A number with its noun: `1 node`, `2 nodes`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

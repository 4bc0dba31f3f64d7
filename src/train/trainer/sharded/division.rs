//! [`Division`]: the items of a rank as graphs, one for each node of the tree; and the sums of nodes, from those of graphs.

use crate::train::trainer::minibatch;
use autobatch_distributed::tree;
use autobatch_distributed::{Gradient, GradientShape};
use std::ops::Range;

/// The part of a minibatch that a rank executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Division {
    /// The number of items of the minibatch.
    count: usize,
    /// The number of its shards, the leaves of the tree.
    pub(super) leaves: usize,
    /// The largest nodes that hold the shards of this rank.
    cover: Vec<Range<usize>>,
    /// The nodes that execute as one graph each, in order.
    pub(super) graphs: Vec<Range<usize>>,
}

impl Division {
    /// Divides a minibatch into shards, and those of one rank into graphs of at most `together` items; of one shard each for `None`.
    pub(super) fn new(
        rank_of_ranks: (usize, usize),
        count: usize,
        leaves: usize,
        together: Option<usize>,
    ) -> Self {
        let (rank, ranks) = rank_of_ranks;
        let cover = tree::cover(leaves, tree::leaves_of(rank, ranks, leaves));
        let mut division = Self { count, leaves, cover, graphs: Vec::new() };
        let fits = |node: &Range<usize>| together.is_some_and(|most| division.items(node).len() <= most);
        let mut graphs = Vec::new();
        division.cover.iter().for_each(|node| tree::divide(node.clone(), &fits, &mut graphs));
        division.graphs = graphs;
        division
    }

    /// The items of a node.
    pub(super) fn items(&self, node: &Range<usize>) -> Range<usize> {
        let first = |leaf: usize| self.count * leaf / self.leaves;
        first(node.start)..first(node.end)
    }

    /// The number of items before each shard of a node but the first.
    pub(super) fn cuts(&self, node: &Range<usize>) -> Vec<usize> {
        minibatch::cuts(self.count, node.clone(), self.leaves)
    }

    /// Whether the last graph holds a whole node of the cover, so that nothing is added to its gradient here.
    pub(super) fn ends_alone(&self) -> bool {
        self.graphs.last().is_some() && self.graphs.last() == self.cover.last()
    }

    /// Whether two nodes are the children of a node of the cover or below.
    fn are_siblings(&self, left: &Range<usize>, right: &Range<usize>) -> bool {
        let parent = left.start..right.end;
        let holds = |node: &&Range<usize>| node.start <= parent.start && parent.end <= node.end;
        let Some(mut node) = self.cover.iter().find(holds).cloned() else { return false };
        loop {
            let middle = tree::middle(&node);
            if node == parent {
                return left.end == middle && right.start == middle;
            }
            node = match (parent.end <= middle, parent.start >= middle) {
                (true, _) => node.start..middle,
                (_, true) => middle..node.end,
                _ => return false,
            };
        }
    }

    /// Adds the gradient of the next graph to those of the graphs before it, as far as the tree allows.
    pub(super) fn push(
        &self,
        sums: &mut Vec<Sum>,
        node: Range<usize>,
        gradient: Gradient,
        shape: &GradientShape,
    ) {
        let mut sum = Sum { node, gradient };
        while let Some(mut left) = sums.pop_if(|left| self.are_siblings(&left.node, &sum.node)) {
            left.gradient.add(&sum.gradient, shape);
            left.node.end = sum.node.end;
            sum = left;
        }
        sums.push(sum);
    }
}

/// The gradient of a node.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sum {
    node: Range<usize>,
    pub(super) gradient: Gradient,
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_distributed::tree::Given;
    use std::convert::Infallible;

    #[test]
    fn graphs_hold_the_items_of_all_ranks_once_and_rebuild_the_nodes() {
        let shape = GradientShape { dense: 1, widths: Vec::new() };
        let leaf = |leaf: usize| Gradient { dense: vec![0.1 + leaf as f32 * 1e-3], tables: Vec::new() };
        let mut given = |node: &Range<usize>| {
            Ok::<_, Infallible>(match node.len() {
                1 => Given::Sum(leaf(node.start)),
                _ => Given::Children,
            })
        };
        let mut add = |left: &mut Gradient, right: Gradient| left.add(&right, &shape);
        for (count, leaves) in [(37, 8), (20, 5), (3, 3), (1, 1)] {
            for (ranks, together) in [(1, Some(40)), (2, Some(6)), (3, Some(10)), (3, None), (5, Some(1))] {
                let mut items = Vec::new();
                for rank in 0..ranks {
                    let division = Division::new((rank, ranks), count, leaves, together);
                    let mut sums = Vec::new();
                    for node in &division.graphs {
                        let own = division.items(node);
                        assert_eq!(division.cuts(node).len(), node.len() - 1);
                        items.extend(own);
                        let Ok(gradient) = tree::sum(node.clone(), &mut given, &mut add);
                        division.push(&mut sums, node.clone(), gradient, &shape);
                    }
                    let nodes: Vec<_> = sums.iter().map(|sum| sum.node.clone()).collect();
                    assert_eq!(nodes, division.cover);
                    for Sum { node, gradient } in sums {
                        let Ok(expected) = tree::sum(node, &mut given, &mut add);
                        assert_eq!(gradient, expected);
                    }
                }
                assert!(items.into_iter().eq(0..count), "{count} items on {ranks} ranks");
            }
        }
    }
}

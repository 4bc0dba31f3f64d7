//! A PQ-tree seen through a subset of its leaves.
//!
//! The restriction of a tree to `S` keeps the pertinent part: a P node keeps its children that hold leaves of `S`, a Q node
//! keeps them in order, a node left with one child vanishes. It is stored in preorder over a list of leaves, so that each
//! node is one segment of the list, and so is every set that the tree keeps consecutive inside `S`.

use super::{NodeKind, PqTree};
use std::ops::Range;

/// The part of a tree that orders a subset, in preorder.
#[derive(Clone, Debug, Default)]
pub struct Restricted {
    /// Preorder; the first is the whole subset.
    pub nodes: Vec<RestrictedNode>,
    /// The subset, in the order of one frontier.
    pub leaves: Vec<u32>,
}

/// A node of a restricted tree.
#[derive(Clone, Copy, Debug)]
pub struct RestrictedNode {
    /// The node of the full tree it stands for; a Q node may stand for a run of its children only.
    pub origin: u32,
    /// As in the full tree.
    pub kind: NodeKind,
    /// Its segment of the leaves begins here.
    pub first: u32,
    /// Leaves of the subset at or below the node.
    pub size: u32,
    /// One past its last descendant in preorder.
    pub end: u32,
}

impl RestrictedNode {
    /// Its segment of the leaves.
    pub fn segment(&self) -> Range<usize> {
        self.first as usize..(self.first + self.size) as usize
    }
}

impl Restricted {
    /// The children of the node at preorder index `node`, as preorder indices, in order.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.nodes[node].end as usize;
        let mut next = node + 1;
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.nodes[child].end as usize;
            Some(child)
        })
    }

    /// The sets that are consecutive in every order of the tree, as segments of the leaves: enough of them to generate all.
    /// A P node gives its leaves, a Q node the unions of neighbouring children.
    pub fn consecutive_sets(&self) -> Vec<Range<usize>> {
        let mut sets = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            match node.kind {
                NodeKind::Leaf => {}
                NodeKind::P => sets.push(node.segment()),
                NodeKind::Q => {
                    let mut before: Option<Range<usize>> = None;
                    for child in self.children(index) {
                        let segment = self.nodes[child].segment();
                        if let Some(before) = before.replace(segment.clone()) {
                            sets.push(before.start..segment.end);
                        }
                    }
                }
            }
        }
        sets
    }
}

impl PqTree {
    /// The tree restricted to the set; empty for an empty set or one that names an unknown leaf.
    pub fn restrict(&mut self, set: &[u32]) -> Restricted {
        let mut out = Restricted::default();
        let Some(top) = self.mark(set) else {
            return out;
        };
        let mut stack = vec![top];
        while let Some(u) = stack.pop() {
            let node = &self.nodes[u as usize];
            let mark = &self.marks[u as usize];
            if node.kind != NodeKind::Leaf {
                let run = &node.children[mark.min_pos as usize..=mark.max_pos as usize];
                self.work += run.len() as u64;
                stack.extend(run.iter().rev().filter(|&&c| self.marks[c as usize].stamp == self.stamp));
                if mark.fulls + mark.partials == 1 {
                    continue;
                }
            }
            let first = out.leaves.len() as u32;
            out.nodes.push(RestrictedNode { origin: u, kind: node.kind, first, size: mark.count, end: 0 });
            if node.kind == NodeKind::Leaf {
                out.leaves.push(u);
            }
        }
        out.close();
        out
    }
}

impl Restricted {
    /// Sets the end of every node: the next node in preorder that lies outside its segment.
    fn close(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        for index in 0..self.nodes.len() {
            let first = self.nodes[index].first;
            while let Some(&top) = open.last() {
                if self.nodes[top].first + self.nodes[top].size > first {
                    break;
                }
                self.nodes[top].end = index as u32;
                open.pop();
            }
            open.push(index);
        }
        for top in open {
            self.nodes[top].end = self.nodes.len() as u32;
        }
    }
}

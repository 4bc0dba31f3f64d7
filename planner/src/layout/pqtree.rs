//! A PQ-tree: every order of `0..n` in which a growing family of sets stays consecutive.
//!
//! Contract: [`PqTree::reduce`] either adds one set to the family or refuses it and leaves the tree exactly as it was.
//! A refusal means that no order keeps the set and all accepted ones consecutive.
//!
//! Booth and Lueker's structure (1976): the children of a P node may be permuted, the children of a Q node reversed.
//! A reduce marks the *pertinent* nodes bottom-up from the leaves of the set, looks at all of them before it changes any
//! (that is what makes a refusal free of repair), then rebuilds them bottom-up. A partial node becomes a *chain*: its empty
//! parts outward to the left, its full parts outward to the right, so that growing a chain by one level is two pushes.
//!
//! Cost: O(pertinent nodes), plus the children of every Q node that is opened. Nothing recurses. Changes made since
//! [`PqTree::checkpoint`] are journalled per node and can be taken back, which callers use to try a group of sets.

mod mark;
mod rebuild;
mod restrict;
#[cfg(test)]
mod tests;

use mark::Mark;
use rebuild::Chain;
pub use restrict::{Restricted, RestrictedNode};

const NONE: u32 = u32::MAX;

/// What a node allows: nothing below it, any order of its children, or one order and its reverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// One element.
    Leaf,
    /// Children in any order.
    P,
    /// Children in the given order or reversed.
    Q,
}

/// What a reduce did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The set cannot be consecutive together with the accepted ones (or names an unknown leaf); the tree is untouched.
    Refused,
    /// The set was consecutive in every order already.
    Implied,
    /// The set is now consecutive in every order.
    Narrowed,
}

#[derive(Clone, Debug)]
struct Node {
    kind: NodeKind,
    parent: u32,
    /// Index in the parent's children.
    pos: u32,
    /// Leaves at or below the node.
    leaves: u32,
    /// The checkpoint at which the node was last journalled.
    saved: u32,
    children: Vec<u32>,
}

/// The orders of `0..n` that keep every accepted set consecutive.
#[derive(Debug)]
pub struct PqTree {
    nodes: Vec<Node>,
    marks: Vec<Mark>,
    root: u32,
    leaves: u32,
    stamp: u32,
    work: u64,
    free: Vec<u32>,
    journal: Journal,
    /// Scratch: breadth-first queue, then the pertinent nodes bottom-up.
    queue: Vec<u32>,
    order: Vec<u32>,
    chains: Vec<Chain>,
}

/// What a rollback needs: nodes as they were at the checkpoint, and the ids that changed hands since.
#[derive(Debug, Default)]
struct Journal {
    epoch: u32,
    saved: Vec<(u32, Node)>,
    taken: Vec<u32>,
    dropped: Vec<u32>,
    len: usize,
    root: u32,
}

impl PqTree {
    /// The universal tree: every order of `0..leaves`.
    pub fn new(leaves: u32) -> PqTree {
        let leaf = |id: u32| Node {
            kind: NodeKind::Leaf,
            parent: leaves,
            pos: id,
            leaves: 1,
            saved: 0,
            children: Vec::new(),
        };
        let mut nodes: Vec<Node> = (0..leaves).map(leaf).collect();
        nodes.push(Node {
            kind: NodeKind::P,
            parent: NONE,
            pos: 0,
            leaves,
            saved: 0,
            children: (0..leaves).collect(),
        });
        let marks = vec![Mark::CLEAR; nodes.len()];
        let journal = Journal { len: nodes.len(), root: leaves, ..Journal::default() };
        PqTree {
            nodes,
            marks,
            root: leaves,
            leaves,
            stamp: 0,
            work: 0,
            free: Vec::new(),
            journal,
            queue: Vec::new(),
            order: Vec::new(),
            chains: Vec::new(),
        }
    }

    /// How many elements the tree orders.
    pub fn len(&self) -> u32 {
        self.leaves
    }

    /// Whether the tree orders nothing.
    pub fn is_empty(&self) -> bool {
        self.leaves == 0
    }

    /// Nodes visited by all reductions and restrictions so far: the currency of work budgets.
    pub fn work(&self) -> u64 {
        self.work
    }

    /// One past the largest node id in use: node ids are the leaves `0..len` and then inner nodes.
    pub fn node_bound(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The node that holds all leaves.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// What the node allows.
    pub fn kind(&self, node: u32) -> NodeKind {
        self.nodes[node as usize].kind
    }

    /// The node's children in their current order.
    pub fn children(&self, node: u32) -> &[u32] {
        &self.nodes[node as usize].children
    }

    /// One order that the tree allows.
    pub fn frontier(&self) -> Vec<u32> {
        let mut leaves = Vec::with_capacity(self.leaves as usize);
        let mut stack = vec![self.root];
        while let Some(u) = stack.pop() {
            let node = &self.nodes[u as usize];
            match node.kind {
                NodeKind::Leaf => leaves.push(u),
                NodeKind::P | NodeKind::Q => stack.extend(node.children.iter().rev()),
            }
        }
        leaves
    }

    /// Calls every P node with two children a Q node, which allows the same orders.
    pub fn settle_pairs(&mut self) {
        let mut stack = vec![self.root];
        while let Some(u) = stack.pop() {
            if self.kind(u) == NodeKind::P && self.children(u).len() == 2 {
                self.save(u);
                self.nodes[u as usize].kind = NodeKind::Q;
            }
            stack.extend(self.children(u));
        }
    }

    /// Starts a new trial: [`PqTree::rollback`] comes back to this state. Earlier trials are kept for good.
    pub fn checkpoint(&mut self) {
        self.free.append(&mut self.journal.dropped);
        self.journal.saved.clear();
        self.journal.taken.clear();
        self.journal.epoch += 1;
        self.journal.len = self.nodes.len();
        self.journal.root = self.root;
    }

    /// Takes back everything since the last [`PqTree::checkpoint`]; without one, nothing.
    pub fn rollback(&mut self) {
        if self.journal.epoch == 0 {
            return;
        }
        while let Some((id, node)) = self.journal.saved.pop() {
            self.nodes[id as usize] = node;
        }
        self.journal.dropped.clear();
        while let Some(id) = self.journal.taken.pop() {
            self.free.push(id);
        }
        self.nodes.truncate(self.journal.len);
        self.marks.truncate(self.journal.len);
        self.root = self.journal.root;
    }

    /// Makes the set consecutive in every order of the tree, or refuses and changes nothing. Repeats count once.
    pub fn reduce(&mut self, set: &[u32]) -> Reduction {
        if self.journal.epoch == 0 {
            self.free.append(&mut self.journal.dropped);
            self.journal.taken.clear();
        }
        let Some(top) = self.mark(set) else {
            return if set.is_empty() { Reduction::Implied } else { Reduction::Refused };
        };
        if !self.fits(top) {
            return Reduction::Refused;
        }
        let mark = self.marks[top as usize];
        if mark.partials == 0 && (self.is_full(top) || self.kind(top) == NodeKind::Q) {
            return Reduction::Implied;
        }
        self.chains.clear();
        for i in 0..self.order.len() {
            let u = self.order[i];
            if u != top && !self.is_full(u) {
                match self.kind(u) {
                    NodeKind::P => self.open_p(u),
                    NodeKind::Q => self.open_q(u),
                    NodeKind::Leaf => {}
                }
            }
        }
        match self.kind(top) {
            NodeKind::P => self.close_p(top),
            NodeKind::Q => self.close_q(top),
            NodeKind::Leaf => {}
        }
        Reduction::Narrowed
    }

    fn new_node(&mut self, kind: NodeKind, leaves: u32) -> u32 {
        let node = Node { kind, parent: NONE, pos: 0, leaves, saved: 0, children: Vec::new() };
        match self.free.pop() {
            Some(id) => {
                self.journal.taken.push(id);
                self.nodes[id as usize] = Node { saved: self.journal.epoch, ..node };
                id
            }
            None => {
                self.nodes.push(Node { saved: self.journal.epoch, ..node });
                self.marks.push(Mark::CLEAR);
                self.nodes.len() as u32 - 1
            }
        }
    }

    /// Lets go of a node's id; it may be used again after the next checkpoint.
    fn drop_node(&mut self, u: u32) {
        self.journal.dropped.push(u);
    }

    /// Journals a node before its first change since the checkpoint.
    fn save(&mut self, u: u32) {
        let node = &mut self.nodes[u as usize];
        if node.saved != self.journal.epoch {
            self.work += 1 + node.children.len() as u64 / 16;
            self.journal.saved.push((u, node.clone()));
            node.saved = self.journal.epoch;
        }
    }
}

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

mod restrict;
#[cfg(test)]
mod tests;

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

/// What the current set means for a node; valid where `stamp` is the tree's.
#[derive(Clone, Copy, Debug)]
struct Mark {
    stamp: u32,
    /// Pertinent children that are not counted yet.
    pending: u32,
    /// Leaves of the set at or below the node.
    count: u32,
    /// Leaves at or below the pertinent children, as the set found them.
    below: u32,
    fulls: u32,
    partials: u32,
    partial: [u32; 2],
    first_full: u32,
    /// The next full sibling in the parent's list.
    next_full: u32,
    min_pos: u32,
    max_pos: u32,
    chain: u32,
}

impl Mark {
    const CLEAR: Mark = Mark {
        stamp: 0,
        pending: 0,
        count: 0,
        below: 0,
        fulls: 0,
        partials: 0,
        partial: [NONE; 2],
        first_full: NONE,
        next_full: NONE,
        min_pos: u32::MAX,
        max_pos: 0,
        chain: NONE,
    };
}

/// A partial subtree opened into a sequence: `left` backwards, then `right`; empty subtrees first, full ones last.
#[derive(Debug, Default)]
struct Chain {
    left: Vec<u32>,
    right: Vec<u32>,
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
        nodes.push(Node { kind: NodeKind::P, parent: NONE, pos: 0, leaves, saved: 0, children: (0..leaves).collect() });
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
        let Some(top) = self.mark(set) else { return if set.is_empty() { Reduction::Implied } else { Reduction::Refused } };
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

    /// Marks the pertinent nodes and lists them bottom-up in `order`; the lowest node that holds the whole set is the answer.
    fn mark(&mut self, set: &[u32]) -> Option<u32> {
        self.queue.clear();
        self.order.clear();
        if set.iter().any(|&leaf| leaf >= self.leaves) {
            return None;
        }
        self.next_stamp();
        for &leaf in set {
            if self.stamped(leaf) {
                self.order.push(leaf);
                self.marks[leaf as usize].count = 1;
            }
        }
        self.climb();
        let total = self.order.len() as u32;
        let mut head = 0;
        while let Some(&u) = self.order.get(head) {
            head += 1;
            if self.marks[u as usize].count == total {
                self.work += (head + self.queue.len()) as u64;
                return Some(u);
            }
            self.count_into_parent(u);
        }
        None
    }

    /// Walks up from all leaves of the set at once, breadth first, until the walks have met in one node.
    fn climb(&mut self) {
        let mut past_root = 0;
        let mut head = 0;
        while self.queue.len() - head + past_root > 1 {
            let u = self.queue[head];
            head += 1;
            let parent = self.nodes[u as usize].parent;
            if parent == NONE {
                past_root = 1;
            } else {
                self.stamped(parent);
                self.marks[parent as usize].pending += 1;
            }
        }
    }

    /// Clears the node's mark on first sight and queues it; says whether it was the first sight.
    fn stamped(&mut self, node: u32) -> bool {
        let mark = &mut self.marks[node as usize];
        if mark.stamp == self.stamp {
            return false;
        }
        *mark = Mark { stamp: self.stamp, ..Mark::CLEAR };
        self.queue.push(node);
        true
    }

    fn next_stamp(&mut self) {
        if self.stamp == u32::MAX {
            self.marks.fill(Mark::CLEAR);
            self.stamp = 0;
        }
        self.stamp += 1;
    }

    fn count_into_parent(&mut self, u: u32) {
        let Node { parent, pos, leaves, .. } = self.nodes[u as usize];
        let full = self.is_full(u);
        let count = self.marks[u as usize].count;
        let mark = &mut self.marks[parent as usize];
        mark.count += count;
        mark.below += leaves;
        mark.min_pos = mark.min_pos.min(pos);
        mark.max_pos = mark.max_pos.max(pos);
        mark.pending -= 1;
        let done = mark.pending == 0;
        if full {
            mark.fulls += 1;
            let next = std::mem::replace(&mut mark.first_full, u);
            self.marks[u as usize].next_full = next;
        } else {
            if let Some(place) = mark.partial.get_mut(mark.partials as usize) {
                *place = u;
            }
            mark.partials += 1;
        }
        if done {
            self.order.push(parent);
        }
    }

    fn is_full(&self, u: u32) -> bool {
        self.marks[u as usize].count == self.nodes[u as usize].leaves
    }

    /// Whether every pertinent node has a shape that the set can be made consecutive in.
    fn fits(&self, top: u32) -> bool {
        self.order.iter().all(|&u| self.is_full(u) || (u == top && self.top_fits(u)) || (u != top && self.inner_fits(u)))
    }

    fn top_fits(&self, u: u32) -> bool {
        let mark = &self.marks[u as usize];
        mark.partials <= 2
            && (self.kind(u) == NodeKind::P
                || (mark.is_run() && mark.partial[..mark.partials as usize].iter().all(|&x| mark.ends_at(self.nodes[x as usize].pos))))
    }

    fn inner_fits(&self, u: u32) -> bool {
        let mark = &self.marks[u as usize];
        mark.partials <= 1 && (self.kind(u) == NodeKind::P || (mark.is_run() && self.full_side(u).is_some()))
    }

    /// For a partial Q node with at most one partial child: whether its full children stand at the back (`Some(true)`), at the
    /// front (`Some(false)`), or in the way.
    fn full_side(&self, u: u32) -> Option<bool> {
        let mark = &self.marks[u as usize];
        let last = self.nodes[u as usize].children.len() as u32 - 1;
        let partial = (mark.partials == 1).then(|| self.nodes[mark.partial[0] as usize].pos);
        if mark.max_pos == last && partial.is_none_or(|p| p == mark.min_pos) {
            Some(true)
        } else if mark.min_pos == 0 && partial.is_none_or(|p| p == mark.max_pos) {
            Some(false)
        } else {
            None
        }
    }
}

impl Mark {
    fn is_run(&self) -> bool {
        self.max_pos - self.min_pos + 1 == self.fulls + self.partials
    }

    fn ends_at(&self, pos: u32) -> bool {
        pos == self.min_pos || pos == self.max_pos
    }
}

/// The rebuilding half of a reduce: only called once the whole pertinent part is known to fit.
impl PqTree {
    /// A partial P node below the top: its empty children stay together, its full children get a node of their own.
    fn open_p(&mut self, u: u32) {
        let mark = self.marks[u as usize];
        let chain = self.chain_of(&mark);
        let full = self.take_fulls(u);
        if mark.partials == 1 {
            self.take_child(u, mark.partial[0]);
        }
        if let Some(empty) = self.group_rest(u) {
            self.chains[chain].left.push(empty);
        }
        self.chains[chain].right.extend(full);
        self.marks[u as usize].chain = chain as u32;
    }

    /// A partial Q node below the top is dissolved into the chain of its partial child.
    fn open_q(&mut self, u: u32) {
        let mark = self.marks[u as usize];
        let full_at_back = self.full_side(u).unwrap_or(true);
        let chain = self.chain_of(&mark);
        self.save(u);
        let children = std::mem::take(&mut self.nodes[u as usize].children);
        self.work += children.len() as u64;
        let (min, max) = (mark.min_pos as usize, mark.max_pos as usize);
        let skip = mark.partials as usize;
        let Chain { left, right } = &mut self.chains[chain];
        if full_at_back {
            left.extend(children[..min].iter().rev());
            right.extend(&children[min + skip..]);
        } else {
            left.extend(&children[max + 1..]);
            right.extend(children[..max + 1 - skip].iter().rev());
        }
        self.drop_node(u);
        self.marks[u as usize].chain = chain as u32;
    }

    /// The lowest P node that holds the whole set.
    fn close_p(&mut self, top: u32) {
        let mark = self.marks[top as usize];
        let full = self.take_fulls(top);
        if mark.partials == 0 {
            if let Some(group) = full {
                self.push_child(top, group);
            }
            return;
        }
        let mut items = self.take_chain(mark.partial[0], false);
        self.take_child(top, mark.partial[0]);
        items.extend(full);
        if mark.partials == 2 {
            items.extend(self.take_chain(mark.partial[1], true));
            self.take_child(top, mark.partial[1]);
        }
        if self.children(top).is_empty() {
            self.nodes[top as usize].kind = NodeKind::Q;
            self.adopt(top, items, 0);
        } else {
            let leaves = items.iter().map(|&c| self.nodes[c as usize].leaves).sum();
            let q = self.new_node(NodeKind::Q, leaves);
            self.adopt(q, items, 0);
            self.push_child(top, q);
        }
    }

    /// The lowest Q node that holds the whole set: its partial children are replaced by their chains.
    fn close_q(&mut self, top: u32) {
        let mark = self.marks[top as usize];
        self.save(top);
        let old = std::mem::take(&mut self.nodes[top as usize].children);
        self.work += old.len() as u64;
        let mut items = Vec::with_capacity(old.len() + 4);
        for (pos, &child) in (0u32..).zip(&old) {
            if mark.partial[..mark.partials as usize].contains(&child) {
                items.extend(self.take_chain(child, pos == mark.max_pos));
            } else {
                items.push(child);
            }
        }
        self.adopt(top, items, mark.min_pos as usize);
    }

    fn chain_of(&mut self, mark: &Mark) -> usize {
        if mark.partials == 1 {
            self.marks[mark.partial[0] as usize].chain as usize
        } else {
            self.chains.push(Chain::default());
            self.chains.len() - 1
        }
    }

    fn take_chain(&mut self, partial: u32, reversed: bool) -> Vec<u32> {
        let Chain { mut left, mut right } = std::mem::take(&mut self.chains[self.marks[partial as usize].chain as usize]);
        if reversed {
            right.reverse();
            right.append(&mut left);
            right
        } else {
            left.reverse();
            left.append(&mut right);
            left
        }
    }

    /// Takes the full children out of a P node and joins them: nothing, the single one, or a new P node.
    fn take_fulls(&mut self, u: u32) -> Option<u32> {
        let Mark { fulls, first_full, .. } = self.marks[u as usize];
        let mut full = Vec::with_capacity(fulls as usize);
        let mut leaves = 0;
        let mut next = first_full;
        while next != NONE {
            full.push(next);
            leaves += self.nodes[next as usize].leaves;
            next = self.marks[next as usize].next_full;
        }
        full.reverse();
        for &child in &full {
            self.take_child(u, child);
        }
        if full.len() < 2 {
            return full.pop();
        }
        let group = self.new_node(NodeKind::P, leaves);
        self.adopt(group, full, 0);
        Some(group)
    }

    /// Removes a child of a P node; the last child moves into its place.
    fn take_child(&mut self, parent: u32, child: u32) {
        self.save(parent);
        let pos = self.nodes[child as usize].pos;
        let node = &mut self.nodes[parent as usize];
        node.children.swap_remove(pos as usize);
        if let Some(&moved) = node.children.get(pos as usize) {
            self.save(moved);
            self.nodes[moved as usize].pos = pos;
        }
    }

    /// What a P node is after its pertinent children left: nothing, its only child, or itself.
    fn group_rest(&mut self, u: u32) -> Option<u32> {
        self.save(u);
        match *self.children(u) {
            [] => {
                self.drop_node(u);
                None
            }
            [only] => {
                self.drop_node(u);
                Some(only)
            }
            _ => {
                self.nodes[u as usize].leaves -= self.marks[u as usize].below;
                Some(u)
            }
        }
    }

    fn push_child(&mut self, parent: u32, child: u32) {
        self.save(parent);
        self.save(child);
        let pos = self.children(parent).len() as u32;
        self.nodes[child as usize].parent = parent;
        self.nodes[child as usize].pos = pos;
        self.nodes[parent as usize].children.push(child);
    }

    /// Gives a node its children; those before `from` already know their place.
    fn adopt(&mut self, parent: u32, children: Vec<u32>, from: usize) {
        self.save(parent);
        for (pos, &child) in children.iter().enumerate().skip(from) {
            self.save(child);
            let node = &mut self.nodes[child as usize];
            node.parent = parent;
            node.pos = pos as u32;
        }
        self.nodes[parent as usize].children = children;
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
            self.journal.saved.push((u, node.clone()));
            node.saved = self.journal.epoch;
        }
    }
}

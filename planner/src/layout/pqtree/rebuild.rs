//! The changing half of a reduce: opens partial nodes into chains and closes them at the top.

use super::mark::Mark;
use super::{NONE, NodeKind, PqTree};

/// A partial subtree opened into a sequence: `left` backwards, then `right`; empty subtrees first, full ones last.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub(super) left: Vec<u32>,
    pub(super) right: Vec<u32>,
}

/// The rebuilding half of a reduce: only called once the whole pertinent part is known to fit.
impl PqTree {
    /// A partial P node below the top: its empty children stay together, its full children get a node of their own.
    pub(super) fn open_p(&mut self, u: u32) {
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
    pub(super) fn open_q(&mut self, u: u32) {
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
    pub(super) fn close_p(&mut self, top: u32) {
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
    pub(super) fn close_q(&mut self, top: u32) {
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

    pub(super) fn chain_of(&mut self, mark: &Mark) -> usize {
        if mark.partials == 1 {
            self.marks[mark.partial[0] as usize].chain as usize
        } else {
            self.chains.push(Chain::default());
            self.chains.len() - 1
        }
    }

    pub(super) fn take_chain(&mut self, partial: u32, reversed: bool) -> Vec<u32> {
        let Chain { mut left, mut right } =
            std::mem::take(&mut self.chains[self.marks[partial as usize].chain as usize]);
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
    pub(super) fn take_fulls(&mut self, u: u32) -> Option<u32> {
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
    pub(super) fn take_child(&mut self, parent: u32, child: u32) {
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
    pub(super) fn group_rest(&mut self, u: u32) -> Option<u32> {
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

    pub(super) fn push_child(&mut self, parent: u32, child: u32) {
        self.save(parent);
        self.save(child);
        let pos = self.children(parent).len() as u32;
        self.nodes[child as usize].parent = parent;
        self.nodes[child as usize].pos = pos;
        self.nodes[parent as usize].children.push(child);
    }

    /// Gives a node its children; those before `from` already know their place.
    pub(super) fn adopt(&mut self, parent: u32, children: Vec<u32>, from: usize) {
        self.save(parent);
        for (pos, &child) in children.iter().enumerate().skip(from) {
            self.save(child);
            let node = &mut self.nodes[child as usize];
            node.parent = parent;
            node.pos = pos as u32;
        }
        self.nodes[parent as usize].children = children;
    }
}

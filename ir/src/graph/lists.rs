//! The items of lists. A `list` node names all its items; an `append` node names a list and one further item.
//!
//! A list that grows by `append` shares the items of every list that it grew from, so the lists of all positions of a sentence
//! are linear in its length. [`Arena::items`] finds the items of any list.

use super::{Arena, Callee, Op, Operand, Signature, Signatures};
use crate::id::{NodeId, SigId, ValueId};
use std::borrow::Cow;
use std::collections::HashMap;

impl Arena {
    /// The items of a list of a graph, in order. For a port, which has no items here, and for every other value the
    /// operands of its node.
    #[inline]
    #[must_use]
    pub fn items(&self, list: ValueId, sigs: &Signatures) -> Cow<'_, [Operand]> {
        let node = self.producer(list);
        match self.grown_from(node, |sig| sigs.get(sig).callee) {
            None => Cow::Borrowed(self.operands(node)),
            Some(_) => Cow::Owned(self.appended_items(node, sigs)),
        }
    }

    /// The list that an `append` node appends to, and the item; `None` for every other node.
    #[inline]
    #[must_use]
    pub fn appended(&self, node: NodeId, sigs: &Signatures) -> Option<(ValueId, Operand)> {
        self.grown_from(node, |sig| sigs.get(sig).callee)
    }

    /// [`appended`](Self::appended) of an arena that may break the rules of graphs.
    #[inline]
    fn grown_from(&self, node: NodeId, callee: impl FnOnce(SigId) -> Callee) -> Option<(ValueId, Operand)> {
        // Most lists differ in the number of operands already.
        let [list, item] = *self.operands(node) else { return None };
        if callee(self.node(node).sig) != Callee::Op(Op::Append) {
            return None;
        }
        // A list comes before the node, so a walk from list to list ends.
        let list = list.as_value().filter(|list| list.index() < self.results(node).start)?;
        Some((list, item))
    }

    /// How two lists grew together. They are equally long.
    #[must_use]
    pub fn lineage(&self, lists: [ValueId; 2], sigs: &Signatures) -> Lineage {
        let length = self.items(lists[0], sigs).len();
        let mut pairs = vec![lists];
        while let Some(before) = self.grown_together(pairs[pairs.len() - 1], sigs) {
            pairs.push(before);
        }
        Lineage { pairs, length }
    }

    /// The two lists from which two lists grew by one item each; `None` if one of them did not grow.
    #[must_use]
    pub fn grown_together(&self, lists: [ValueId; 2], sigs: &Signatures) -> Option<[ValueId; 2]> {
        let [first, second] = lists.map(|list| self.appended(self.producer(list), sigs));
        Some([first?.0, second?.0])
    }

    #[cold]
    fn appended_items(&self, mut node: NodeId, sigs: &Signatures) -> Vec<Operand> {
        let mut items = Vec::new();
        while let Some((list, item)) = self.appended(node, sigs) {
            items.push(item);
            node = self.producer(list);
        }
        items.extend(self.operands(node).iter().rev());
        items.reverse();
        items
    }
}

/// A pair of lists, the pair from which both grew by one item, and so on back to a pair that did not grow.
#[derive(Clone, Debug)]
pub struct Lineage {
    pairs: Vec<[ValueId; 2]>,
    length: usize,
}

impl Lineage {
    /// The pairs, from the last to the first.
    #[must_use]
    pub fn pairs(&self) -> &[[ValueId; 2]] {
        &self.pairs
    }

    /// The pair that was the first to hold the item of this number.
    #[must_use]
    pub fn first_with(&self, number: usize) -> [ValueId; 2] {
        let appended_since = self.length.saturating_sub(number + 1);
        self.pairs[appended_since.min(self.pairs.len() - 1)]
    }
}

/// The lengths of lists. It keeps those of lists that grew, so all together cost one step for each `append`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListLengths {
    appended: HashMap<NodeId, u32>,
}

impl ListLengths {
    /// The number of items of a list; `None` for a port and for values that are no lists. The arena may break the rules.
    pub(crate) fn of(&mut self, arena: &Arena, sigs: &[Signature], value: ValueId) -> Option<u32> {
        let mut node = arena.producer(value);
        let mut open = Vec::new();
        let mut length = loop {
            let callee = sigs.get(arena.node(node).sig.index())?.callee;
            if callee == Callee::Op(Op::List) {
                break arena.operands(node).len() as u32;
            }
            let (list, _) = arena.grown_from(node, |_| callee)?;
            if let Some(&known) = self.appended.get(&node) {
                break known;
            }
            open.push(node);
            node = arena.producer(list);
        };
        for node in open.into_iter().rev() {
            length += 1;
            self.appended.insert(node, length);
        }
        Some(length)
    }

    pub(crate) fn clear(&mut self) {
        self.appended.clear();
    }
}

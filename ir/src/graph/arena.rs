//! The arena of nodes: append-only, in topological order, stored as a struct of arrays.
//!
//! Graphs and cell bodies use the same arena. A node reads only results of earlier nodes, so the
//! order of the arena is a topological order. All operand lists lie end to end in one pool. A node
//! stores the start of its list; the list ends where the list of the next node starts.

use crate::getters::getters;
use crate::graph::signature::Signatures;
use crate::id::{MAX_INDEX, NodeId, SigId, SiteId, TypeId, ValueId};
use std::ops::Range;

const TAG_SHIFT: u32 = 30;
const TAG_VALUE: u32 = 0;
const TAG_INDEX: u32 = 1;
const TAG_DATA: u32 = 2;

/// One operand, packed into one word: two tag bits and a 30-bit index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Operand(u32);

/// The decoded form of an [`Operand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// The result of an earlier node.
    Value(ValueId),
    /// Bound words that start at this slot of the word pool.
    Index(u32),
    /// Bound floats that start at this slot of the float pool.
    Data(u32),
}

impl Operand {
    /// An operand that reads a value.
    #[inline]
    #[must_use]
    pub const fn value(id: ValueId) -> Self {
        Self(id.index() as u32)
    }

    /// An operand that reads bound words. `slot` must be below 2^30.
    #[inline]
    #[must_use]
    pub const fn index(slot: u32) -> Self {
        Self((TAG_INDEX << TAG_SHIFT) | slot)
    }

    /// An operand that reads bound floats. `slot` must be below 2^30.
    #[inline]
    #[must_use]
    pub const fn data(slot: u32) -> Self {
        Self((TAG_DATA << TAG_SHIFT) | slot)
    }

    /// The operand stored as this word. The word may be invalid; [`kind`](Self::kind) checks it.
    pub(crate) const fn from_word(word: u32) -> Self {
        Self(word)
    }

    /// The word of the operand, as stored and hashed.
    #[inline]
    #[must_use]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// Decodes the operand; `None` for an invalid word, which only a file can contain.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> Option<OperandKind> {
        let rest = self.0 & ((1 << TAG_SHIFT) - 1);
        match self.0 >> TAG_SHIFT {
            TAG_VALUE => match ValueId::try_new(rest as usize) {
                Some(id) => Some(OperandKind::Value(id)),
                None => None,
            },
            TAG_INDEX => Some(OperandKind::Index(rest)),
            TAG_DATA => Some(OperandKind::Data(rest)),
            _ => None,
        }
    }

    /// The value that the operand reads; `None` for bindings.
    #[inline]
    #[must_use]
    pub const fn as_value(self) -> Option<ValueId> {
        // The tag of values is 0. Every other tag makes the word larger than the largest index.
        const { assert!(TAG_VALUE == 0 && MAX_INDEX < 1 << TAG_SHIFT) };
        ValueId::try_new(self.0 as usize)
    }
}

impl std::fmt::Debug for Operand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.kind())
    }
}

/// One node, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::NoUninit, bytemuck::CheckedBitPattern)]
#[repr(C)]
pub struct Node {
    /// The signature: callee, attributes, types and parameters.
    pub sig: SigId,
    /// The start of its operands in the pool.
    pub operands: u32,
    /// The index of its first result.
    pub results: u32,
    /// The source line that emitted it.
    pub site: SiteId,
}

/// Nodes with their operands and results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arena {
    nodes: Vec<Node>,
    operands: Vec<Operand>,
    value_types: Vec<TypeId>,
    producers: Vec<NodeId>,
}

impl Arena {
    /// Builds an arena from its stored parts and derives the producers. The caller verifies the result afterwards.
    ///
    /// # Errors
    /// If the node boundaries do not partition the operands and the values.
    pub fn from_parts(
        nodes: Vec<Node>,
        operands: Vec<Operand>,
        value_types: Vec<TypeId>,
    ) -> Result<Self, &'static str> {
        if nodes.len().max(operands.len()).max(value_types.len()) > MAX_INDEX {
            return Err("an arena holds at most 2^30 nodes, operands and values");
        }
        let mut producers = Vec::with_capacity(value_types.len());
        let mut previous = (0, 0);
        for (number, node) in nodes.iter().enumerate() {
            let (operands_end, results_end) =
                nodes.get(number + 1).map_or((operands.len(), value_types.len()), |next| {
                    (next.operands as usize, next.results as usize)
                });
            if (node.operands as usize, node.results as usize) != previous {
                return Err("nodes must begin where the one before ends");
            }
            if operands_end < previous.0 || operands_end > operands.len() {
                return Err("an operand list must lie inside the pool");
            }
            if results_end < previous.1 || results_end > value_types.len() {
                return Err("the results of a node must lie inside the arena");
            }
            producers.resize(results_end, NodeId::new(number));
            previous = (operands_end, results_end);
        }
        if previous != (operands.len(), value_types.len()) {
            return Err("every operand and value must belong to a node");
        }
        Ok(Self { nodes, operands, value_types, producers })
    }

    /// Appends a node and returns the index of its first result. The caller has appended its
    /// operands with [`push_operand`](Self::push_operand); `operands` is the mark before the first.
    #[inline(always)]
    pub fn push(&mut self, sig: SigId, operands: u32, results: &[TypeId], site: SiteId) -> u32 {
        let first = self.value_types.len() as u32;
        let node = NodeId::new(self.nodes.len());
        reserve(&mut self.nodes, 1);
        reserve(&mut self.value_types, results.len());
        reserve(&mut self.producers, results.len());
        self.nodes.push(Node { sig, operands, results: first, site });
        self.value_types.extend_from_slice(results);
        self.producers.extend(std::iter::repeat_n(node, results.len()));
        first
    }

    /// Appends a node with its operands. Inlining lets the compiler copy arrays without loops.
    #[inline(always)]
    pub(crate) fn push_whole(
        &mut self,
        sig: SigId,
        operands: &[Operand],
        results: &[TypeId],
        site: SiteId,
    ) -> u32 {
        let mark = self.operand_mark();
        reserve(&mut self.operands, operands.len());
        self.operands.extend_from_slice(operands);
        self.push(sig, mark, results, site)
    }

    /// The start of the next node's operands in the pool.
    #[inline]
    pub fn operand_mark(&self) -> u32 {
        self.operands.len() as u32
    }

    /// Appends an operand of the next node.
    #[inline]
    pub fn push_operand(&mut self, operand: Operand) {
        reserve(&mut self.operands, 1);
        self.operands.push(operand);
    }

    /// Sets the sites of all nodes: `own` lists nodes with their own site, all others get `default`.
    pub(crate) fn set_sites(&mut self, own: &[(u32, SiteId)], default: SiteId) {
        self.nodes.iter_mut().for_each(|node| node.site = default);
        for &(node, site) in own {
            self.nodes[node as usize].site = site;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.operands.clear();
        self.value_types.clear();
        self.producers.clear();
    }

    getters! {
        /// The number of nodes.
        len(self) -> usize = self.nodes.len();
        /// Whether the arena has no nodes.
        is_empty(self) -> bool = self.nodes.is_empty();
        /// The number of values.
        values(self) -> usize = self.value_types.len();
        /// The nodes as stored, in order.
        nodes(self) -> &[Node] = &self.nodes;
        /// The pool of operands.
        operand_pool(self) -> &[Operand] = &self.operands;
        /// The type of every value.
        value_types(self) -> &[TypeId] = &self.value_types;
        /// The node with this id.
        node(self, id: NodeId) -> &Node = &self.nodes[id.index()];
        /// The node that produces a value.
        producer(self, value: ValueId) -> NodeId = self.producers[value.index()];
        /// The type of a value.
        type_of(self, value: ValueId) -> TypeId = self.value_types[value.index()];
        /// Whether a value is a list.
        is_list(self, value: ValueId, sigs: &Signatures) -> bool = sigs.get(self.node(self.producer(value)).sig).is_list();
    }

    /// The ids of all nodes, in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = NodeId> + DoubleEndedIterator + use<> {
        (0..self.nodes.len()).map(NodeId::new)
    }

    /// The operands of a node.
    #[inline]
    #[must_use]
    pub fn operands(&self, id: NodeId) -> &[Operand] {
        let start = self.nodes[id.index()].operands as usize;
        let end = self.nodes.get(id.index() + 1).map_or(self.operands.len(), |next| next.operands as usize);
        &self.operands[start..end]
    }

    /// The results of a node, as a range of value indices.
    #[inline]
    #[must_use]
    pub fn results(&self, id: NodeId) -> Range<usize> {
        let start = self.nodes[id.index()].results as usize;
        let end = self.nodes.get(id.index() + 1).map_or(self.value_types.len(), |next| next.results as usize);
        start..end
    }

    /// The allocated bytes, including spare capacity.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.operands.capacity() * size_of::<Operand>()
            + self.value_types.capacity() * size_of::<TypeId>()
            + self.producers.capacity() * size_of::<NodeId>()
    }
}

/// Reserves space for `more` items. It grows by a quarter instead of doubling: graphs are large, and
/// the allocator moves large blocks without a copy.
#[inline]
fn reserve<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() < more {
        items.reserve_exact(more.max(64).max(items.len() / 4));
    }
}

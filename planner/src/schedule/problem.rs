//! The scheduling problem: nodes in topological order, a small type number each, and their operands.
//!
//! A problem knows nothing of the graph language. Two nodes may share a batch iff they have the same type, neither is marked
//! *alone*, and neither depends on the other. Whoever fills a problem decides what a type is: a signature, a cell, an op.
//!
//! [`Problem::new`] checks every rule below once, in one scan, so that no policy has to defend itself:
//! 1. `ty` holds one type number per node, each smaller than `types`;
//! 2. `types` is at most nodes + [`SPARE_TYPES`], so that arrays over types stay small;
//! 3. `operand_start` holds nodes + 1 offsets, from 0, never falling, up to the length of `operands`;
//! 4. an operand is an earlier node (the same operand may be named more than once);
//! 5. `alone` is strictly ascending and names nodes.

use super::Price;
use std::fmt;

/// How far the type count may exceed the node count: a delta of a large graph may use few of its types.
pub const SPARE_TYPES: u32 = 1 << 16;

/// The most nodes of a problem: node counts fit a signed 32-bit number, and marks fit above them.
const MOST_NODES: usize = i32::MAX as usize;

/// A checked scheduling problem; see the module documentation for its rules.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    types: u32,
    ty: &'a [u32],
    alone: &'a [u32],
    operand_start: &'a [u32],
    operands: &'a [u32],
    prices: &'a [Price],
    names: &'a [u64],
}

impl<'a> Problem<'a> {
    /// Checks the rules and wraps the slices; costs one scan of `ty` and `operands`.
    ///
    /// `alone` lists, ascending, the nodes that must be a batch of their own. The operands of node `v` are
    /// `operands[operand_start[v]..operand_start[v + 1]]`.
    pub fn new(
        types: u32,
        ty: &'a [u32],
        alone: &'a [u32],
        operand_start: &'a [u32],
        operands: &'a [u32],
    ) -> Result<Self, ProblemError> {
        let nodes = ty.len();
        if nodes > MOST_NODES {
            return Err(ProblemError::TooManyNodes { nodes });
        }
        if types > nodes as u32 + SPARE_TYPES {
            return Err(ProblemError::TooManyTypes { types, nodes });
        }
        if let Some(node) = ty.iter().position(|&t| t >= types) {
            return Err(ProblemError::TypeOutOfRange { node, ty: ty[node], types });
        }
        check_operands(nodes, operand_start, operands)?;
        for (at, &node) in alone.iter().enumerate() {
            if node as usize >= nodes || (at > 0 && alone[at - 1] >= node) {
                return Err(ProblemError::AloneOutOfOrder { at, node });
            }
        }
        Ok(Self { types, ty, alone, operand_start, operands, prices: &[], names: &[] })
    }

    /// [`Problem::new`] for slices that are known to keep the rules; builds with debug assertions look nevertheless.
    pub(crate) fn trusted(
        types: u32,
        ty: &'a [u32],
        alone: &'a [u32],
        operand_start: &'a [u32],
        operands: &'a [u32],
    ) -> Self {
        debug_assert_eq!(Self::new(types, ty, alone, operand_start, operands).map(drop), Ok(()));
        Self { types, ty, alone, operand_start, operands, prices: &[], names: &[] }
    }

    /// The problem with what a batch of every type costs. Types beyond the end of `prices` have none.
    #[must_use]
    pub fn with_prices(self, prices: &'a [Price]) -> Self {
        Self { prices, ..self }
    }

    /// What a batch of each of the first types costs; empty if nobody said.
    pub fn prices(&self) -> &'a [Price] {
        self.prices
    }

    /// The problem with a name for every type, which means the same in every problem whose types have names. Types beyond the
    /// end of `names` are called by their numbers.
    #[must_use]
    pub fn with_names(self, names: &'a [u64]) -> Self {
        Self { names, ..self }
    }

    /// What a type is called.
    #[inline]
    pub fn name(&self, ty: u32) -> u64 {
        self.names.get(ty as usize).copied().unwrap_or(ty.into())
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.ty.len()
    }

    /// Whether there is nothing to schedule.
    pub fn is_empty(&self) -> bool {
        self.ty.is_empty()
    }

    /// Number of type numbers; not every one need be used.
    pub fn types(&self) -> u32 {
        self.types
    }

    /// The type of every node.
    pub fn ty(&self) -> &'a [u32] {
        self.ty
    }

    /// The nodes that must be a batch of their own, ascending.
    pub fn alone(&self) -> &'a [u32] {
        self.alone
    }

    /// The operands of a node, in the order given; one may occur more than once.
    ///
    /// # Panics
    /// If `node` is not smaller than [`Problem::len`].
    #[inline]
    pub fn operands(&self, node: usize) -> &'a [u32] {
        &self.operands[self.operand_start[node] as usize..self.operand_start[node + 1] as usize]
    }

    /// The operands of node after node.
    pub(super) fn operand_lists(&self) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        lists(self.operand_start, self.operands)
    }

    /// Number of operand occurrences in the whole problem.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }
}

/// List after list of those that lie side by side, from the offsets where they begin and end.
pub(super) fn lists<'a>(start: &'a [u32], items: &'a [u32]) -> impl Iterator<Item = &'a [u32]> + use<'a> {
    let mut rest = items;
    start.windows(2).map(move |ends| {
        let (own, after) = rest.split_at((ends[1] - ends[0]) as usize);
        rest = after;
        own
    })
}

/// Rules 3 and 4.
fn check_operands(nodes: usize, start: &[u32], operands: &[u32]) -> Result<(), ProblemError> {
    if start.len() != nodes + 1 {
        return Err(ProblemError::OffsetCount { expected: nodes + 1, found: start.len() });
    }
    if start[0] != 0 || start[nodes] as usize != operands.len() {
        return Err(ProblemError::OffsetEnds {
            first: start[0],
            last: start[nodes],
            operands: operands.len(),
        });
    }
    for node in 0..nodes {
        let (from, to) = (start[node] as usize, start[node + 1] as usize);
        let Some(own) = operands.get(from..to) else {
            return Err(ProblemError::OffsetFalls { node });
        };
        if let Some(&operand) = own.iter().find(|&&operand| operand as usize >= node) {
            return Err(ProblemError::OperandNotEarlier { node, operand });
        }
    }
    Ok(())
}

/// Why slices do not form a [`Problem`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemError {
    /// Node numbers must fit in 31 bits.
    TooManyNodes {
        /// How many nodes were given.
        nodes: usize,
    },
    /// Type numbers are not dense (rule 2).
    TooManyTypes {
        /// The type count given.
        types: u32,
        /// How many nodes were given.
        nodes: usize,
    },
    /// A node's type number is not smaller than the type count (rule 1).
    TypeOutOfRange {
        /// The node.
        node: usize,
        /// Its type number.
        ty: u32,
        /// The type count.
        types: u32,
    },
    /// `operand_start` has the wrong length (rule 3).
    OffsetCount {
        /// Nodes + 1.
        expected: usize,
        /// The length given.
        found: usize,
    },
    /// `operand_start` does not span `operands` (rule 3).
    OffsetEnds {
        /// Its first offset.
        first: u32,
        /// Its last offset.
        last: u32,
        /// The length of `operands`.
        operands: usize,
    },
    /// The offsets of a node fall or leave the operand list (rule 3).
    OffsetFalls {
        /// The node.
        node: usize,
    },
    /// A node names itself or a later node as operand (rule 4).
    OperandNotEarlier {
        /// The node.
        node: usize,
        /// The operand.
        operand: u32,
    },
    /// The list of alone nodes is not strictly ascending, or names no node (rule 5).
    AloneOutOfOrder {
        /// Position in the list.
        at: usize,
        /// The node listed there.
        node: u32,
    },
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyNodes { nodes } => {
                write!(
                    f,
                    "scheduling problem has {nodes} nodes, expected at most {MOST_NODES}; split the graph"
                )
            }
            Self::TooManyTypes { types, nodes } => write!(
                f,
                "scheduling problem has {types} types for {nodes} nodes, expected at most {SPARE_TYPES} more types than \
                 nodes; number the types densely"
            ),
            Self::TypeOutOfRange { node, ty, types } => {
                write!(f, "node {node} has type {ty}, expected a number below the type count {types}")
            }
            Self::OffsetCount { expected, found } => {
                write!(f, "operand offsets: expected {expected} (nodes + 1), found {found}")
            }
            Self::OffsetEnds { first, last, operands } => {
                write!(f, "operand offsets: expected to run from 0 to {operands}, found {first} to {last}")
            }
            Self::OffsetFalls { node } => write!(
                f,
                "operand offsets of node {node}: expected a range inside the operand list, found one that falls or leaves it"
            ),
            Self::OperandNotEarlier { node, operand } => {
                write!(
                    f,
                    "node {node} has operand {operand}, expected an earlier node; number nodes in topological order"
                )
            }
            Self::AloneOutOfOrder { at, node } => {
                write!(f, "alone list: entry {at} is {node}, expected strictly ascending node numbers")
            }
        }
    }
}

impl std::error::Error for ProblemError {}

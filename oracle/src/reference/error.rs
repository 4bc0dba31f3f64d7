//! Why a graph has no values.

use autobatch_ir::graph::Site;
use autobatch_ir::id::NodeId;
use std::fmt;

/// Why a graph could not be evaluated, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// What is wrong.
    pub fault: RunFault,
    /// The node, if one is to blame.
    pub place: Option<Place>,
}

/// Where an evaluation stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The node of the graph.
    pub node: NodeId,
    /// What refused: the word of an op. Inside a cell, the op of the body.
    pub op: String,
    /// The user's line of that op.
    pub site: Site,
}

/// What is wrong with an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFault {
    /// The weights are not those of the graph's module.
    Weights {
        /// The first parameter that differs, as declared.
        expected: String,
        /// What the weights hold in its place.
        found: String,
    },
    /// A pool of bound numbers ends before what an operand names.
    Binding {
        /// `"words"` or `"floats"`.
        pool: &'static str,
        /// The length that the operand needs the pool to have.
        expected: u64,
        /// The length that it has.
        found: usize,
    },
    /// A bound index is not below the number of choices.
    Index {
        /// The index.
        index: u32,
        /// How many rows or elements there are.
        bound: usize,
    },
    /// Lists that are taken side by side differ in length.
    Lengths {
        /// The length of the first.
        expected: usize,
        /// The length of the other.
        found: usize,
    },
    /// The graph makes more elements than an interpreter should be asked for.
    TooLarge {
        /// The elements that all nodes make, those inside cells included.
        elements: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// Cells call cells too deeply.
    TooDeep {
        /// The number of levels.
        depth: u32,
        /// The most that is accepted.
        limit: u32,
    },
    /// What is to be differentiated is not a float value of the graph.
    Loss {
        /// What was named.
        found: String,
    },
    /// The graph is not well formed; the verifier says more.
    Malformed(
        /// What was expected and found.
        String,
    ),
}

/// The result of the parts of an evaluation, which do not know where they are.
pub(crate) type Checked<R> = Result<R, RunFault>;

pub(crate) fn malformed<R>(message: impl Into<String>) -> Checked<R> {
    Err(RunFault::Malformed(message.into()))
}

impl From<RunFault> for RunError {
    fn from(fault: RunFault) -> Self {
        Self { fault, place: None }
    }
}

impl fmt::Display for RunFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weights { expected, found } => {
                write!(f, "the weights belong to another module: expected {expected}, found {found}")
            }
            Self::Binding { pool, expected, found } => write!(
                f,
                "expected at least {expected} bound {pool}, found {found}; bind a number for every input"
            ),
            Self::Index { index, bound } => {
                write!(f, "expected an index below {bound}, found {index}; bind an index that exists")
            }
            Self::Lengths { expected, found } => write!(
                f,
                "the lists must have equal lengths, found {expected} and {found} values; give each value its score"
            ),
            Self::TooLarge { elements, limit } => write!(
                f,
                "the graph makes {elements} elements, the interpreter takes {limit}; evaluate fewer instances"
            ),
            Self::TooDeep { depth, limit } => {
                write!(f, "cells call cells {depth} deep, the interpreter takes {limit}; inline some")
            }
            Self::Loss { found } => {
                write!(f, "expected a float value to differentiate, found {found}; name a scalar f32")
            }
            Self::Malformed(message) => write!(f, "the graph is not well formed: {message}; verify it first"),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { node, op, site }) = &self.place {
            write!(f, "{op}, {node}, at {site}: ")?;
        }
        self.fault.fmt(f)
    }
}

impl std::error::Error for RunError {}

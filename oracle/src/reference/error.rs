//! Errors of evaluations.

use autobatch_ir::graph::Site;
use autobatch_ir::id::NodeId;
use std::fmt;

/// Why a graph could not be evaluated, and where.
#[derive(Clone, PartialEq, Eq)]
pub struct RunError {
    /// The fault.
    pub fault: RunFault,
    /// The node at fault, if there is one.
    pub place: Option<Place>,
}

/// Where an evaluation stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The node of the graph.
    pub node: NodeId,
    /// The op that failed; inside a cell, the op of the body.
    pub op: String,
    /// The user's line of that op.
    pub site: Site,
}

/// The faults of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunFault {
    /// The weights belong to another module.
    Weights {
        /// The first parameter that differs, as declared.
        expected: String,
        /// The parameter of the weights at this position.
        found: String,
    },
    /// A pool of bindings is too short for an operand.
    Binding {
        /// `"words"` or `"floats"`.
        pool: &'static str,
        /// The length that the operand requires.
        expected: u64,
        /// The actual length.
        found: usize,
    },
    /// A bound index is not below the number of choices.
    Index {
        /// The index.
        index: u32,
        /// The number of rows or elements.
        bound: usize,
    },
    /// The lists of one op have different lengths.
    Lengths {
        /// The length of the first.
        expected: usize,
        /// The length of the other.
        found: usize,
    },
    /// The graph has more elements than the interpreter accepts.
    TooLarge {
        /// The number of elements of all nodes, including those inside cells.
        elements: u64,
        /// The maximum.
        limit: u64,
    },
    /// Cell calls are nested too deeply.
    TooDeep {
        /// The number of levels.
        depth: u32,
        /// The maximum.
        limit: u32,
    },
    /// A value to differentiate is not a float value of the graph.
    Loss {
        /// The value and its type.
        found: String,
    },
    /// The graph breaks a rule; the verifier reports details.
    Malformed(
        /// The expected and the found content.
        String,
    ),
}

/// The result of a part of an evaluation, without its place.
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
                "the graph has {elements} elements, the interpreter accepts {limit}; evaluate fewer instances"
            ),
            Self::TooDeep { depth, limit } => {
                write!(
                    f,
                    "cell calls are nested {depth} deep, the interpreter accepts {limit}; inline some cells"
                )
            }
            Self::Loss { found } => {
                write!(f, "expected a float value to differentiate, found {found}; name a scalar f32")
            }
            Self::Malformed(message) => write!(f, "the graph is malformed: {message}; verify it first"),
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

autobatch_ir::debug_as_display!(RunError);

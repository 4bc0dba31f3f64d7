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

/// The place where an evaluation stopped.
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
#[expect(missing_docs, reason = "the messages explain the fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunFault {
    /// The weights belong to another module; the first parameters that differ.
    #[error("the weights belong to another module: expected {expected}, found {found}")]
    Weights { expected: String, found: String },
    /// A pool of bindings, `"words"` or `"floats"`, is too short for an operand.
    #[error("expected at least {expected} bound {pool}, found {found}; bind a number for every input")]
    Binding { pool: &'static str, expected: u64, found: usize },
    /// An index is not below the number of rows or elements.
    #[error("expected an index below {bound}, found {index}; give an index that exists")]
    Index { index: u32, bound: usize },
    /// The lists of one op have different lengths.
    #[error(
        "the lists must have equal lengths, found {expected} and {found} values; give each value its score"
    )]
    Lengths { expected: usize, found: usize },
    /// The nodes of the graph, including those inside cells, have more elements than the interpreter accepts.
    #[error("the graph has {elements} elements, the interpreter accepts {limit}; evaluate fewer instances")]
    TooLarge { elements: u64, limit: u64 },
    /// Cell calls are nested too deeply.
    #[error("cell calls are nested {depth} deep, the interpreter accepts {limit}; inline some cells")]
    TooDeep { depth: u32, limit: u32 },
    /// A value to differentiate is not a float value of the graph.
    #[error("expected a float value to differentiate, found {found}; name a scalar f32")]
    Loss { found: String },
    /// The graph breaks a rule; the verifier reports details.
    #[error("the graph is malformed: {0}; verify it first")]
    Malformed(String),
}

autobatch_ir::debug_as_display!(RunFault);

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

//! Errors of the executor.

use crate::kernels::{IsaError, KernelError};
use autobatch_ir::NodeId;
use autobatch_ir::plan::{BindError, ComputedIndex, OverLimit};

/// The reason why a plan was not executed.
#[expect(missing_docs, reason = "the messages explain the fields")]
#[derive(thiserror::Error)]
pub enum RunError {
    /// The requested instruction set is not available.
    #[error(transparent)]
    Isa(IsaError),
    /// There are too many threads.
    #[error("expected at most {max} threads, found {found}; pass 0 for one per core")]
    Threads { max: usize, found: usize },
    /// The bindings or stores do not fit the plan.
    #[error(transparent)]
    Input(#[from] BindError),
    /// The allocation of the slabs failed.
    #[error("out of memory: the slabs of the plan take {bytes} bytes; plan fewer instances at once")]
    Memory { bytes: u64 },
    /// The allocation of temporaries failed.
    #[error(
        "out of memory: temporaries of a kernel take {bytes} bytes per thread; make values smaller, or cells of fewer ops"
    )]
    Tiles { bytes: u64 },
    /// The plan to resume does not begin with the plan executed last.
    #[error("the plan does not begin with the plan executed last; execute all of it with execute")]
    NotResumable,
    /// The plan does not pause, or another plan paused.
    #[error(
        "no pause of this plan is given; plan with arriving gradients, start the plan, and proceed with what it returned"
    )]
    NoPause,
    /// The number of parameters and states differs from the update plan.
    #[error(
        "the plan updates {expected} parameters and states, found {found}; pass the weights and states of its recipe"
    )]
    States { expected: usize, found: usize },
    /// A sparse row is outside of its table, whose gradient store has this name.
    #[error("store @{name} has {rows} rows, but sparse row {row} is listed; list rows that exist")]
    SparseRows { name: String, row: u32, rows: u32 },
    /// Gradients are accumulated, but the plan has gradients of other parameters.
    #[error(
        "gradients are accumulated, but this plan has gradients of other parameters; request the same ones of every plan"
    )]
    OtherGradients,
    /// Gradients are to be completed, but another plan was executed since.
    #[error(
        "the steps of this plan were not executed last; call execute_steps, then complete with the same plan"
    )]
    NotComplete,
    /// The plan takes more memory or work than the limits allow.
    #[error("{0}")]
    Limit(Box<OverLimit>),
    /// A weight could not be packed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// An [`Interrupt`](super::Interrupt) stopped the run.
    #[error("the interrupt of the session stopped the run; no parameter was changed")]
    Stopped,
    /// A step computed an index out of range.
    #[error(transparent)]
    Index(Box<ComputedIndex>),
    /// A step made NaN or an infinity of finite numbers; only a watch reports it. `step` is the first such step,
    /// `kernel` its kernel's name, and `element` the first such element of the result.
    #[error(
        "{kernel} in step f{step}, lane {lane}{}, made NaN or an infinity of finite numbers: element {element} of result {result}; bound its operands, or guard its divisions and logarithms",
        node.map(|node| format!(" (node {node})")).unwrap_or_default()
    )]
    NotFinite {
        step: usize,
        kernel: String,
        lane: usize,
        node: Option<NodeId>,
        result: usize,
        element: usize,
    },
}

autobatch_ir::debug_as_display!(RunError);

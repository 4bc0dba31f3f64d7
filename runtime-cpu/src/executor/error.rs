//! Errors of the executor.

use crate::kernels::{IsaError, KernelError};
use autobatch_ir::NodeId;
use autobatch_ir::plan::{BindError, OverLimit};
use std::fmt;

/// The reason why a plan was not executed.
pub enum RunError {
    /// The requested instruction set is not available.
    Isa(IsaError),
    /// There are too many threads.
    Threads {
        /// The maximum.
        max: usize,
        /// The requested number.
        found: usize,
    },
    /// The bindings or stores do not fit the plan.
    Bound(BindError),
    /// The allocation of the slabs failed.
    Memory {
        /// The bytes of the slabs.
        bytes: u64,
    },
    /// The allocation of temporaries failed.
    Tiles {
        /// The bytes of a kernel on each thread.
        bytes: u64,
    },
    /// The plan to resume does not begin with the plan executed last.
    NotResumable,
    /// The number of parameters and states differs from the update plan.
    States {
        /// The number in the plan.
        expected: usize,
        /// The given number.
        found: usize,
    },
    /// A sparse row is outside of its table.
    SparseRows {
        /// The name of the gradient store.
        name: String,
        /// The row.
        row: u32,
        /// The number of rows of the table.
        rows: u32,
    },
    /// Gradients are accumulated, but the plan has gradients of other parameters.
    OtherGradients,
    /// The plan takes more memory or work than the limits allow.
    Limit(Box<OverLimit>),
    /// A weight could not be packed.
    Kernel(KernelError),
    /// A step made NaN or an infinity of finite numbers. Only an executor with a watch reports this.
    NotFinite {
        /// The first such step.
        step: usize,
        /// The name of its kernel.
        kernel: String,
        /// The lane.
        lane: usize,
        /// The graph node of the lane, if there is one.
        node: Option<NodeId>,
        /// The result of the kernel.
        result: usize,
        /// The first element of the result that is not finite.
        element: usize,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Isa(error) => error.fmt(f),
            Self::Threads { max, found } => {
                write!(f, "expected at most {max} threads, found {found}; pass 0 for one per core")
            }
            Self::Bound(error) => error.fmt(f),
            Self::Memory { bytes } => write!(
                f,
                "out of memory: the slabs of the plan take {bytes} bytes; plan fewer instances at once"
            ),
            Self::Tiles { bytes } => write!(
                f,
                "out of memory: temporaries of a kernel take {bytes} bytes per thread; make values smaller, or cells of fewer ops"
            ),
            Self::NotResumable => {
                f.write_str("the plan does not begin with the plan executed last; execute all of it with execute")
            }
            Self::States { expected, found } => write!(
                f,
                "the plan updates {expected} parameters and states, found {found}; pass the weights and states of its recipe"
            ),
            Self::SparseRows { name, row, rows } => {
                write!(f, "store @{name} has {rows} rows, but sparse row {row} is listed; list rows that exist")
            }
            Self::OtherGradients => f.write_str(
                "gradients are accumulated, but this plan has gradients of other parameters; request the same ones of every plan",
            ),
            Self::Limit(over) => over.fmt(f),
            Self::Kernel(error) => error.fmt(f),
            Self::NotFinite { step, kernel, lane, node, result, element } => {
                write!(f, "{kernel} in step f{step}, lane {lane}")?;
                if let Some(node) = node {
                    write!(f, " (node {node})")?;
                }
                write!(
                    f,
                    ", made NaN or an infinity of finite numbers: element {element} of result {result}; bound its operands, or guard its divisions and logarithms"
                )
            }
        }
    }
}

impl std::error::Error for RunError {}

autobatch_ir::debug_as_display!(RunError);

impl From<KernelError> for RunError {
    fn from(error: KernelError) -> Self {
        Self::Kernel(error)
    }
}

impl From<BindError> for RunError {
    fn from(error: BindError) -> Self {
        Self::Bound(error)
    }
}

//! Why a plan was not executed.

use crate::kernels::{IsaError, KernelError};
use autobatch_ir::NodeId;
use autobatch_ir::plan::BindError;
use std::fmt;

/// Why a plan was not executed.
#[derive(Debug)]
pub enum RunError {
    /// The instruction set asked for is not available.
    Isa(IsaError),
    /// There are too many threads.
    Threads {
        /// The most.
        most: usize,
        /// The number asked for.
        found: usize,
    },
    /// What is given does not fit the plan.
    Bound(BindError),
    /// The slabs do not fit in memory.
    Memory {
        /// How many bytes the slabs take.
        bytes: u64,
    },
    /// What kernels keep while they are executed does not fit in memory.
    Tiles {
        /// How many bytes a kernel takes, on each thread.
        bytes: u64,
    },
    /// A plan was to be executed on from where another ended.
    NotBefore,
    /// An update plan names other parameters and states than are given.
    States {
        /// How many parameters and states the plan names.
        expected: usize,
        /// How many are given.
        found: usize,
    },
    /// A touched row is none of its table's.
    SparseRows {
        /// The name of the gradient store.
        name: String,
        /// The row.
        row: u32,
        /// How many rows there are.
        rows: u32,
    },
    /// Gradients are kept and the next plan makes those of other parameters.
    OtherGradients,
    /// The slabs take more than the executor may hold.
    Limit {
        /// How many bytes the slabs take.
        needs: u64,
        /// How many bytes they may take.
        limit: u64,
    },
    /// A weight could not be packed.
    Kernel(KernelError),
    /// A step made NaN or an infinity of finite numbers; only an executor that watches finds this.
    NotFinite {
        /// The first such step.
        step: usize,
        /// The name of its kernel.
        kernel: String,
        /// The lane.
        lane: usize,
        /// The node behind the lane, if one is.
        node: Option<NodeId>,
        /// Which result of the kernel.
        result: usize,
        /// The first element of the result that is not finite.
        element: usize,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Isa(error) => error.fmt(f),
            Self::Threads { most, found } => {
                write!(f, "expected at most {most} threads, found {found}; 0 are as many as there are cores")
            }
            Self::Bound(error) => error.fmt(f),
            Self::Memory { bytes } => write!(
                f,
                "the slabs of the plan take {bytes} bytes, which cannot be had; plan fewer instances at once"
            ),
            Self::Tiles { bytes } => write!(
                f,
                "what a kernel of the plan keeps between its stages takes {bytes} bytes a thread, which cannot be had; make values smaller, or cells of fewer ops"
            ),
            Self::NotBefore => {
                f.write_str("the plan does not begin with what was executed last; execute all of it with execute")
            }
            Self::States { expected, found } => write!(
                f,
                "the plan updates {expected} parameters and states, found {found}; give the weights and states of its recipe"
            ),
            Self::SparseRows { name, row, rows } => {
                write!(f, "store @{name} has {rows} rows, row {row} was touched; list rows that exist")
            }
            Self::OtherGradients => f.write_str(
                "gradients are kept, but this plan makes those of other parameters; ask every plan for the same ones",
            ),
            Self::Limit { needs, limit } => write!(
                f,
                "the slabs of the plan take {needs} bytes, the memory limit is {limit}; plan a smaller minibatch, or raise the limit"
            ),
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

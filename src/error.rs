//! Everything that can go wrong between emitting and reading a result.

use crate::device::UnknownDevice;
use crate::train::{CheckpointError, TrainError};
use autobatch_ir::graph::Site;
use autobatch_ir::plan::verify::VerifyErrors;
use autobatch_ir::states::StatesError;
use autobatch_ir::weights::WeightsError;
use autobatch_ir::{EmitError, Shape};
use autobatch_planner::PlanError;
use autobatch_planner::schedule::{LoadError, ParsePolicyError};
use autobatch_runtime_cpu::RunError;
use std::fmt;

/// The result of most calls of this crate; with a second type it is the standard one, so that the
/// prelude takes nothing away.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The model emitted something impossible; says the line.
    Emit(EmitError),
    /// The graph has no plan.
    Plan(PlanError),
    /// The planner made a plan that does not verify: a fault of this library.
    Verify(VerifyErrors),
    /// The plan could not be executed.
    Run(RunError),
    /// The graph could not be computed op by op.
    Reference(autobatch_oracle::reference::RunError),
    /// The plan could not be executed on a GPU.
    #[cfg(feature = "gpu")]
    Gpu(autobatch_runtime_wgpu::GpuError),
    /// A policy's word is unknown.
    Policy(ParsePolicyError),
    /// `AUTOBATCH_POLICY` holds no policy.
    PolicyVariable(ParsePolicyError),
    /// A policy's file could not be read.
    PolicyFile(LoadError),
    /// A device's word is unknown.
    Device(UnknownDevice),
    /// The value belongs to another graph than the one that is executed.
    OtherGraph {
        /// The number of the value's graph.
        value: u32,
        /// The number of the graph that is executed.
        graph: u32,
        /// Where the value was made.
        site: Option<Site>,
    },
    /// The graph stands on a module with other parameters than the session's.
    OtherModuleGraph {
        /// The graph's module.
        graph: String,
        /// The session's.
        session: String,
        /// The first parameter that differs: the graph's, and the session's.
        differs: [String; 2],
    },
    /// The values to stack have different shapes.
    Unequal {
        /// The first value's shape.
        expected: Shape,
        /// Another's.
        found: Shape,
    },
    /// Weights were made for another module.
    OtherModule,
    /// A task waits, and for no value.
    Stalled {
        /// Its place among the tasks.
        task: usize,
    },
    /// Tasks of a graph are run inside of tasks of that graph.
    Nested,
    /// A step of training was not made.
    Train(TrainError),
    /// The values of parameters could not be made.
    Weights(WeightsError),
    /// The optimiser's states could not be made.
    States(StatesError),
    /// A checkpoint was not written or not taken.
    Checkpoint(CheckpointError),
    /// A file could not be written.
    Io {
        /// Its path.
        path: std::path::PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emit(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
            Self::Verify(errors) => write!(f, "the planner made a faulty plan, please report it: {errors}"),
            Self::Run(error) => error.fmt(f),
            Self::Reference(error) => error.fmt(f),
            #[cfg(feature = "gpu")]
            Self::Gpu(error) => error.fmt(f),
            Self::Policy(error) => error.fmt(f),
            Self::PolicyVariable(error) => write!(f, "{error}; set or unset AUTOBATCH_POLICY"),
            Self::PolicyFile(error) => error.fmt(f),
            Self::Device(error) => error.fmt(f),
            Self::OtherGraph { value, graph, site } => {
                let site = site.as_ref().map_or_else(String::new, |site| format!(" made at {site}"));
                write!(
                    f,
                    "the value{site} belongs to graph {value}, and graph {graph} is executed; emit it into the graph that is executed"
                )
            }
            Self::OtherModuleGraph { graph, session, differs: [one, other] } => write!(
                f,
                "the graph stands on the module {graph}, the session on {session}, and the parameters are not the same: there {one}, here {other}; make the graph with Session::graph"
            ),
            Self::Unequal { expected, found } => {
                write!(f, "values must have one shape to be stacked, found {expected} and {found}")
            }
            Self::OtherModule => {
                f.write_str("the weights were made for another module; make them with Weights::init")
            }
            Self::Stalled { task } => write!(
                f,
                "task {task} waits for something that is no value of its graph, such as a timer or a channel; \
                 tasks wait with get() and index() alone"
            ),
            Self::Nested => f.write_str(
                "tasks of this graph are being run already; give what runs inside of them a graph of its own",
            ),
            Self::Train(error) => error.fmt(f),
            Self::Weights(error) => error.fmt(f),
            Self::States(error) => error.fmt(f),
            Self::Checkpoint(error) => error.fmt(f),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Error {}

macro_rules! from {
    ($($variant:ident($error:ty),)*) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from! {
    Emit(EmitError),
    Plan(PlanError),
    Verify(VerifyErrors),
    Run(RunError),
    Policy(ParsePolicyError),
    PolicyFile(LoadError),
    Device(UnknownDevice),
    Train(TrainError),
    Weights(WeightsError),
    States(StatesError),
    Checkpoint(CheckpointError),
}

#[cfg(feature = "gpu")]
impl From<autobatch_runtime_wgpu::GpuError> for Error {
    fn from(error: autobatch_runtime_wgpu::GpuError) -> Self {
        Self::Gpu(error)
    }
}

//! The errors between emitting a graph and reading a result.

use crate::device::UnknownDevice;
use crate::train::{CheckpointError, TrainError};
use autobatch_distributed::GroupError;
use autobatch_ir::graph::Site;
use autobatch_ir::plan::verify::VerifyErrors;
use autobatch_ir::states::StatesError;
use autobatch_ir::weights::WeightsError;
use autobatch_ir::{EmitError, Shape, ValueId};
use autobatch_planner::PlanError;
use autobatch_planner::schedule::{LoadError, ParsePolicyError};
use autobatch_runtime_cpu::RunError;
use std::fmt;

/// The result of most calls of this crate. With a second type argument it is the standard `Result`, so the
/// prelude hides nothing.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error.
#[non_exhaustive]
pub enum Error {
    /// The model emitted an invalid op; names the line.
    Emit(EmitError),
    /// The graph has no plan.
    Plan(PlanError),
    /// The planner made a plan that the verifier refuses: a fault of this library.
    Verify(VerifyErrors),
    /// The plan could not be executed.
    Run(RunError),
    /// The reference could not evaluate the graph.
    Reference(autobatch_oracle::reference::RunError),
    /// A GPU could not execute the plan.
    #[cfg(feature = "gpu")]
    Gpu(autobatch_runtime_wgpu::GpuError),
    /// Unknown policy.
    Policy(ParsePolicyError),
    /// `AUTOBATCH_POLICY` names no policy.
    PolicyVariable(ParsePolicyError),
    /// `AUTOBATCH_DUMP` names a limit that is no number.
    DumpVariable(String),
    /// The file of a policy could not be read.
    PolicyFile(LoadError),
    /// Unknown device.
    Device(UnknownDevice),
    /// The value belongs to another graph than the executed one.
    OtherGraph {
        /// The number of the value's graph.
        value: u32,
        /// The number of the executed graph.
        graph: u32,
        /// The line that emitted the value.
        site: Option<Site>,
    },
    /// The graph uses a module with other parameters than the session's.
    OtherModuleGraph {
        /// The module of the graph.
        graph: String,
        /// The module of the session.
        session: String,
        /// The first parameter that differs: the graph's, then the session's.
        differs: [String; 2],
    },
    /// The values to stack have different shapes.
    Unequal {
        /// The shape of the first value.
        expected: Shape,
        /// The shape that differs.
        found: Shape,
    },
    /// A forward pass has no float output to differentiate.
    NothingToDifferentiate,
    /// The gradient of a value arrives that is no float output of the forward pass.
    NoOutput(ValueId),
    /// The gradient of an output has another number of elements than the output.
    GradientSize {
        /// The output.
        value: ValueId,
        /// The number of its elements.
        expected: usize,
        /// The number of elements of the gradient.
        found: usize,
    },
    /// The reverse of a forward pass was executed already.
    BackwardTwice,
    /// The weights belong to another module.
    OtherModule,
    /// A search or a draw cannot order scores that hold NaN.
    Scores {
        /// The number of symbols that the sequence has.
        symbols: usize,
    },
    /// A task awaits something that is no value of the graph.
    Stalled {
        /// The task's position.
        task: usize,
    },
    /// A task of a graph runs tasks of the same graph.
    Nested,
    /// A training step failed.
    Train(TrainError),
    /// The ranks of a group do not work together.
    Group(GroupError),
    /// The values of the parameters could not be drawn.
    Weights(WeightsError),
    /// The states of the optimiser could not be made.
    States(StatesError),
    /// A checkpoint could not be written or loaded.
    Checkpoint(CheckpointError),
    /// A file could not be written.
    Io {
        /// Its path.
        path: std::path::PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}

impl Error {
    /// Returns the line of the model that the error is about, where it is about one.
    #[must_use]
    pub fn site(&self) -> Option<&Site> {
        match self {
            Self::Emit(error) => Some(&error.site),
            Self::OtherGraph { site, .. } => site.as_ref(),
            Self::Train(TrainError::Index { site, .. }) => Some(site),
            Self::Reference(error) => error.place.as_ref().map(|place| &place.site),
            _ => None,
        }
    }

    /// Returns how to fix the model, where the error says so apart from its message.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        match self {
            Self::Emit(error) => error.help.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Emit(error) => error.fmt(f),
            Self::Plan(error) => error.fmt(f),
            Self::Verify(errors) => write!(f, "the planner made an invalid plan, please report it: {errors}"),
            Self::Run(error) => error.fmt(f),
            Self::Reference(error) => error.fmt(f),
            #[cfg(feature = "gpu")]
            Self::Gpu(error) => error.fmt(f),
            Self::Policy(error) => error.fmt(f),
            Self::PolicyVariable(error) => write!(f, "{error}; set or unset AUTOBATCH_POLICY"),
            Self::DumpVariable(limit) => write!(
                f,
                "AUTOBATCH_DUMP limits the plans to `{limit}`, which is no number; write FOLDER or FOLDER:NUMBER"
            ),
            Self::PolicyFile(error) => error.fmt(f),
            Self::Device(error) => error.fmt(f),
            Self::OtherGraph { value, graph, site } => {
                let site = site.as_ref().map_or_else(String::new, |site| format!(" made at {site}"));
                write!(
                    f,
                    "the value{site} belongs to graph {value}, but graph {graph} is being executed; emit the value into that graph"
                )
            }
            Self::OtherModuleGraph { graph, session, differs: [one, other] } => write!(
                f,
                "the graph uses module {graph} and the session module {session}, and their parameters differ: {one} there, {other} here; make the graph with Session::graph"
            ),
            Self::Unequal { expected, found } => {
                write!(f, "stacked values must have one shape, found {expected} and {found}")
            }
            Self::Scores { symbols } => write!(
                f,
                "the scores behind {symbols} symbols hold NaN, so no symbol is the most probable; find its cause with Session::set_watch, or mask with minus infinity"
            ),
            Self::NothingToDifferentiate => f.write_str(
                "no output of the forward pass is a float value; ask for one, or execute the graph with run",
            ),
            Self::NoOutput(value) => write!(
                f,
                "{value} is no float output of this forward pass; pass gradients of the outputs that it was asked for"
            ),
            Self::GradientSize { value, expected, found } => write!(
                f,
                "output {value} has {expected} elements, its gradient has {found}; pass one number for each element"
            ),
            Self::BackwardTwice => f.write_str(
                "the reverse of this forward pass was executed already and reused its memory; call forward again",
            ),
            Self::OtherModule => {
                f.write_str("the weights belong to another module; make them with Weights::init")
            }
            Self::Stalled { task } => write!(
                f,
                "task {task} awaits something that is no value of its graph, such as a timer or a channel; \
                 tasks wait with get() and index() alone"
            ),
            Self::Nested => f.write_str(
                "another call is running tasks of this graph; give inner tasks a graph of their own",
            ),
            Self::Train(error) => error.fmt(f),
            Self::Group(error) => error.fmt(f),
            Self::Weights(error) => error.fmt(f),
            Self::States(error) => error.fmt(f),
            Self::Checkpoint(error) => error.fmt(f),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    /// Returns the source of the wrapped error. The message of a wrapped error is the message of this one.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Emit(error) => error.source(),
            Self::Plan(error) => error.source(),
            Self::Verify(error) => Some(error),
            Self::Run(error) => error.source(),
            Self::Reference(error) => error.source(),
            #[cfg(feature = "gpu")]
            Self::Gpu(error) => error.source(),
            Self::Policy(error) | Self::PolicyVariable(error) => error.source(),
            Self::PolicyFile(error) => error.source(),
            Self::Device(error) => error.source(),
            Self::Train(error) => error.source(),
            Self::Group(error) => error.source(),
            Self::Weights(error) => error.source(),
            Self::States(error) => error.source(),
            Self::Checkpoint(error) => error.source(),
            Self::Io { error, .. } => Some(error),
            Self::OtherGraph { .. }
            | Self::OtherModuleGraph { .. }
            | Self::Unequal { .. }
            | Self::NothingToDifferentiate
            | Self::NoOutput(_)
            | Self::GradientSize { .. }
            | Self::BackwardTwice
            | Self::OtherModule
            | Self::Scores { .. }
            | Self::Stalled { .. }
            | Self::DumpVariable(_)
            | Self::Nested => None,
        }
    }
}

autobatch_ir::debug_as_display!(Error);

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
    Group(GroupError),
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

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use std::error::Error as _;

    #[test]
    fn main_prints_the_message_of_every_error() {
        let mut m = ModuleBuilder::new("m");
        let w = m.param("w", [4, 2], Init::ZEROS);
        let mut session =
            Session::new(m.build().expect("a valid module"), Device::Cpu).expect("the CPU exists");
        let g = session.graph();
        let error = session.value(g.affine([g.input(&[1.0; 3])], w, None)).expect_err("3 is not 4");
        assert_eq!(format!("{error:?}"), error.to_string());
        assert!(format!("{error:?}").starts_with("affine: "), "{error:?}");

        let g = session.graph();
        let line = line!() + 1;
        let list = g.list([g.input(&[1.0; 3])]);
        let error = session.value(list).expect_err("a list has no row").to_string();
        assert!(error.contains(&format!("src/error.rs:{line}:")) && error.contains("is a list"), "{error}");

        let missing = std::path::Path::new("no/such/folder/file.safetensors");
        let error: Error = crate::train::read_weights(missing, session.module()).expect_err("no file").into();
        assert!(error.source().is_some());
        let text = format!("{error:?}");
        let system = std::fs::read(missing).expect_err("no file").to_string();
        assert!(text.contains("no/such/folder/file.safetensors"), "{text}");
        assert_eq!(text.matches(&system).count(), 1, "{text}");
    }
}

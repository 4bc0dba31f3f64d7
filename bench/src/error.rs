//! Errors of measurements.

use autobatch_models::catalogue::OpenError;
use std::fmt;

/// Why a measurement failed.
pub enum BenchError {
    /// The model is unknown, or an option does not fit it.
    Open(OpenError),
    /// A step failed.
    Step(autobatch::Error),
    /// The states of the optimizer could not be created.
    States(autobatch_ir::states::StatesError),
    /// Unknown mode.
    Mode(
        /// The name.
        String,
    ),
    /// Batched and unbatched execution gave different bits.
    Bits(
        /// The report.
        String,
    ),
    /// The arguments name no measurement.
    Verb(
        /// The arguments.
        String,
    ),
    /// The device does not exist, or it failed.
    Gpu(
        /// The reason.
        String,
    ),
    /// The data has no instances.
    NoInstances,
    /// The number of rounds is out of range.
    Rounds {
        /// The maximum.
        max: usize,
        /// The requested number.
        found: usize,
    },
    /// The number of threads is out of range.
    Threads {
        /// The maximum.
        max: usize,
        /// The requested number.
        found: usize,
    },
    /// The measurement does not use an option.
    Unused {
        /// The option.
        option: &'static str,
        /// The measurement.
        measurement: String,
    },
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Step(error) => error.fmt(f),
            Self::States(error) => error.fmt(f),
            Self::Mode(word) => write!(f, "unknown mode `{word}`: expected infer or train"),
            Self::Bits(report) => write!(f, "batched and unbatched execution gave different numbers; report this with the model and the processor\n{report}"),
            Self::Verb(arguments) => {
                write!(
                    f,
                    "expected the name of a model, optionally after `sweep`, `peak` or `threads`, found `{arguments}`"
                )
            }
            Self::Gpu(why) => f.write_str(why),
            Self::NoInstances => f.write_str(
                "the data has no instances; name a file with instances, or omit --peer-data to generate instances",
            ),
            Self::Rounds { max, found } => write!(f, "rounds must be 1 to {max}, found {found}"),
            Self::Threads { max, found } => write!(f, "threads must be 0 to {max}, found {found}"),
            Self::Unused { option, measurement } => {
                write!(f, "{option} is not an option of {measurement}; remove it")
            }
        }
    }
}

impl std::error::Error for BenchError {}

autobatch_ir::debug_as_display!(BenchError);

impl From<autobatch::Error> for BenchError {
    fn from(error: autobatch::Error) -> Self {
        Self::Step(error)
    }
}

impl From<OpenError> for BenchError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<autobatch_ir::states::StatesError> for BenchError {
    fn from(error: autobatch_ir::states::StatesError) -> Self {
        Self::States(error)
    }
}

macro_rules! steps {
    ($($error:ty,)*) => {$(
        impl From<$error> for BenchError {
            fn from(error: $error) -> Self {
                Self::Step(error.into())
            }
        }
    )*};
}

steps! {
    autobatch_ir::EmitError,
    autobatch_ir::plan::VerifyErrors,
    autobatch_planner::PlanError,
    autobatch_planner::schedule::LoadError,
    autobatch_planner::schedule::ParsePolicyError,
    autobatch_runtime_cpu::executor::RunError,
}

#[cfg(feature = "gpu")]
impl From<autobatch::runtime_wgpu::GpuError> for BenchError {
    fn from(error: autobatch::runtime_wgpu::GpuError) -> Self {
        Self::Gpu(error.to_string())
    }
}

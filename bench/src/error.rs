//! What can go wrong while measuring.

use autobatch_models::catalogue::OpenError;
use std::fmt;

/// Why nothing was measured.
#[derive(Debug)]
pub enum BenchError {
    /// There is no such model, or its options do not fit.
    Open(OpenError),
    /// A step failed.
    Step(autobatch::Error),
    /// An optimiser's states could not be made.
    States(autobatch_ir::states::StatesError),
    /// No mode has this name.
    Mode(
        /// The name.
        String,
    ),
    /// The words name nothing to do.
    Verb(
        /// The words.
        String,
    ),
    /// There is no such device, or it does not execute.
    Gpu(
        /// Why.
        String,
    ),
    /// The data holds no instances.
    NoInstances,
    /// The number of rounds is out of range.
    Rounds {
        /// The largest.
        most: usize,
        /// The number asked for.
        found: usize,
    },
    /// There are too many threads.
    Threads {
        /// The most.
        most: usize,
        /// The number asked for.
        found: usize,
    },
    /// An option is of no use to what is measured.
    Unused {
        /// The option.
        option: &'static str,
        /// What is measured.
        what: String,
    },
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Step(error) => error.fmt(f),
            Self::States(error) => error.fmt(f),
            Self::Mode(word) => write!(f, "unknown mode `{word}`: expected infer or train"),
            Self::Verb(words) => {
                write!(
                    f,
                    "expected a model's name, perhaps after `sweep`, `peak` or `threads`, found `{words}`"
                )
            }
            Self::Gpu(why) => f.write_str(why),
            Self::NoInstances => f.write_str(
                "the data holds no instances; give a file with at least one, or none to generate some",
            ),
            Self::Rounds { most, found } => write!(f, "rounds must be 1 to {most}, found {found}"),
            Self::Threads { most, found } => write!(f, "threads must be 0 to {most}, found {found}"),
            Self::Unused { option, what } => write!(f, "{option} is no option of {what}; leave it out"),
        }
    }
}

impl std::error::Error for BenchError {}

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

//! Why a plan was not executed on a GPU, and what to do about it.

use crate::compile::Rounds;
use autobatch_ir::plan::BindError;
use std::fmt;

/// Why a plan was not executed on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuError {
    /// No adapter fits what was asked for.
    NoAdapter {
        /// What was asked for.
        wanted: String,
        /// The adapters there are.
        found: Vec<String>,
    },
    /// The adapter lacks what every plan needs.
    Missing {
        /// The adapter.
        adapter: String,
        /// What it lacks.
        what: String,
    },
    /// The adapter gave no device.
    Refused {
        /// The adapter.
        adapter: String,
        /// What the driver said.
        reason: String,
    },
    /// The device could not give the memory.
    Memory {
        /// What for.
        what: &'static str,
        /// How many bytes.
        bytes: u64,
    },
    /// The plan takes more than the device's limits allow.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How much it takes.
        needed: u64,
        /// How much there may be.
        limit: u64,
    },
    /// A step loops longer than it may: than a software adapter does, which would stop in the middle and say
    /// nothing, or than the budget allows.
    Loops {
        /// The step of the plan; nothing for a sum of gradients behind all steps.
        step: Option<u32>,
        /// The template.
        what: &'static str,
        /// How many rounds its loops take, counted from above.
        needed: u64,
        /// How many there may be.
        limit: Rounds,
    },
    /// The device was lost: taken away, reset, or destroyed. The executor opens it again at the next run.
    Lost {
        /// What the driver said.
        reason: String,
    },
    /// A module was rejected. The fault is this crate's.
    Shader {
        /// The template.
        template: String,
        /// What was said.
        reason: String,
    },
    /// The device did not answer in time.
    Silent {
        /// How many seconds were waited.
        seconds: u64,
    },
    /// A call was rejected. The fault is this crate's.
    Rejected {
        /// What was said.
        reason: String,
    },
    /// Gradients are kept and the next plan makes those of other parameters.
    OtherGradients,
    /// A word names no kind of terms.
    Terms {
        /// The word.
        found: String,
    },
    /// What is given does not fit the plan.
    Bound(BindError),
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAdapter { wanted, found } if found.is_empty() => write!(
                f,
                "no adapter fits `{wanted}`: expected one, found none; install a Vulkan, Metal or Direct3D 12 driver (software: mesa-vulkan-drivers), or execute on the cpu"
            ),
            Self::NoAdapter { wanted, found } => write!(
                f,
                "no adapter fits `{wanted}`: found {}; name one of these, or execute on the cpu",
                found.join(", ")
            ),
            Self::Missing { adapter, what } => {
                write!(
                    f,
                    "{adapter} lacks {what}; update its driver, choose another adapter, or execute on the cpu"
                )
            }
            Self::Refused { adapter, reason } => {
                write!(
                    f,
                    "{adapter} gave no device: {reason}; close other programs that use it, or execute on the cpu"
                )
            }
            Self::Memory { what, bytes } => write!(
                f,
                "the device cannot give {bytes} bytes for {what}; plan fewer instances at once, or close other programs that use it"
            ),
            Self::TooLarge { what, needed, limit } => write!(
                f,
                "{what} take {needed} bytes, the device holds {limit} at most; plan fewer instances at once, or execute on the cpu"
            ),
            Self::Loops { step, what, needed, limit } => {
                match step {
                    Some(step) => write!(f, "step {step} of the plan ({what})")?,
                    None => write!(f, "a sum of gradients ({what})")?,
                }
                write!(f, " takes up to {needed} rounds of loops, ")?;
                match limit {
                    Rounds::OfDevice(most) => write!(
                        f,
                        "the software adapter leaves them after {most} and says nothing; execute on the cpu or on a hardware adapter"
                    ),
                    Rounds::OfBudget(most) => {
                        write!(f, "the budget allows {most}; raise Budget::rounds, or execute on the cpu")
                    }
                }
            }
            Self::Lost { reason } => write!(
                f,
                "the device was lost: {reason}; execute again, which opens it anew with the parameters as they were given; if it is lost again, plan fewer instances at once"
            ),
            Self::Shader { template, reason } => write!(
                f,
                "the module of {template} was rejected: {reason}; execute on the cpu, and report this with the adapter's name"
            ),
            Self::Silent { seconds } => write!(
                f,
                "the device did not answer for {seconds} seconds; plan fewer instances at once, or set a longer patience"
            ),
            Self::Rejected { reason } => {
                write!(
                    f,
                    "a call was rejected: {reason}; execute on the cpu, and report this with the adapter's name"
                )
            }
            Self::OtherGradients => f.write_str(
                "gradients are kept, but this plan makes those of other parameters; ask every plan for the same ones",
            ),
            Self::Terms { found } => write!(
                f,
                "{found:?} says nothing of how products are made; write whole, pairs or halves, also as AUTOBATCH_TERMS"
            ),
            Self::Bound(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GpuError {}

impl From<BindError> for GpuError {
    fn from(error: BindError) -> Self {
        Self::Bound(error)
    }
}

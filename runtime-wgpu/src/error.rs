//! Errors of the GPU runtime. Messages say what to do.

use crate::compile::LoopLimit;
use autobatch_ir::plan::BindError;
use std::fmt;

/// An error of the GPU runtime.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GpuError {
    /// No adapter matches the selection.
    NoAdapter {
        /// The selection.
        wanted: String,
        /// The names of the adapters.
        found: Vec<String>,
    },
    /// The adapter lacks something that every plan needs.
    Missing {
        /// The adapter.
        adapter: String,
        /// The missing capability.
        what: String,
    },
    /// The adapter gave no device.
    Refused {
        /// The adapter.
        adapter: String,
        /// The driver's message.
        reason: String,
    },
    /// The device has not enough memory.
    Memory {
        /// The feature that needs it.
        what: &'static str,
        /// The number of bytes.
        bytes: u64,
    },
    /// The plan exceeds a limit of the device.
    TooLarge {
        /// The thing that is too large.
        what: &'static str,
        /// The required size.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// The loops of a step exceed the limit of the software adapter, which would silently abort them, or that of the
    /// budget.
    Loops {
        /// The step of the plan, or `None` for a gradient reduction.
        step: Option<u32>,
        /// The template.
        what: &'static str,
        /// Upper bound of the loop iterations of a thread.
        needed: u64,
        /// The limit.
        limit: LoopLimit,
    },
    /// The device was lost: removed, reset, or destroyed. The next run opens it again.
    Lost {
        /// The driver's message.
        reason: String,
    },
    /// A module was rejected. This is a bug of this crate.
    Shader {
        /// The template.
        template: String,
        /// The message.
        reason: String,
    },
    /// The device did not answer in time.
    Timeout {
        /// The timeout in seconds.
        seconds: u64,
    },
    /// A call was rejected. This is a bug of this crate.
    Rejected {
        /// The message.
        reason: String,
    },
    /// Gradients accumulate, but the plan makes gradients of other parameters.
    OtherGradients,
    /// Bindings or stores do not fit the plan.
    Bound(BindError),
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAdapter { wanted, found } if found.is_empty() => write!(
                f,
                "no adapter matches `{wanted}`: expected one, found none; install a Vulkan, Metal or Direct3D 12 driver (software: mesa-vulkan-drivers), or execute on the cpu"
            ),
            Self::NoAdapter { wanted, found } => write!(
                f,
                "no adapter matches `{wanted}`: found {}; name one of these, or execute on the cpu",
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
                "{what} take {needed} bytes, the limit of the device is {limit}; plan fewer instances at once, or execute on the cpu"
            ),
            Self::Loops { step, what, needed, limit } => {
                match step {
                    Some(step) => write!(f, "step {step} of the plan ({what})")?,
                    None => write!(f, "a gradient reduction ({what})")?,
                }
                write!(f, " takes up to {needed} loop iterations, ")?;
                match limit {
                    LoopLimit::Device(max) => write!(
                        f,
                        "this software adapter silently aborts loops after {max}; execute on the cpu or on a hardware adapter"
                    ),
                    LoopLimit::Budget(max) => {
                        write!(f, "the budget allows {max}; raise Budget::iterations, or execute on the cpu")
                    }
                }
            }
            Self::Lost { reason } => write!(
                f,
                "the device was lost: {reason}; execute again, which reopens it and uploads the parameters that it is given; if it is lost again, plan fewer instances at once"
            ),
            Self::Shader { template, reason } => write!(
                f,
                "the module of {template} was rejected: {reason}; execute on the cpu, and report this with the adapter's name"
            ),
            Self::Timeout { seconds } => write!(
                f,
                "the device did not answer for {seconds} seconds; plan fewer instances at once, or set a longer timeout"
            ),
            Self::Rejected { reason } => {
                write!(
                    f,
                    "a call was rejected: {reason}; execute on the cpu, and report this with the adapter's name"
                )
            }
            Self::OtherGradients => f.write_str(
                "gradients accumulate, but this plan makes gradients of other parameters; request the same ones of every plan",
            ),
            Self::Bound(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GpuError {}

autobatch_ir::debug_as_display!(GpuError);

impl From<BindError> for GpuError {
    fn from(error: BindError) -> Self {
        Self::Bound(error)
    }
}

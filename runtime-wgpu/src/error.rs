//! Errors of the GPU runtime. Messages say what to do.

use crate::compile::LoopLimit;
use autobatch_ir::plan::{BindError, ComputedIndex};

/// An error of the GPU runtime. A `reason` is the message of the driver or of wgpu.
#[expect(missing_docs, reason = "the messages explain the fields")]
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// No adapter matches the selection. `found` names the adapters.
    #[error("no adapter matches `{selector}`: {}", adapters(found))]
    NoAdapter { selector: String, found: Vec<String> },
    /// The adapter lacks something that every plan needs.
    #[error("{adapter} lacks {what}; update its driver, choose another adapter, or execute on the cpu")]
    Missing { adapter: String, what: String },
    /// The adapter gave no device.
    #[error("{adapter} gave no device: {reason}; close other programs that use it, or execute on the cpu")]
    Refused { adapter: String, reason: String },
    /// The device has not enough memory for a feature.
    #[error(
        "the device cannot give {bytes} bytes for {what}; plan fewer instances at once, or close other programs that use it"
    )]
    Memory { what: &'static str, bytes: u64 },
    /// The plan exceeds a limit of the device.
    #[error(
        "{what} take {needed} bytes, the limit of the device is {limit}; plan fewer instances at once, or execute on the cpu"
    )]
    TooLarge { what: &'static str, needed: u64, limit: u64 },
    /// The loops of a step, or of a gradient reduction if `step` is `None`, exceed the limit of the software adapter or of
    /// the budget. `what` is the template, and `needed` an upper bound of the loop iterations of a thread.
    #[error("{} ({what}) takes up to {needed} loop iterations, {}", step_of_plan(*step), remedy(*limit))]
    Loops { step: Option<u32>, what: &'static str, needed: u64, limit: LoopLimit },
    /// The device was lost: removed, reset, or destroyed. The next run opens it again.
    #[error(
        "the device was lost: {reason}; execute again, which reopens it and uploads the parameters that it is given; if it is lost again, plan fewer instances at once"
    )]
    Lost { reason: String },
    /// The module of a template was rejected. This is a bug of this crate.
    #[error(
        "the module of {template} was rejected: {reason}; execute on the cpu, and report this with the adapter's name"
    )]
    Shader { template: String, reason: String },
    /// The device did not answer in time.
    #[error(
        "the device did not answer for {seconds} seconds; plan fewer instances at once, or set a longer timeout"
    )]
    Timeout { seconds: u64 },
    /// A call was rejected. This is a bug of this crate.
    #[error("a call was rejected: {reason}; execute on the cpu, and report this with the adapter's name")]
    Rejected { reason: String },
    /// Gradients accumulate, but the plan makes gradients of other parameters.
    #[error(
        "gradients accumulate, but this plan makes gradients of other parameters; request the same ones of every plan"
    )]
    OtherGradients,
    /// The plan divides its graph into shards.
    #[error("the plan sums gradients over {count} shards; plan without shards, or execute on the cpu")]
    Shards { count: usize },
    /// The rows of a pause are not on the device.
    #[error(
        "the rows of this pause are not on the device: another plan or an update overwrote them; compute the gradients before anything else is executed, or execute on the cpu"
    )]
    NoPause,
    /// Bindings or stores do not fit the plan.
    #[error(transparent)]
    Input(#[from] BindError),
    /// A step computed an index out of range.
    #[error(transparent)]
    Index(Box<ComputedIndex>),
}

autobatch_ir::debug_as_display!(GpuError);

impl GpuError {
    /// The error of a range whose end, in words, exceeds the 32 bits of an address.
    pub(crate) fn beyond_addresses(what: &'static str, end: u64) -> Self {
        Self::TooLarge { what, needed: end.saturating_mul(4), limit: u64::from(u32::MAX) * 4 }
    }
}

fn adapters(found: &[String]) -> String {
    match found {
        [] => "expected one, found none; install a Vulkan, Metal or Direct3D 12 driver (software: mesa-vulkan-drivers), or execute on the cpu".to_owned(),
        names => format!("found {}; name one of these, or execute on the cpu", names.join(", ")),
    }
}

fn step_of_plan(step: Option<u32>) -> String {
    step.map_or_else(|| "a gradient reduction".to_owned(), |step| format!("step {step} of the plan"))
}

fn remedy(limit: LoopLimit) -> String {
    match limit {
        LoopLimit::Device(max) => format!(
            "this software adapter silently aborts loops after {max}; execute on the cpu or on a hardware adapter"
        ),
        LoopLimit::Budget(max) => {
            format!("the budget allows {max}; raise Budget::iterations, or execute on the cpu")
        }
    }
}

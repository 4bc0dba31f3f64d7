//! What a run did, in counts that do not depend on the machine.

/// What the last run did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Dispatches that each step takes part in, in the order of the plan. Steps of a wave share them.
    pub of_steps: Vec<u32>,
    /// All dispatches: those of waves and reductions, the one that brings outputs together unless they lie together, and
    /// what brings in parameters that kernels take whole, if they changed.
    pub dispatches: u32,
    /// Submissions to the queue.
    pub submissions: u32,
    /// Bytes that went up, parameters left out.
    pub uploaded: u64,
    /// Bytes of parameters that went up.
    pub parameters: u64,
    /// Bytes that came back.
    pub read: u64,
    /// Pipelines made.
    pub pipelines: u32,
    /// Whether its commands were written before it came.
    pub was_prerecorded: bool,
}

/// What the last update did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateCounters {
    /// Dispatches.
    pub dispatches: u32,
    /// Bytes of numbers and records that went up.
    pub uploaded: u64,
    /// Bytes of parameters and states that went up, because they had changed here.
    pub stores: u64,
    /// Pipelines made.
    pub pipelines: u32,
}

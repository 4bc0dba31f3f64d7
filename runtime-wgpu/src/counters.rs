//! Counters of runs. They do not depend on the machine's speed.

/// Counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// For each step of the plan the number of dispatches that execute it. Steps of a wave share dispatches.
    pub of_steps: Vec<u32>,
    /// All dispatches: of waves and reductions, of collecting outputs, and of the prologue if it was executed.
    pub dispatches: u32,
    /// Submissions to the queue.
    pub submissions: u32,
    /// Uploaded bytes without parameters.
    pub uploaded: u64,
    /// Uploaded bytes of parameters.
    pub parameters: u64,
    /// Bytes read back.
    pub read: u64,
    /// Pipelines built.
    pub pipelines: u32,
    /// True if the run used commands that were recorded before it.
    pub was_prerecorded: bool,
}

/// Counters of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateCounters {
    /// Dispatches.
    pub dispatches: u32,
    /// Uploaded bytes of numbers and records.
    pub uploaded: u64,
    /// Uploaded bytes of parameters and states that the host changed.
    pub stores: u64,
    /// Pipelines built.
    pub pipelines: u32,
}

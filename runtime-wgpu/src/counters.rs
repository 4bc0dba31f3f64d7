//! What a play did, in counts that do not depend on the machine.

/// What the last play did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Dispatches of each step, in the order of the plan.
    pub of_steps: Vec<u32>,
    /// All dispatches: those of steps and finals, and the one that brings outputs together.
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

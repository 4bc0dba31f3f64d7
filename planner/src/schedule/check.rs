//! The independent check of an order. It reads only the problem and the batches and shares no code with the policies.
//!
//! Cost: O(jobs + operands), one allocation. Debug builds can afford it always, release builds for orders from outside.

use super::{Batches, Problem};
use crate::ids::JobId;

/// Checks that `batches` is a valid order of `problem`. The rules are:
/// 1. offsets start at 0, rise strictly and end at the number of items;
/// 2. every job occurs exactly once;
/// 3. items ascend inside a batch;
/// 4. the jobs of a batch have one type, and an alone job is a batch of its own;
/// 5. every operand of a job is in an earlier batch.
///
/// # Errors
/// The first rule that the order breaks.
pub fn check(problem: &Problem<'_>, batches: &Batches) -> Result<(), ScheduleError> {
    let items = &batches.items;
    let offsets_ok = match (batches.start.first(), batches.start.last()) {
        (Some(0), Some(&last)) => {
            last as usize == items.len() && batches.start.windows(2).all(|pair| pair[0] < pair[1])
        }
        _ => false,
    };
    if !offsets_ok {
        return broken(1, format!("batch offsets must rise strictly from 0 to {}", items.len()));
    }
    let batch_of = place(problem, batches)?;
    for (batch, jobs) in batches.iter().enumerate() {
        if let Some(pair) = jobs.windows(2).find(|pair| pair[0] >= pair[1]) {
            return broken(3, format!("batch {batch} is not ascending at job {}", pair[1]));
        }
        let first = jobs[0];
        let mixed = |&&job: &&JobId| problem.ty_of(job) != problem.ty_of(first);
        if let Some(&job) = jobs.iter().find(mixed) {
            return broken(4, format!("batch {batch} holds jobs {first} and {job} of different types"));
        }
    }
    for &job in problem.alone() {
        let batch = batch_of[job.index()] as usize;
        if batches.get(batch).len() != 1 {
            return broken(4, format!("batch {batch} holds other jobs besides the alone job {job}"));
        }
    }
    for job in problem.jobs() {
        for operand in problem.operands(job) {
            if batch_of[operand.index()] >= batch_of[job.index()] {
                let batch = batch_of[job.index()];
                return broken(5, format!("operand {operand} of job {job} is not in a batch before {batch}"));
            }
        }
    }
    Ok(())
}

/// Checks rule 2 and returns the batch of every job.
fn place(problem: &Problem<'_>, batches: &Batches) -> Result<Vec<u32>, ScheduleError> {
    const NOWHERE: u32 = u32::MAX;
    let mut batch_of = vec![NOWHERE; problem.len()];
    for (batch, jobs) in batches.iter().enumerate() {
        for &job in jobs {
            match batch_of.get_mut(job.index()) {
                None => return broken(2, format!("batch {batch} holds {job}, which is not a job")),
                Some(place) if *place != NOWHERE => {
                    return broken(2, format!("batch {batch} holds job {job}, which an earlier batch holds"));
                }
                Some(place) => *place = batch as u32,
            }
        }
    }
    match batch_of.iter().position(|&batch| batch == NOWHERE) {
        Some(job) => broken(2, format!("job {job} is in no batch")),
        None => Ok(batch_of),
    }
}

/// The first rule that an order breaks, with the batch and job.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule {rule}: {message}")]
pub struct ScheduleError {
    rule: u8,
    message: String,
}

impl ScheduleError {
    /// The number of the rule in the documentation of [`check`].
    #[must_use]
    pub fn rule(&self) -> u8 {
        self.rule
    }
}

autobatch_ir::debug_as_display!(ScheduleError);

fn broken<T>(rule: u8, message: String) -> Result<T, ScheduleError> {
    Err(ScheduleError { rule, message })
}

//! The independent check of an order: reads only the problem and the batches, shares no code with any policy.
//!
//! An order is valid iff
//! 1. its offsets start at 0, rise strictly (no empty batch) and end at the number of items;
//! 2. every job occurs exactly once;
//! 3. items are ascending inside a batch;
//! 4. the jobs of a batch have one type, and an alone job is a batch of its own;
//! 5. every operand of a job stands in an earlier batch (so there is no dependence inside a batch either).
//!
//! Cost: O(jobs + operands), one allocation. Cheap enough for every debug build and for release where an order comes from
//! outside.

use super::{Batches, Problem};
use std::fmt;

/// Proves that `batches` is a valid order of `problem`, or names the first rule it breaks.
pub fn check(problem: &Problem<'_>, batches: &Batches) -> Result<(), ScheduleError> {
    let items = &batches.items;
    let offsets_ok = match (batches.start.first(), batches.start.last()) {
        (Some(0), Some(&last)) => {
            last as usize == items.len() && batches.start.windows(2).all(|pair| pair[0] < pair[1])
        }
        _ => false,
    };
    if !offsets_ok {
        return Err(ScheduleError::Offsets { items: items.len() });
    }
    let batch_of = place(problem, batches)?;
    for (batch, jobs) in batches.iter().enumerate() {
        if let Some(pair) = jobs.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(ScheduleError::NotAscending { batch, job: pair[1] });
        }
        let first = jobs[0];
        let mixed = |&&job: &&u32| problem.ty()[job as usize] != problem.ty()[first as usize];
        if let Some(&job) = jobs.iter().find(mixed) {
            return Err(ScheduleError::MixedTypes { batch, first, job });
        }
    }
    for &job in problem.alone() {
        let batch = batch_of[job as usize] as usize;
        if batches.get(batch).len() != 1 {
            return Err(ScheduleError::NotAlone { batch, job });
        }
    }
    for job in 0..problem.len() {
        for &operand in problem.operands(job) {
            if batch_of[operand as usize] >= batch_of[job] {
                return Err(ScheduleError::OperandTooLate {
                    job: job as u32,
                    operand,
                    batch: batch_of[job] as usize,
                });
            }
        }
    }
    Ok(())
}

/// Rule 2; gives the batch of every job.
fn place(problem: &Problem<'_>, batches: &Batches) -> Result<Vec<u32>, ScheduleError> {
    const NOWHERE: u32 = u32::MAX;
    let mut batch_of = vec![NOWHERE; problem.len()];
    for (batch, jobs) in batches.iter().enumerate() {
        for &job in jobs {
            match batch_of.get_mut(job as usize) {
                None => return Err(ScheduleError::NoSuchJob { batch, job }),
                Some(place) if *place != NOWHERE => return Err(ScheduleError::Twice { batch, job }),
                Some(place) => *place = batch as u32,
            }
        }
    }
    match batch_of.iter().position(|&batch| batch == NOWHERE) {
        Some(job) => Err(ScheduleError::Missing { job: job as u32 }),
        None => Ok(batch_of),
    }
}

/// The first rule that an order breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// Rule 1.
    Offsets {
        /// How many items the offsets must span.
        items: usize,
    },
    /// Rule 2: an item is not a job.
    NoSuchJob {
        /// The batch.
        batch: usize,
        /// The item.
        job: u32,
    },
    /// Rule 2: a job occurs again.
    Twice {
        /// The batch of the second occurrence.
        batch: usize,
        /// The job.
        job: u32,
    },
    /// Rule 2: a job is in no batch.
    Missing {
        /// The job.
        job: u32,
    },
    /// Rule 3.
    NotAscending {
        /// The batch.
        batch: usize,
        /// The job that stands after a larger one.
        job: u32,
    },
    /// Rule 4: two types in one batch.
    MixedTypes {
        /// The batch.
        batch: usize,
        /// Its first job.
        first: u32,
        /// A job of another type.
        job: u32,
    },
    /// Rule 4: an alone job has company.
    NotAlone {
        /// The batch.
        batch: usize,
        /// The alone job.
        job: u32,
    },
    /// Rule 5.
    OperandTooLate {
        /// The job.
        job: u32,
        /// The operand that is not earlier.
        operand: u32,
        /// The job's batch.
        batch: usize,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offsets { items } => {
                write!(f, "rule 1: batch offsets must rise strictly from 0 to {items}")
            }
            Self::NoSuchJob { batch, job } => {
                write!(f, "rule 2: batch {batch} holds {job}, which is not a job")
            }
            Self::Twice { batch, job } => {
                write!(f, "rule 2: batch {batch} holds job {job}, which is already placed")
            }
            Self::Missing { job } => write!(f, "rule 2: job {job} is in no batch"),
            Self::NotAscending { batch, job } => {
                write!(f, "rule 3: batch {batch} is not ascending at job {job}")
            }
            Self::MixedTypes { batch, first, job } => {
                write!(f, "rule 4: batch {batch} holds jobs {first} and {job} of different types")
            }
            Self::NotAlone { batch, job } => {
                write!(f, "rule 4: batch {batch} gives company to the alone job {job}")
            }
            Self::OperandTooLate { job, operand, batch } => {
                write!(f, "rule 5: operand {operand} of job {job} is not in a batch before {batch}")
            }
        }
    }
}

impl std::error::Error for ScheduleError {}

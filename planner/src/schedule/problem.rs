//! The scheduling problem: jobs in topological order, a small type number each, and their operands.
//!
//! A problem knows nothing of the graph language. Two jobs may share a batch iff they have the same type, neither is marked
//! *alone*, and neither depends on the other. Whoever fills a problem decides what a type is: a signature, a cell, an op.
//!
//! [`Problem::new`] checks every rule below once, in one scan, so that no policy has to defend itself:
//! 1. `ty` holds one type number per job, each smaller than `types`;
//! 2. `types` is at most jobs + [`SPARE_TYPES`], so that arrays over types stay small;
//! 3. `operand_start` holds jobs + 1 offsets, from 0, never falling, up to the length of `operands`;
//! 4. an operand is an earlier job (the same operand may be named more than once);
//! 5. `alone` is strictly ascending and names jobs.

use super::StepCost;
use std::fmt;

/// How far the type count may exceed the job count: a delta of a large graph may use few of its types.
pub const SPARE_TYPES: u32 = 1 << 16;

/// The most jobs of a problem: job counts fit a signed 32-bit number, and marks fit above them.
const MOST_NODES: usize = i32::MAX as usize;

/// A checked scheduling problem; see the module documentation for its rules.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    types: u32,
    ty: &'a [u32],
    alone: &'a [u32],
    operand_start: &'a [u32],
    operands: &'a [u32],
    costs: &'a [StepCost],
    names: &'a [u64],
}

impl<'a> Problem<'a> {
    /// Checks the rules and wraps the slices; costs one scan of `ty` and `operands`.
    ///
    /// `alone` lists, ascending, the jobs that must be a batch of their own. The operands of job `v` are
    /// `operands[operand_start[v]..operand_start[v + 1]]`.
    pub fn new(
        types: u32,
        ty: &'a [u32],
        alone: &'a [u32],
        operand_start: &'a [u32],
        operands: &'a [u32],
    ) -> Result<Self, ProblemError> {
        let jobs = ty.len();
        if jobs > MOST_NODES {
            return Err(ProblemError::TooManyJobs { jobs });
        }
        if types > jobs as u32 + SPARE_TYPES {
            return Err(ProblemError::TooManyTypes { types, jobs });
        }
        if let Some(job) = ty.iter().position(|&t| t >= types) {
            return Err(ProblemError::TypeOutOfRange { job, ty: ty[job], types });
        }
        check_operands(jobs, operand_start, operands)?;
        for (at, &job) in alone.iter().enumerate() {
            if job as usize >= jobs || (at > 0 && alone[at - 1] >= job) {
                return Err(ProblemError::AloneOutOfOrder { at, job });
            }
        }
        Ok(Self { types, ty, alone, operand_start, operands, costs: &[], names: &[] })
    }

    /// [`Problem::new`] for slices that are known to keep the rules; builds with debug assertions look nevertheless.
    pub(crate) fn trusted(
        types: u32,
        ty: &'a [u32],
        alone: &'a [u32],
        operand_start: &'a [u32],
        operands: &'a [u32],
    ) -> Self {
        debug_assert_eq!(Self::new(types, ty, alone, operand_start, operands).map(drop), Ok(()));
        Self { types, ty, alone, operand_start, operands, costs: &[], names: &[] }
    }

    /// The problem with what a batch of every type costs. Types beyond the end of `costs` have none.
    #[must_use]
    pub fn with_costs(self, costs: &'a [StepCost]) -> Self {
        Self { costs, ..self }
    }

    /// What a batch of each of the first types costs; empty if nobody said.
    pub fn costs(&self) -> &'a [StepCost] {
        self.costs
    }

    /// The problem with a name for every type, which means the same in every problem whose types have names. Types beyond the
    /// end of `names` are called by their numbers.
    #[must_use]
    pub fn with_names(self, names: &'a [u64]) -> Self {
        Self { names, ..self }
    }

    /// What a type is called.
    #[inline]
    pub fn name(&self, ty: u32) -> u64 {
        self.names.get(ty as usize).copied().unwrap_or(ty.into())
    }

    /// Number of jobs.
    pub fn len(&self) -> usize {
        self.ty.len()
    }

    /// Whether there is nothing to schedule.
    pub fn is_empty(&self) -> bool {
        self.ty.is_empty()
    }

    /// Number of type numbers; not every one need be used.
    pub fn types(&self) -> u32 {
        self.types
    }

    /// The type of every job.
    pub fn ty(&self) -> &'a [u32] {
        self.ty
    }

    /// The jobs that must be a batch of their own, ascending.
    pub fn alone(&self) -> &'a [u32] {
        self.alone
    }

    /// The operands of a job, in the order given; one may occur more than once.
    ///
    /// # Panics
    /// If `job` is not smaller than [`Problem::len`].
    #[inline]
    pub fn operands(&self, job: usize) -> &'a [u32] {
        &self.operands[self.operand_start[job] as usize..self.operand_start[job + 1] as usize]
    }

    /// The operands of job after job.
    pub(super) fn operand_lists(&self) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        lists(self.operand_start, self.operands)
    }

    /// Number of operand occurrences in the whole problem.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }
}

/// List after list of those that lie side by side, from the offsets where they begin and end.
pub(super) fn lists<'a>(start: &'a [u32], items: &'a [u32]) -> impl Iterator<Item = &'a [u32]> + use<'a> {
    let mut rest = items;
    start.windows(2).map(move |ends| {
        let (own, after) = rest.split_at((ends[1] - ends[0]) as usize);
        rest = after;
        own
    })
}

/// Rules 3 and 4.
fn check_operands(jobs: usize, start: &[u32], operands: &[u32]) -> Result<(), ProblemError> {
    if start.len() != jobs + 1 {
        return Err(ProblemError::OffsetCount { expected: jobs + 1, found: start.len() });
    }
    if start[0] != 0 || start[jobs] as usize != operands.len() {
        return Err(ProblemError::OffsetEnds {
            first: start[0],
            last: start[jobs],
            operands: operands.len(),
        });
    }
    for job in 0..jobs {
        let (from, to) = (start[job] as usize, start[job + 1] as usize);
        let Some(own) = operands.get(from..to) else {
            return Err(ProblemError::OffsetFalls { job });
        };
        if let Some(&operand) = own.iter().find(|&&operand| operand as usize >= job) {
            return Err(ProblemError::OperandNotEarlier { job, operand });
        }
    }
    Ok(())
}

/// Why slices do not form a [`Problem`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemError {
    /// Job numbers must fit in 31 bits.
    TooManyJobs {
        /// How many jobs were given.
        jobs: usize,
    },
    /// Type numbers are not dense (rule 2).
    TooManyTypes {
        /// The type count given.
        types: u32,
        /// How many jobs were given.
        jobs: usize,
    },
    /// A job's type number is not smaller than the type count (rule 1).
    TypeOutOfRange {
        /// The job.
        job: usize,
        /// Its type number.
        ty: u32,
        /// The type count.
        types: u32,
    },
    /// `operand_start` has the wrong length (rule 3).
    OffsetCount {
        /// Jobs + 1.
        expected: usize,
        /// The length given.
        found: usize,
    },
    /// `operand_start` does not span `operands` (rule 3).
    OffsetEnds {
        /// Its first offset.
        first: u32,
        /// Its last offset.
        last: u32,
        /// The length of `operands`.
        operands: usize,
    },
    /// The offsets of a job fall or leave the operand list (rule 3).
    OffsetFalls {
        /// The job.
        job: usize,
    },
    /// A job names itself or a later job as operand (rule 4).
    OperandNotEarlier {
        /// The job.
        job: usize,
        /// The operand.
        operand: u32,
    },
    /// The list of alone jobs is not strictly ascending, or names no job (rule 5).
    AloneOutOfOrder {
        /// Position in the list.
        at: usize,
        /// The job listed there.
        job: u32,
    },
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyJobs { jobs } => {
                write!(
                    f,
                    "scheduling problem has {jobs} jobs, expected at most {MOST_NODES}; split the graph"
                )
            }
            Self::TooManyTypes { types, jobs } => write!(
                f,
                "scheduling problem has {types} types for {jobs} jobs, expected at most {SPARE_TYPES} more types than \
                 jobs; number the types densely"
            ),
            Self::TypeOutOfRange { job, ty, types } => {
                write!(f, "job {job} has type {ty}, expected a number below the type count {types}")
            }
            Self::OffsetCount { expected, found } => {
                write!(f, "operand offsets: expected {expected} (jobs + 1), found {found}")
            }
            Self::OffsetEnds { first, last, operands } => {
                write!(f, "operand offsets: expected to run from 0 to {operands}, found {first} to {last}")
            }
            Self::OffsetFalls { job } => write!(
                f,
                "operand offsets of job {job}: expected a range inside the operand list, found one that falls or leaves it"
            ),
            Self::OperandNotEarlier { job, operand } => {
                write!(
                    f,
                    "job {job} has operand {operand}, expected an earlier job; number jobs in topological order"
                )
            }
            Self::AloneOutOfOrder { at, job } => {
                write!(f, "alone list: entry {at} is {job}, expected strictly ascending job numbers")
            }
        }
    }
}

impl std::error::Error for ProblemError {}

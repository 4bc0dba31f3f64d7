//! The scheduling problem: jobs in topological order with a small type number each, and their operands.
//!
//! A problem knows nothing of the graph language. Two jobs may share a batch iff they have the same type, neither is *alone*, and
//! neither depends on the other. The builder of a problem decides what a type is: a signature, a cell, or an op.
//!
//! [`Problem::new`] checks its rules once, in one scan, so policies rely on them.

use super::StepCost;
use super::operand_lists::{JobOperand, NO_LISTS, OperandLists};
use crate::ids::{JobId, TypeIndex};
use bytemuck::TransparentWrapper;

/// Largest excess of the type count over the job count. A delta of a large graph may use few of its types.
pub const MAX_SPARE_TYPES: u32 = 1 << 16;

/// Largest number of jobs. Job counts fit a signed 32-bit number, and one bit stays free for marks.
const MAX_JOBS: usize = i32::MAX as usize;

/// A checked scheduling problem; see [`Problem::new`] for its rules.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    types: u32,
    ty: &'a [TypeIndex],
    alone: &'a [JobId],
    operand_start: &'a [u32],
    operands: &'a [JobOperand],
    lists: &'a OperandLists,
    costs: &'a [StepCost],
    names: &'a [u64],
    executions: f64,
}

impl<'a> Problem<'a> {
    /// Checks the rules with one scan of `ty` and `operands` and wraps the slices. `alone` lists the jobs that must be a batch of
    /// their own. The operands of job `v` are `operands[operand_start[v]..operand_start[v + 1]]`. The rules are:
    /// 1. `ty` holds one type number per job, each smaller than `types`, for fewer than 2^31 jobs;
    /// 2. `types` is at most jobs + [`MAX_SPARE_TYPES`];
    /// 3. `operand_start` holds jobs + 1 offsets, from 0, never falling, up to the length of `operands`;
    /// 4. an operand is an earlier job (the same operand may occur more than once);
    /// 5. `alone` ascends strictly and names jobs.
    ///
    /// # Errors
    /// The first rule that the slices break.
    pub fn new(
        types: u32,
        ty: &'a [TypeIndex],
        alone: &'a [JobId],
        operand_start: &'a [u32],
        operands: &'a [JobId],
    ) -> Result<Self, ProblemError> {
        let jobs = ty.len();
        if jobs > MAX_JOBS {
            return broken(1, format!("{jobs} jobs, expected at most {MAX_JOBS}; split the graph"));
        }
        if types > jobs as u32 + MAX_SPARE_TYPES {
            return broken(
                2,
                format!(
                    "{types} types for {jobs} jobs, expected at most {MAX_SPARE_TYPES} more types than jobs; number the \
                     types densely"
                ),
            );
        }
        if let Some(job) = ty.iter().position(|ty| ty.0 >= types) {
            return broken(1, format!("job {job} has type {}, expected a number below {types}", ty[job].0));
        }
        check_operands(jobs, operand_start, operands)?;
        for (at, &job) in alone.iter().enumerate() {
            if job.index() >= jobs || (at > 0 && alone[at - 1] >= job) {
                return broken(
                    5,
                    format!(
                        "entry {at} of the alone list is {}, expected strictly ascending job numbers",
                        job.0
                    ),
                );
            }
        }
        Ok(Self::unchecked(types, ty, alone, operand_start, JobOperand::wrap_slice(operands), &NO_LISTS))
    }

    /// [`Problem::new`] for slices that keep the rules; operands may name lists. Only debug builds check them, if there are
    /// no lists.
    pub(crate) fn trusted(
        types: u32,
        ty: &'a [TypeIndex],
        alone: &'a [JobId],
        operand_start: &'a [u32],
        operands: &'a [JobOperand],
        lists: &'a OperandLists,
    ) -> Self {
        if lists.is_empty() {
            let operands = JobOperand::peel_slice(operands);
            debug_assert_eq!(Self::new(types, ty, alone, operand_start, operands).map(drop), Ok(()));
        }
        Self::unchecked(types, ty, alone, operand_start, operands, lists)
    }

    /// A problem without costs and names.
    fn unchecked(
        types: u32,
        ty: &'a [TypeIndex],
        alone: &'a [JobId],
        operand_start: &'a [u32],
        operands: &'a [JobOperand],
        lists: &'a OperandLists,
    ) -> Self {
        Self { types, ty, alone, operand_start, operands, lists, costs: &[], names: &[], executions: 1.0 }
    }

    /// Sets how often the plan is expected to be executed. [`Auto`](super::Auto) searches longer for a plan that is executed
    /// often.
    #[must_use]
    pub fn with_executions(self, executions: f64) -> Self {
        Self { executions, ..self }
    }

    /// The expected number of executions; 1 if none was set.
    #[must_use]
    pub fn executions(&self) -> f64 {
        self.executions
    }

    /// Adds the cost of a batch of every type. Types beyond the end of `costs` have none.
    #[must_use]
    pub fn with_costs(self, costs: &'a [StepCost]) -> Self {
        Self { costs, ..self }
    }

    /// The costs of the first types; empty if none were added.
    pub fn costs(&self) -> &'a [StepCost] {
        self.costs
    }

    /// Adds a name for every type. A name means the same type in all problems. A type beyond the end of `names` has its number as
    /// name.
    #[must_use]
    pub fn with_names(self, names: &'a [u64]) -> Self {
        Self { names, ..self }
    }

    /// The name of a type.
    #[inline]
    pub fn name(&self, ty: TypeIndex) -> u64 {
        self.names.get(ty.index()).copied().unwrap_or(ty.0.into())
    }

    /// Number of jobs.
    pub fn len(&self) -> usize {
        self.ty.len()
    }

    /// Whether the problem has no jobs.
    pub fn is_empty(&self) -> bool {
        self.ty.is_empty()
    }

    /// Number of type numbers, used or not.
    pub fn types(&self) -> u32 {
        self.types
    }

    /// The jobs in topological order.
    pub fn jobs(&self) -> impl DoubleEndedIterator<Item = JobId> + ExactSizeIterator + Clone + use<> {
        (0..self.ty.len() as u32).map(JobId)
    }

    /// The type of a job.
    ///
    /// # Panics
    /// If the problem has no such job.
    #[inline]
    pub fn ty_of(&self, job: JobId) -> TypeIndex {
        self.ty[job.index()]
    }

    /// The type of every job.
    pub fn ty(&self) -> &'a [TypeIndex] {
        self.ty
    }

    /// The jobs that must be a batch of their own, ascending.
    pub fn alone(&self) -> &'a [JobId] {
        self.alone
    }

    /// The operands of a job in their given order, with repetitions.
    ///
    /// # Panics
    /// If the problem has no such job.
    #[inline]
    pub fn operands(&self, job: JobId) -> impl Iterator<Item = JobId> + Clone + use<'a> {
        self.lists.written_out(self.named_operands(job))
    }

    /// The operands of a job, of which one may name a list.
    #[inline]
    pub(super) fn named_operands(&self, job: JobId) -> &'a [JobOperand] {
        let job = job.index();
        &self.operands[self.operand_start[job] as usize..self.operand_start[job + 1] as usize]
    }

    /// The lists that operands name.
    pub(super) fn lists(&self) -> &'a OperandLists {
        self.lists
    }

    /// The operands of all jobs, in job order, of which one may name a list.
    pub(super) fn all_operands(&self) -> impl Iterator<Item = &'a [JobOperand]> + use<'a> {
        lists(self.operand_start, self.operands)
    }

    /// Number of operand occurrences in the whole problem, where a long list that a job names counts once.
    pub(super) fn named_operand_count(&self) -> usize {
        self.operands.len()
    }

    /// Number of operand occurrences in the whole problem.
    pub fn operand_count(&self) -> usize {
        match self.lists.is_empty() {
            true => self.operands.len(),
            false => self.operands.iter().map(|&operand| self.lists.jobs_of(operand) as usize).sum(),
        }
    }
}

/// Consecutive lists in one slice, cut at the offsets `start`.
pub(super) fn lists<'a, T>(start: &'a [u32], items: &'a [T]) -> impl Iterator<Item = &'a [T]> + use<'a, T> {
    let mut rest = items;
    start.windows(2).map(move |ends| {
        let (own, after) = rest.split_at((ends[1] - ends[0]) as usize);
        rest = after;
        own
    })
}

/// Checks rules 3 and 4.
fn check_operands(jobs: usize, start: &[u32], operands: &[JobId]) -> Result<(), ProblemError> {
    if start.len() != jobs + 1 {
        return broken(3, format!("{} operand offsets, expected {} (jobs + 1)", start.len(), jobs + 1));
    }
    if start[0] != 0 || start[jobs] as usize != operands.len() {
        let (first, last, expected) = (start[0], start[jobs], operands.len());
        return broken(3, format!("operand offsets run from {first} to {last}, expected 0 to {expected}"));
    }
    for job in 0..jobs {
        let (from, to) = (start[job] as usize, start[job + 1] as usize);
        let Some(own) = operands.get(from..to) else {
            return broken(3, format!("operand offsets of job {job} fall, or leave the operand list"));
        };
        if let Some(&operand) = own.iter().find(|operand| operand.index() >= job) {
            return broken(
                4,
                format!(
                    "job {job} has operand {}, expected an earlier job; number jobs in topological order",
                    operand.0
                ),
            );
        }
    }
    Ok(())
}

/// The first rule that slices break, so that they form no [`Problem`].
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("scheduling problem: {message}")]
pub struct ProblemError {
    rule: u8,
    message: String,
}

impl ProblemError {
    /// The number of the rule in the documentation of [`Problem::new`].
    #[must_use]
    pub fn rule(&self) -> u8 {
        self.rule
    }
}

autobatch_ir::debug_as_display!(ProblemError);

fn broken<T>(rule: u8, message: String) -> Result<T, ProblemError> {
    Err(ProblemError { rule, message })
}

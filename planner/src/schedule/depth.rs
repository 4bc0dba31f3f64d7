//! Policy `depth`: jobs of one depth and type run together.
//!
//! **Rule.** depth(v) = 1 + the largest depth of an operand, and 0 without operands. Batches run in order of (depth,
//! type). TensorFlow Fold, TorchFold, MXNet Fold and the second strategy of DyNet use this rule. **Needs** a checked
//! problem. **Ensures** a valid order, because an operand has less depth than its consumer. Jobs marked `.alone()`
//! follow the batch of their depth and type.
//!
//! **How.** One forward scan computes depths; two stable counting sorts order by type, then by depth. **Cost** O(jobs +
//! operands). **Weakness**: jobs of one type at different depths never share a batch, even if all are ready. So
//! lattices and ragged trees need two to three times the batches of a good order.

use super::batches::Spare;
use super::operand_lists::{JobOperand, ListMaxima};
use super::part::Part;
use super::scratch::Steps;
use super::{Batches, Problem, Schedule, Scratch, StopReason, builtin};
use crate::ids::{Id, JobId, KindId, LocalJob};
use crate::lists::{by_key, group};
use bytemuck::TransparentWrapper;

/// Batches by depth and type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Depth;

impl Schedule for Depth {
    builtin!("depth");

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let mut memory = scratch.take::<Memory>();
        let (Memory { depth, sorting, rest, lists }, spare) = (&mut *memory, &mut scratch.spare);
        let Spare { mut start, items: mut sorted } = std::mem::take(spare);
        let deepest = depths_in_problem(problem, depth, lists);
        sorting.sort(problem.ty(), depth, [problem.types(), deepest], &mut sorted);
        start.clear();
        start.push(0);
        let mut alone = Alone { rest, list: problem.alone() };
        let mut from = 0;
        while from < sorted.len() {
            let first = sorted[from];
            let run = sorted[from..]
                .iter()
                .take_while(|&&job| {
                    depth[job.index()] == depth[first.index()] && problem.ty_of(job) == problem.ty_of(first)
                })
                .count();
            alone.move_to_end(&mut sorted[from..from + run]);
            let together = run - alone.rest.len();
            if together > 0 {
                start.push((from + together) as u32);
            }
            start.extend((together + 1..=run).map(|end| (from + end) as u32));
            from += run;
        }
        scratch.put(memory);
        Batches { start, items: sorted, bound: None, why: StopReason::Rule }
    }
}

/// Reused memory of the policy.
#[derive(Default)]
struct Memory {
    depth: Vec<u32>,
    sorting: Sorting<JobId>,
    /// The alone jobs of a run.
    rest: Vec<JobId>,
    lists: ListMaxima,
}

/// Reused memory of [`order_by_depth`].
#[derive(Default)]
pub(super) struct PartMemory {
    depth: Vec<u32>,
    sorting: Sorting<LocalJob>,
    sorted: Vec<LocalJob>,
}

/// Reused memory of a sort by depth and type.
#[derive(Default)]
struct Sorting<J> {
    by_type: Vec<J>,
    counts: Vec<u32>,
}

/// Separates the alone jobs of a run.
struct Alone<'a> {
    list: &'a [JobId],
    /// The alone jobs of the last run.
    rest: &'a mut Vec<JobId>,
}

impl Alone<'_> {
    /// Moves the alone jobs of a run behind the others; both keep their order.
    fn move_to_end(&mut self, run: &mut [JobId]) {
        self.rest.clear();
        if self.list.is_empty() {
            return;
        }
        let mut end = 0;
        for at in 0..run.len() {
            if self.list.binary_search(&run[at]).is_ok() {
                self.rest.push(run[at]);
            } else {
                run[end] = run[at];
                end += 1;
            }
        }
        run[end..].copy_from_slice(self.rest);
    }
}

/// Computes the depth of every job of a problem, from 0, and returns the number of depths.
fn depths_in_problem(problem: &Problem<'_>, depth: &mut Vec<u32>, known: &mut ListMaxima) -> u32 {
    if problem.lists().is_empty() {
        return depths(problem.jobs(), |job| JobOperand::peel_slice(problem.named_operands(job)), depth);
    }
    known.clear();
    depth.clear();
    let mut deepest = 0;
    for job in problem.jobs() {
        let below = |operand: JobId| depth[operand.index()] + 1;
        let operands = problem.named_operands(job).iter();
        let own = operands
            .map(|&operand| known.of(problem.lists(), operand, KindId::ANY, below))
            .max()
            .unwrap_or(0);
        depth.push(own);
        deepest = deepest.max(own + 1);
    }
    deepest
}

/// Computes the depth of every job, from 0, and returns the number of depths.
pub(super) fn depths<'a, J: Id + 'a>(
    jobs: impl ExactSizeIterator<Item = J>,
    operands: impl Fn(J) -> &'a [J],
    depth: &mut Vec<u32>,
) -> u32 {
    depth.clear();
    depth.resize(jobs.len(), 0);
    let mut deepest = 0;
    for job in jobs {
        let own = operands(job).iter().map(|operand| depth[operand.to_index()] + 1).max().unwrap_or(0);
        depth[job.to_index()] = own;
        deepest = deepest.max(own + 1);
    }
    deepest
}

impl<J: Id> Sorting<J> {
    /// Sorts jobs by (depth, type, number) into `sorted`.
    fn sort<T: Id>(&mut self, ty: &[T], depth: &[u32], [types, depths]: [u32; 2], sorted: &mut Vec<J>) {
        let Self { by_type, counts } = self;
        group(types as usize, by_key(ty.iter().map(|ty| ty.to_index())), counts, by_type);
        let by_type = by_type.iter().map(|&job| (depth[job.to_index()] as usize, job));
        group(depths as usize, by_type, counts, sorted);
    }
}

/// Applies the rule to a part that has too many types for a search.
pub(super) fn order_by_depth(part: &Part, steps: &mut Steps, memory: &mut PartMemory) {
    let PartMemory { depth, sorting, sorted } = memory;
    let deepest = depths(part.ids(), |job| part.operands(job), depth);
    let types = part.types.len() as u32 + 1;
    sorting.sort(&part.ty, depth, [types, deepest], sorted);
    steps.reset(part);
    let mut last = None;
    for &job in &*sorted {
        let (ty, depth) = (part.ty[job.index()], depth[job.index()]);
        let alone = ty.index() == part.types.len();
        if alone || last != Some((depth, ty)) {
            steps.count += 1;
        }
        steps.of[job.index()] = steps.count - 1;
        last = Some((depth, ty));
    }
}

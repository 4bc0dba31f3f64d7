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
use super::operand_lists::ListMaxima;
use super::part::Part;
use super::scratch::Steps;
use super::{Batches, Problem, Schedule, Scratch, StopReason, builtin};
use crate::lists::{by_key, group};

/// Batches by depth and type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Depth;

impl Schedule for Depth {
    builtin!("depth");

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let mut memory = scratch.take::<Memory>();
        let (Memory { depth, by_type, counts, rest, lists }, spare) = (&mut *memory, &mut scratch.spare);
        let Spare { mut start, items: mut sorted } = std::mem::take(spare);
        let deepest = depths_in_problem(problem, depth, lists);
        sort_by_type_and_depth(problem.ty(), depth, problem.types(), deepest, &mut sorted, counts, by_type);
        start.clear();
        start.push(0);
        let mut alone = Alone { rest, list: problem.alone() };
        let mut from = 0;
        while from < sorted.len() {
            let first = sorted[from] as usize;
            let run = sorted[from..]
                .iter()
                .take_while(|&&job| {
                    depth[job as usize] == depth[first] && problem.ty()[job as usize] == problem.ty()[first]
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

/// Reused memory.
#[derive(Default)]
pub(super) struct Memory {
    depth: Vec<u32>,
    by_type: Vec<u32>,
    counts: Vec<u32>,
    /// The alone jobs of a run; in `order_by_depth`, all jobs of a part in order.
    rest: Vec<u32>,
    lists: ListMaxima,
}

/// Separates the alone jobs of a run.
struct Alone<'a> {
    list: &'a [u32],
    /// The alone jobs of the last run.
    rest: &'a mut Vec<u32>,
}

impl Alone<'_> {
    /// Moves the alone jobs of a run behind the others; both keep their order.
    fn move_to_end(&mut self, run: &mut [u32]) {
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
        return depths(problem.len(), |job| problem.named_operands(job), depth);
    }
    known.clear();
    depth.clear();
    let mut deepest = 0;
    for job in 0..problem.len() {
        let below = |operand: u32| depth[operand as usize] + 1;
        let operands = problem.named_operands(job).iter();
        let own = operands.map(|&operand| known.of(problem.lists(), operand, 0, below)).max().unwrap_or(0);
        depth.push(own);
        deepest = deepest.max(own + 1);
    }
    deepest
}

/// Computes the depth of every job, from 0, and returns the number of depths.
pub(super) fn depths<'a>(jobs: usize, operands: impl Fn(usize) -> &'a [u32], depth: &mut Vec<u32>) -> u32 {
    depth.clear();
    depth.resize(jobs, 0);
    let mut deepest = 0;
    for job in 0..jobs {
        let own = operands(job).iter().map(|&operand| depth[operand as usize] + 1).max().unwrap_or(0);
        depth[job] = own;
        deepest = deepest.max(own + 1);
    }
    deepest
}

/// Sorts job numbers by (depth, type, number) into `sorted`.
fn sort_by_type_and_depth(
    ty: &[u32],
    depth: &[u32],
    types: u32,
    depths: u32,
    sorted: &mut Vec<u32>,
    counts: &mut Vec<u32>,
    by_type: &mut Vec<u32>,
) {
    group(types as usize, by_key(ty), counts, by_type);
    let by_type = by_type.iter().map(|&job| (depth[job as usize] as usize, job));
    group(depths as usize, by_type, counts, sorted);
}

/// Applies the rule to a part that has too many types for a search.
pub(super) fn order_by_depth(part: &Part, steps: &mut Steps, memory: &mut Memory) {
    let Memory { depth, by_type, counts, rest: sorted, .. } = memory;
    let deepest = depths(part.len(), |job| part.operands(job), depth);
    let types = part.types.len() as u32 + 1;
    sort_by_type_and_depth(&part.ty, depth, types, deepest, sorted, counts, by_type);
    steps.reset(part);
    let mut last = None;
    for &job in &*sorted {
        let (ty, depth) = (part.ty[job as usize], depth[job as usize]);
        let alone = ty as usize == part.types.len();
        if alone || last != Some((depth, ty)) {
            steps.count += 1;
        }
        steps.of[job as usize] = steps.count - 1;
        last = Some((depth, ty));
    }
}

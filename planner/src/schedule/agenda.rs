//! Policy `agenda`: run the ready type whose jobs have the least mean depth.
//!
//! **Rule.** The first strategy of DyNet. Every type has the mean depth of its jobs. The ready type with the smallest mean runs
//! next, so deep types wait and their ready sets grow. DyNet computes the mean once, over all jobs of the type: `agenda`.
//! [`Mean::Remaining`] (`agenda:remaining`) takes it over the jobs that have not run, so that a few early outliers do not pull a
//! type forward. **Needs** a checked problem. **Ensures** a valid order. Alone jobs run as soon as they are ready.
//!
//! **How.** A heap holds the ready types by (mean, type). The key of a type changes only when it runs, so no key in the heap is
//! stale. Means compare as exact fractions, so rounding never decides; ties go to the smaller type number. **Cost** O(jobs +
//! operands + batches x log types).

use super::batches::Spare;
use super::depth::depths;
use super::ready::Ready;
use super::scratch::Tools;
use super::{Batches, Problem, Schedule, Scratch, StopReason, builtin};
use crate::ids::LocalType;
use crate::lists::{by_key, group};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Over which jobs of a type the mean depth is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mean {
    /// All jobs of the type, once (DyNet).
    #[default]
    All,
    /// The jobs that have not run yet.
    Remaining,
}

/// Runs the ready type of least mean depth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agenda {
    /// Over which jobs the mean is taken.
    pub mean: Mean,
}

/// Reused memory.
#[derive(Default)]
pub(super) struct Memory {
    heap: BinaryHeap<Entry>,
    /// Whether a type is in the heap.
    queued: Vec<bool>,
    /// Sum of depths and number of jobs of every type.
    sums: Vec<(u64, u32)>,
}

/// A type in the heap. The greatest entry has the smallest mean, then the smallest type.
#[derive(PartialEq, Eq)]
struct Entry {
    depths: u64,
    jobs: u32,
    ty: LocalType,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        let one = u128::from(self.depths) * u128::from(other.jobs);
        let two = u128::from(other.depths) * u128::from(self.jobs);
        two.cmp(&one).then(other.ty.cmp(&self.ty))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Schedule for Agenda {
    fn name(&self) -> &str {
        match self.mean {
            Mean::All => "agenda",
            Mean::Remaining => "agenda:remaining",
        }
    }

    builtin!();

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let mut agenda = scratch.take::<Memory>();
        let Scratch { part, tools: Tools { front, fired, steps, .. }, keys, spare, .. } = scratch;
        let Memory { heap, queued, sums } = &mut *agenda;
        part.whole(problem);
        part.link();
        depths(part.ids(), |job| part.operands(job), keys);
        sums.clear();
        sums.extend(part.population.iter().map(|&jobs| (0, jobs)));
        for (&ty, &depth) in part.ty.iter().zip(&*keys) {
            if let Some((sum, _)) = sums.get_mut(ty.index()) {
                *sum += u64::from(depth);
            }
        }
        front.reset(part, fired);
        steps.reset(part);
        steps.push(fired);
        heap.clear();
        queued.clear();
        queued.resize(part.types.len(), false);
        for ty in part.type_ids() {
            enqueue(heap, queued, &front.ready, sums, ty);
        }
        while let Some(Entry { ty, .. }) = heap.pop() {
            queued[ty.index()] = false;
            front.fire(part, ty, fired);
            steps.push(fired);
            if self.mean == Mean::Remaining {
                let (sum, jobs) = &mut sums[ty.index()];
                *jobs -= fired.batch.len() as u32;
                *sum -= fired.batch.iter().map(|&job| u64::from(keys[job.index()])).sum::<u64>();
            }
            // Only consumers of finished jobs can become ready.
            for &job in fired.batch.iter().chain(&fired.alone) {
                for &consumer in part.consumers(job) {
                    enqueue(heap, queued, &front.ready, sums, part.ty[consumer.index()]);
                }
            }
        }
        let Spare { mut start, mut items } = std::mem::take(spare);
        // The whole problem is the part, so its jobs have the same numbers.
        let step_of = steps.of.iter().map(|&step| step as usize);
        group(steps.count as usize, by_key(step_of), &mut start, &mut items);
        scratch.put(agenda);
        Batches { start, items, bound: None, why: StopReason::Rule }
    }
}

/// Adds a type to the heap if it is ready and not in the heap.
fn enqueue(
    heap: &mut BinaryHeap<Entry>,
    queued: &mut [bool],
    ready: &Ready,
    sums: &[(u64, u32)],
    ty: LocalType,
) {
    let at = ty.index();
    if at < queued.len() && !queued[at] && ready.count(ty) > 0 {
        queued[at] = true;
        let (depths, jobs) = sums[at];
        heap.push(Entry { depths, jobs, ty });
    }
}

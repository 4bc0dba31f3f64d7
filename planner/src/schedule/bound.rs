//! The path-sum bound: a lower bound on the number of batches.
//!
//! **Why it holds.** Jobs of one type on one path need different batches. So a type needs at least as many batches as
//! the path with the most jobs of that type has. A batch has one type, so the numbers of the types add up. Every alone
//! job adds one batch. An order that meets the bound is optimal; otherwise the bound limits its distance from the
//! optimum.
//!
//! **How.** In a simple part (see `parts`) the number of a type is its highest level + 1, known from the first scan. In
//! a hard part, one scan handles eight types: it carries one count per type from operands to consumers and takes
//! maxima.
//!
//! **Cost.** O(edges x types of the hard part / 8). In a part of more than [`MAX_SEARCHED_TYPES`] types each type
//! counts 1, which is still a lower bound.

use super::part::Part;
use super::scratch::{MAX_SEARCHED_TYPES, Tools};
use super::{Problem, Scratch};
use crate::ids::LocalJob;

/// A lower bound on the number of batches, with its summands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The sum: no order has fewer batches.
    pub total: u32,
    /// For every type, the most jobs of that type on any path (alone jobs left out).
    pub per_type: Vec<u32>,
    /// Number of alone jobs.
    pub alone: u32,
}

/// Computes the path-sum bound of a problem.
pub fn path_sum_bound(problem: &Problem<'_>, scratch: &mut Scratch) -> Bound {
    let total = path_sum_total(problem, scratch);
    Bound { total, per_type: scratch.per_type.clone(), alone: problem.alone().len() as u32 }
}

/// The total of the path-sum bound. Its summands stay in the scratch.
pub(crate) fn path_sum_total(problem: &Problem<'_>, scratch: &mut Scratch) -> u32 {
    scratch.parts.analyse(problem);
    scratch.group_hard_jobs(problem);
    let Scratch { parts, part, hard, renumbering, tools: Tools { lanes, longest, .. }, per_type, .. } =
        scratch;
    per_type.clear();
    per_type.extend_from_slice(&parts.levels[..problem.types() as usize]);
    for number in parts.ids() {
        if parts.members(number).len() < 2 {
            continue;
        }
        part.jobs.clear();
        part.jobs.extend_from_slice(hard.jobs(number));
        part.extract(problem, parts, number, renumbering);
        longest_paths(part, lanes, longest);
        for (&ty, &count) in part.types.iter().zip(&*longest) {
            per_type[ty.index()] = count;
        }
    }
    per_type.iter().sum::<u32>() + problem.alone().len() as u32
}

/// The most jobs of every local type on any path of a part, by a walk along operands.
pub(super) fn longest_paths(part: &Part, lanes: &mut Vec<i32>, longest: &mut Vec<u32>) {
    walk::<false>(part, lanes, longest, None);
}

/// Computes the same by a walk along consumers, which must be linked. For every job, `below` gets the most jobs of its
/// own type on any path that begins at the job. The job itself counts.
pub(super) fn paths_below(part: &Part, lanes: &mut Vec<i32>, longest: &mut Vec<u32>, below: &mut Vec<u32>) {
    below.clear();
    below.resize(part.len(), 0);
    walk::<true>(part, lanes, longest, Some(below));
}

fn walk<const DOWN: bool>(
    part: &Part,
    lanes: &mut Vec<i32>,
    longest: &mut Vec<u32>,
    mut below: Option<&mut Vec<u32>>,
) {
    let types = part.types.len();
    longest.clear();
    if types > MAX_SEARCHED_TYPES {
        longest.resize(types, 1);
        return;
    }
    longest.resize(types, 0);
    let mut from = 0;
    while from < types {
        let below = below.as_deref_mut().map(Vec::as_mut_slice);
        from += match types - from {
            1 => scan::<1, DOWN>(part, from, lanes, longest, below),
            2 => scan::<2, DOWN>(part, from, lanes, longest, below),
            3 | 4 => scan::<4, DOWN>(part, from, lanes, longest, below),
            _ => scan::<8, DOWN>(part, from, lanes, longest, below),
        };
    }
}

/// Scans for the types `from..from + LANES` and returns LANES. Counts are signed, because the oldest vector
/// instructions have only a signed maximum. A count is at most the number of jobs, which fits.
fn scan<const LANES: usize, const DOWN: bool>(
    part: &Part,
    from: usize,
    lanes: &mut Vec<i32>,
    longest: &mut [u32],
    mut below: Option<&mut [u32]>,
) -> usize {
    lanes.resize(lanes.len().max(part.len() * LANES), 0);
    let (rows, _) = lanes.as_chunks_mut::<LANES>();
    let longest = &mut longest[from..];
    let mut most = [0i32; LANES];
    for step in part.ids() {
        let job = if DOWN { LocalJob(part.len() as u32 - 1 - step.0) } else { step };
        let mut row = [0i32; LANES];
        for &next in if DOWN { part.consumers(job) } else { part.operands(job) } {
            let other = rows[next.index()];
            for lane in 0..LANES {
                row[lane] = row[lane].max(other[lane]);
            }
        }
        // A later job reads the whole row. That read would stall after a store to a single lane, so all lanes are
        // stored, even those beyond the last type.
        let own = part.ty[job.index()].0.wrapping_sub(from as u32);
        for lane in 0..LANES {
            row[lane] += i32::from(lane as u32 == own);
            most[lane] = most[lane].max(row[lane]);
        }
        rows[job.index()] = row;
        if let Some(below) = below.as_deref_mut()
            && (own as usize) < LANES.min(longest.len())
        {
            below[job.index()] = row[own as usize] as u32;
        }
    }
    longest.iter_mut().zip(most).for_each(|(longest, most)| *longest = most as u32);
    LANES
}

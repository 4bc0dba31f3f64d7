//! The PQ-tree layout: adjacency and broadcast, orientation, frontier, and the measure that decides.
//!
//! Needs: a problem. Ensures: a layout that [`super::check`] accepts and that has no more gathered rows than batch order or
//! propagation; where the trees do no better, the cheaper layout is returned. What the work budget leaves undecided follows
//! the propagated order, and a slot that does not come out consecutive for any reason is gathered.
//!
//! Cost: the budget's tree nodes, and half a microsecond a row on trees, one to three on lattices and chains, against 12 to
//! 18 ns for [`super::propagated`] (least of several runs, minibatches of 32). Only a plan that is reused, or one with wide
//! rows, pays that back. What it buys over batch order in gathered operand rows: 0.66 on real trees and 0.49 on real lattices,
//! where propagation alone reaches 0.76 and 0.65; on chains nothing that propagation has not found.

use super::broadcast::{candidates, keep_slots};
use super::orient::orient;
use super::{Layout, Problem, check, propagated};

/// How much work the planner may spend: PQ-tree nodes visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Tree nodes per slot entry of the problem.
    pub nodes_per_entry: u32,
    /// Tree nodes at most, whatever the size.
    pub nodes: u64,
}

impl Default for Budget {
    /// Enough for every slot of minibatches of trees and lattices; half a second at most.
    fn default() -> Budget {
        Budget { nodes_per_entry: 40, nodes: 20_000_000 }
    }
}

/// A planned layout and how it came about.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The layout: never worse than batch order or propagation.
    pub layout: Layout,
    /// Slots that could be planned: two lanes or more, no row repeated, no copy of another slot.
    pub candidates: u32,
    /// Candidates tried before the budget ended.
    pub tried: u32,
    /// Slots that the trees made consecutive.
    pub kept: u32,
    /// Kept slots that could not be brought into one direction with the rest of their batch.
    pub misaligned: u32,
    /// Whether the budget ended the search.
    pub over_budget: bool,
    /// Tree nodes visited.
    pub work: u64,
}

/// Orders rows and lanes with PQ-trees within the budget.
pub fn planned(problem: &Problem, budget: Budget) -> Outcome {
    let fallback = propagated(problem);
    let candidates = candidates(problem, &fallback);
    let entries: u64 =
        problem.all_batches().iter().map(|b| u64::from(b.lanes) * u64::from(b.end_slot - b.first_slot)).sum();
    let work = budget.nodes.min(entries.saturating_mul(u64::from(budget.nodes_per_entry)));
    let kept = keep_slots(problem, &candidates, work);
    let mut outcome = Outcome {
        candidates: candidates.len() as u32,
        tried: kept.tried,
        kept: kept.slots.len() as u32,
        misaligned: 0,
        over_budget: kept.over_budget,
        work: kept.tree.work(),
        layout: fallback,
    };
    let mut leads = vec![None; problem.batches() as usize];
    for candidate in &kept.slots {
        leads[candidate.batch as usize].get_or_insert(candidate.slot);
    }
    let oriented = orient(problem, kept);
    outcome.misaligned = oriented.refused.len() as u32;
    let places = places_by_slab(problem, &oriented.frontier(&outcome.layout.places));
    let lanes = lanes_by_lead(problem, &leads, &places, &outcome.layout);
    let layout = Layout::measured(problem, places, lanes, Vec::new(), false);
    if check(problem, &layout).is_ok() {
        outcome.layout = outcome.layout.better(layout);
    }
    outcome
}

/// Places from one memory order over all slabs: each slab's rows in the order in which they appear.
fn places_by_slab(problem: &Problem, order: &[u32]) -> Vec<u32> {
    let mut next: Vec<u32> = vec![0; problem.slabs() as usize];
    let mut places = vec![0; order.len()];
    for &row in order {
        let cursor = &mut next[problem.slab_of_row(row).index()];
        places[row as usize] = *cursor;
        *cursor += 1;
    }
    places
}

/// Lanes in the memory order of the batch's leading kept slot; as propagated where nothing was kept.
fn lanes_by_lead(problem: &Problem, leads: &[Option<u32>], places: &[u32], fallback: &Layout) -> Vec<u32> {
    let mut lanes = fallback.lanes.clone();
    for (batch, lead) in problem.all_batches().iter().zip(leads) {
        if let Some(lead) = lead {
            let rows = problem.slot_rows(problem.slot(*lead as usize), batch.lanes);
            lanes[batch.first_lane as usize..(batch.first_lane + batch.lanes) as usize]
                .sort_by_key(|&lane| places[rows[lane as usize] as usize]);
        }
    }
    lanes
}

//! Which slots can be consecutive at the same time, and in one lane order per batch.
//!
//! Results go first: they are disjoint, so all of them fit. Operands enter one by one, those that a cheap layout serves
//! already before the others, then by bytes descending, each as a trial: its rows are made consecutive in the PQ-tree; then, until nothing changes, what the tree says about one slot of a batch is
//! said of the other slots of that batch too, in terms of lanes, because they share the lane order. A refusal anywhere takes
//! the whole trial back, so that no trace of a refused slot constrains later ones.
//!
//! Needs: result slots have disjoint rows. Ensures: for every batch, the restrictions of the tree to its kept slots allow the
//! same lane orders up to the direction of Q nodes and the coupling between P nodes, which orientation settles.
//!
//! Slabs share one tree: each begins as one consecutive set, so that its rows form a subtree of their own.

use super::pqtree::{PqTree, Reduction};
use super::{Access, Layout, Problem, Role, SlabId};
use std::collections::VecDeque;

/// No trial may spend more than this many times the average over all candidates.
const SHARES: u64 = 8;

/// The outcome of the search.
pub(super) struct Kept {
    pub(super) tree: PqTree,
    /// Slots that are consecutive, in the order in which they entered.
    pub(super) slots: Vec<Candidate>,
    pub(super) tried: u32,
    pub(super) over_budget: bool,
}

/// A slot that may become a range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) batch: u32,
    pub(super) slot: u32,
    pub(super) bytes: u64,
    /// A range already in the layout that the search starts from.
    pub(super) served: bool,
}

/// Chooses slots greedily until all were tried or the work is spent.
pub(super) fn keep_slots(problem: &Problem, candidates: &[Candidate], work: u64) -> Kept {
    let mut search = Search::new(problem, candidates, work);
    let role = |c: &&Candidate| problem.slot(c.slot as usize).role;
    let results = candidates.partition_point(|c| role(&c) == Role::Result);
    for candidate in &candidates[..results] {
        search.keep_result(candidate);
    }
    let mut tried = results as u32;
    for candidate in &candidates[results..] {
        if search.over_budget() {
            break;
        }
        tried += 1;
        search.try_candidate(candidate);
    }
    let over_budget = search.over_budget();
    let slots = candidates.iter().filter(|c| search.kept[c.slot as usize]).copied().collect();
    Kept { tree: search.tree, slots, tried, over_budget }
}

/// Slots of two lanes or more without repeats, once each: results, then operands that are ranges in `start` (they fit
/// together, so the search never loses them), then the others; by bytes descending, ties by id.
pub(super) fn candidates(problem: &Problem, start: &Layout) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for (batch_id, batch) in (0u32..).zip(problem.all_batches()) {
        let first = found.len();
        for (index, slot) in (batch.first_slot..batch.end_slot).zip(problem.batch_slots(batch)) {
            let bytes = u64::from(batch.lanes) * u64::from(slot.bytes);
            if batch.lanes < 2 || slot.repeats {
                continue;
            }
            if slot.same_as.0 == index {
                let served = matches!(start.access[index as usize], Access::Range { .. });
                found.push(Candidate { batch: batch_id, slot: index, bytes, served });
            } else if let Some(same) = found[first..].iter_mut().find(|c| c.slot == slot.same_as.0) {
                same.bytes += bytes;
            }
        }
    }
    let role = |c: &Candidate| problem.slot(c.slot as usize).role == Role::Operand;
    found.sort_by_key(|c| (role(c), !c.served, std::cmp::Reverse(c.bytes), c.slot));
    found
}

struct Search<'a> {
    problem: &'a Problem,
    tree: PqTree,
    work: u64,
    /// The work at which the current trial ends.
    trial_work: u64,
    trial_share: u64,
    /// Per slot.
    kept: Vec<bool>,
    /// Per row the batches that name it in a candidate: offsets, then batches.
    named_from: Vec<u32>,
    named_by: Vec<u32>,
    queue: VecDeque<u32>,
    queued: Vec<bool>,
    /// Scratch, per row: its lane in the slot at hand.
    lane_of: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, candidates: &[Candidate], work: u64) -> Search<'a> {
        let rows = problem.rows() as usize;
        let mut tree = PqTree::new(problem.rows());
        for slab in (0..problem.slabs()).map(SlabId) {
            let all: Vec<u32> = problem.span(slab).map(|row| row as u32).collect();
            tree.reduce(&all);
        }
        let (named_from, named_by) = batches_by_row(problem, candidates);
        Search {
            problem,
            work: work.saturating_add(tree.work()),
            trial_work: 0,
            trial_share: work.saturating_mul(SHARES) / (candidates.len() as u64).max(SHARES),
            tree,
            kept: vec![false; problem.slot_count() as usize],
            named_from,
            named_by,
            queue: VecDeque::new(),
            queued: vec![false; problem.batches() as usize],
            lane_of: vec![0; rows],
        }
    }

    fn over_budget(&self) -> bool {
        self.tree.work() > self.work
    }

    /// Whether the trial at hand has to end: a single slot may not eat what all the others need.
    fn trial_is_over(&self) -> bool {
        self.tree.work() > self.trial_work
    }

    /// Results are disjoint: all of them fit, in any order of their lanes, and need no trial.
    fn keep_result(&mut self, candidate: &Candidate) {
        let rows = self.rows_of(candidate);
        self.kept[candidate.slot as usize] = self.tree.reduce(rows) != Reduction::Refused;
    }

    fn try_candidate(&mut self, candidate: &Candidate) {
        let share = if candidate.served { self.work } else { self.tree.work() + self.trial_share };
        self.trial_work = share.min(self.work);
        self.tree.checkpoint();
        self.kept[candidate.slot as usize] = true;
        let fits = self.reduce(self.rows_of(candidate)) && {
            self.enqueue(candidate.batch);
            self.settle()
        };
        if !fits {
            self.kept[candidate.slot as usize] = false;
            self.tree.rollback();
            while let Some(batch) = self.queue.pop_front() {
                self.queued[batch as usize] = false;
            }
        }
    }

    fn rows_of(&self, candidate: &Candidate) -> &'a [u32] {
        let lanes = self.problem.all_batches()[candidate.batch as usize].lanes;
        self.problem.slot_rows(self.problem.slot(candidate.slot as usize), lanes)
    }

    /// Broadcasts inside batches until nothing changes; false on a contradiction or when the work is spent.
    fn settle(&mut self) -> bool {
        while let Some(batch) = self.queue.pop_front() {
            self.queued[batch as usize] = false;
            if !self.broadcast(batch) || self.trial_is_over() {
                return false;
            }
        }
        true
    }

    /// Says of every kept slot of the batch what the tree says of the others.
    fn broadcast(&mut self, batch: u32) -> bool {
        let problem = self.problem;
        let data = &problem.all_batches()[batch as usize];
        let kept: Vec<&'a [u32]> = (data.first_slot as usize..data.end_slot as usize)
            .filter(|&slot| self.kept[slot])
            .map(|slot| problem.slot_rows(problem.slot(slot), data.lanes))
            .collect();
        if kept.len() < 2 {
            return true;
        }
        let mut sets: Vec<LaneSet> = Vec::new();
        for (source, rows) in kept.iter().enumerate() {
            self.collect_sets(source, rows, &mut sets);
        }
        sets.sort_by_key(|set| set.lanes.len());
        let mut image = Vec::new();
        for set in &sets {
            for (_, rows) in kept.iter().enumerate().filter(|&(target, _)| target != set.source) {
                image.clear();
                image.extend(set.lanes.iter().map(|&lane| rows[lane as usize]));
                if !self.reduce(&image) {
                    return false;
                }
            }
            if self.trial_is_over() {
                return false;
            }
        }
        true
    }

    /// The proper lane sets that the tree keeps consecutive in one slot.
    fn collect_sets(&mut self, source: usize, rows: &[u32], sets: &mut Vec<LaneSet>) {
        for (lane, &row) in (0u32..).zip(rows) {
            self.lane_of[row as usize] = lane;
        }
        let part = self.tree.restrict(rows);
        for set in part.consecutive_sets() {
            if set.len() < rows.len() {
                let lanes = part.leaves[set].iter().map(|&row| self.lane_of[row as usize]).collect();
                sets.push(LaneSet { source, lanes });
            }
        }
    }

    /// Reduces and queues the batches that may see a difference.
    fn reduce(&mut self, rows: &[u32]) -> bool {
        match self.tree.reduce(rows) {
            Reduction::Refused => false,
            Reduction::Implied => true,
            Reduction::Narrowed => {
                for &row in rows {
                    let named =
                        self.named_from[row as usize] as usize..self.named_from[row as usize + 1] as usize;
                    for index in named {
                        self.enqueue(self.named_by[index]);
                    }
                }
                true
            }
        }
    }

    fn enqueue(&mut self, batch: u32) {
        if !std::mem::replace(&mut self.queued[batch as usize], true) {
            self.queue.push_back(batch);
        }
    }
}

/// A set of lanes that slot `source` of a batch keeps together.
struct LaneSet {
    source: usize,
    lanes: Vec<u32>,
}

fn batches_by_row(problem: &Problem, candidates: &[Candidate]) -> (Vec<u32>, Vec<u32>) {
    let rows_of = |c: &Candidate| {
        let lanes = problem.all_batches()[c.batch as usize].lanes;
        problem.slot_rows(problem.slot(c.slot as usize), lanes)
    };
    let mut from = vec![0u32; problem.rows() as usize + 1];
    for &row in candidates.iter().flat_map(rows_of) {
        from[row as usize + 1] += 1;
    }
    for row in 1..from.len() {
        from[row] += from[row - 1];
    }
    let mut next = from.clone();
    let mut by = vec![0; from.last().copied().unwrap_or(0) as usize];
    for candidate in candidates {
        for &row in rows_of(candidate) {
            by[next[row as usize] as usize] = candidate.batch;
            next[row as usize] += 1;
        }
    }
    (from, by)
}

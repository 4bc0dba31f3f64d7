//! Policy `beam`: the k most promising partial orders at a time.
//!
//! **Rule.** The search starts with the order of the ratio, which is returned if it meets the bound. Otherwise every hard part is
//! searched forward from its first job, then backward from its last; the best order wins. A step extends every state by one
//! batch. If a type has ratio 1, only that type is tried (the safe rule, an exact pruning); otherwise every ready type is. States
//! with the same finished jobs merge. States that cannot beat the best known order are dropped. The rest is ranked by the least
//! number of batches still needed, then by more finished jobs, parent and type. All states of a step have the same number of
//! batches. (Ties by more ready jobs give one to two percent more batches on lattices and trees, and cost more.)
//!
//! **Rest bound.** S(v) is the most jobs of v's type on any path that begins at v. The rest needs at least `sum over types of max
//! S(v)` over the unfinished jobs of the type. Running t changes only the summand of t, so each state has a small histogram of S
//! per type, and a candidate is judged by the ready jobs of one type.
//!
//! **Needs** a checked problem. **Ensures** a valid order, never longer than the ratio's. States merge by a 64-bit sum of job
//! hashes; a collision may lose a candidate, never validity. **Cost** about width x (2 to 4) ratio runs: only chosen candidates
//! run, and only those with a common parent copy it. **Budget**: beyond it, the width falls to one and the backward search is
//! left out. A part with more than left / width edges keeps the order of the ratio, because its search would end narrow.

use super::bound::paths_below;
use super::front::{Fired, Front};
use super::part::Part;
use super::ratio::{ratio_part, replay, safe_type};
use super::scratch::Tools;
use super::solve::solve;
use super::{Batches, Problem, Schedule, Scratch, StopReason, builtin};
use crate::ids::{LocalJob, LocalType};
use autobatch_ir::hash::split_mix;

/// Beam search over orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beam {
    /// Number of states per step; 0 counts as 1.
    pub width: u32,
    /// Work until the width falls to one, in visited edges. A judged job counts as one, a copied state as a quarter per job.
    pub budget: u64,
}

impl Default for Beam {
    /// Width 8, no budget.
    fn default() -> Self {
        Self { width: 8, budget: u64::MAX }
    }
}

impl Schedule for Beam {
    builtin!("beam");

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let mut memory = scratch.take::<Memory>();
        memory.left = self.budget;
        let batches = solve(problem, scratch, |part, tools| self.search_part(part, tools, &mut memory));
        scratch.put(memory);
        batches
    }
}

/// Reused memory of the search, and the rest of the budget.
#[derive(Default)]
pub(super) struct Memory {
    left: u64,
    states: Vec<State>,
    next: Vec<State>,
    pool: Vec<State>,
    candidates: Vec<Candidate>,
    uses: Vec<u32>,
    chosen: Vec<Candidate>,
    /// Every chosen step: its predecessor in this list, and its type.
    trail: Vec<(u32, LocalType)>,
    below: Vec<u32>,
    tally_start: Vec<u32>,
    best: Vec<LocalType>,
}

/// A partial order.
#[derive(Default)]
struct State {
    front: Front,
    /// Unfinished jobs of every type by S. The counts of type t begin at `tally_start[t]`.
    tally: Vec<u32>,
    /// Largest S of every type among unfinished jobs.
    top: Vec<u32>,
    /// Sum of `top`: the least number of further batches.
    rest: u32,
    hash: u64,
    link: u32,
}

/// One way to extend a state. The smallest candidate is the most promising.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rest: u32,
    /// Unfinished jobs.
    left: u32,
    parent: u32,
    ty: LocalType,
    hash: u64,
}

impl Beam {
    fn search_part(&self, part: &Part, tools: &mut Tools, memory: &mut Memory) -> StopReason {
        ratio_part(part, tools);
        if tools.steps.count == tools.bound {
            return StopReason::BoundMet;
        }
        if memory.left < u64::from(self.width.max(1)) * part.edges() as u64 {
            memory.left = 0;
            return StopReason::BudgetSpent { budget: self.budget };
        }
        self.search(part, tools, memory)
    }

    /// Searches for a shorter order than the one in `tools.steps`, with the whole budget.
    pub(super) fn improve(&self, part: &Part, tools: &mut Tools, memory: &mut Memory) -> StopReason {
        memory.left = self.budget;
        self.search(part, tools, memory)
    }

    fn search(&self, part: &Part, tools: &mut Tools, memory: &mut Memory) -> StopReason {
        let goal = tools.bound - part.alone;
        let mut shortest = tools.steps.count - part.alone;
        let mut found = run(part, tools, memory, self.width, shortest);
        if found {
            shortest = memory.best.len() as u32;
        }
        if shortest > goal && memory.left > 0 {
            let mut mirror = std::mem::take(&mut tools.mirror);
            mirror.mirror(part);
            if run(&mirror, tools, memory, self.width, shortest) {
                memory.best.reverse();
                found = true;
            }
            tools.mirror = mirror;
        }
        // Turns the counting of visits off.
        tools.fired.visits.of.clear();
        if found {
            replay(part, &mut tools.front, &mut tools.fired, &memory.best, &mut tools.steps);
        }
        match () {
            () if tools.steps.count == tools.bound => StopReason::BoundMet,
            () if memory.left == 0 => StopReason::BudgetSpent { budget: self.budget },
            () => StopReason::BeamEnded { width: self.width.max(1) },
        }
    }
}

/// Searches one direction for an order shorter than `shortest`. If it finds one, `memory.best` holds its types.
fn run(part: &Part, tools: &mut Tools, memory: &mut Memory, width: u32, shortest: u32) -> bool {
    paths_below(part, &mut tools.lanes, &mut tools.longest, &mut memory.below);
    memory.begin(part, &tools.longest, &mut tools.fired);
    for done in 1..shortest {
        memory.judge(part, shortest - done);
        let width = if memory.left == 0 { 1 } else { width.max(1) as usize };
        memory.choose(width);
        memory.advance(part, &mut tools.fired);
        if let Some(state) = memory.states.iter().find(|state| state.front.left == 0) {
            let mut link = state.link;
            memory.best.clear();
            while link != 0 {
                let (before, ty) = memory.trail[link as usize];
                memory.best.push(ty);
                link = before;
            }
            memory.best.reverse();
            return true;
        }
        if memory.states.is_empty() {
            return false;
        }
    }
    false
}

impl Memory {
    /// Starts with one state before the first job.
    fn begin(&mut self, part: &Part, longest: &[u32], fired: &mut Fired) {
        self.pool.append(&mut self.states);
        self.trail.clear();
        self.trail.push((0, LocalType(0)));
        self.tally_start.clear();
        let mut total = 0;
        for &most in longest {
            self.tally_start.push(total);
            total += most + 1;
        }
        let mut state = self.pool.pop().unwrap_or_default();
        state.front.reset(part, fired);
        part.uses(&mut fired.visits.of);
        fired.visits.count = 0;
        state.tally.clear();
        state.tally.resize(total as usize, 0);
        for (&ty, &below) in part.ty.iter().zip(&self.below) {
            if let Some(&start) = self.tally_start.get(ty.index()) {
                state.tally[(start + below) as usize] += 1;
            }
        }
        state.top.clear();
        state.top.extend_from_slice(longest);
        state.rest = longest.iter().sum();
        (state.hash, state.link) = (0, 0);
        self.states.push(state);
    }

    /// Lists the extensions of all states that may need fewer than `limit` further batches.
    fn judge(&mut self, part: &Part, limit: u32) {
        self.candidates.clear();
        for (parent, state) in self.states.iter_mut().enumerate() {
            let types = match safe_type(&state.front) {
                Some(LocalType(ty)) => ty..ty + 1,
                None => 0..part.types.len() as u32,
            };
            for ty in types.map(LocalType) {
                let fired = state.front.ready.count(ty);
                if fired == 0 {
                    continue;
                }
                let (rest, hash) = state.after(ty, self.tally_start[ty.index()], &self.below);
                self.left = self.left.saturating_sub(u64::from(fired));
                if rest < limit {
                    let left = state.front.left - fired;
                    self.candidates.push(Candidate { rest, left, parent: parent as u32, ty, hash });
                }
            }
        }
    }

    /// Chooses the `width` best candidates with different finished jobs.
    fn choose(&mut self, width: usize) {
        self.candidates.sort_unstable();
        self.chosen.clear();
        self.uses.clear();
        self.uses.resize(self.states.len(), 0);
        for candidate in &self.candidates {
            if self.chosen.len() == width {
                break;
            }
            if self.chosen.iter().all(|chosen| chosen.hash != candidate.hash) {
                self.chosen.push(*candidate);
                self.uses[candidate.parent as usize] += 1;
            }
        }
    }

    /// Makes states of the chosen candidates. The last use of a parent takes its memory, the others copy it.
    fn advance(&mut self, part: &Part, fired: &mut Fired) {
        for candidate in &self.chosen {
            let parent = &mut self.states[candidate.parent as usize];
            let uses = &mut self.uses[candidate.parent as usize];
            *uses -= 1;
            let mut state = self.pool.pop().unwrap_or_default();
            if *uses == 0 {
                std::mem::swap(&mut state, parent);
            } else {
                state.copy(parent);
                fired.visits.count += part.len() as u64 / 4;
            }
            self.trail.push((state.link, candidate.ty));
            state.link = self.trail.len() as u32 - 1;
            state.fire(part, candidate, self.tally_start[candidate.ty.index()], &self.below, fired);
            self.next.push(state);
        }
        self.pool.append(&mut self.states);
        std::mem::swap(&mut self.states, &mut self.next);
        self.left = self.left.saturating_sub(std::mem::take(&mut fired.visits.count));
    }
}

impl State {
    fn copy(&mut self, other: &Self) {
        self.front.copy(&other.front);
        self.tally.clone_from(&other.tally);
        self.top.clone_from(&other.top);
        (self.rest, self.hash, self.link) = (other.rest, other.hash, other.link);
    }

    /// The rest bound and the hash after a step of a type.
    fn after(&mut self, ty: LocalType, start: u32, below: &[u32]) -> (u32, u64) {
        let top = self.top[ty.index()];
        let mut hash = self.hash;
        for &job in self.front.ready.of(ty) {
            self.tally[(start + below[job.index()]) as usize] -= 1;
            hash = hash.wrapping_add(mix(job));
        }
        let rest = self.rest - top + highest(&self.tally[start as usize..], top);
        for &job in self.front.ready.of(ty) {
            self.tally[(start + below[job.index()]) as usize] += 1;
        }
        (rest, hash)
    }

    fn fire(&mut self, part: &Part, candidate: &Candidate, start: u32, below: &[u32], fired: &mut Fired) {
        self.front.fire(part, candidate.ty, fired);
        for &job in &fired.batch {
            self.tally[(start + below[job.index()]) as usize] -= 1;
        }
        let top = &mut self.top[candidate.ty.index()];
        *top = highest(&self.tally[start as usize..], *top);
        (self.rest, self.hash) = (candidate.rest, candidate.hash);
    }
}

/// The largest position from `top` down with a count, or 0. Position 0 never counts a job.
fn highest(tally: &[u32], mut top: u32) -> u32 {
    while top > 0 && tally[top as usize] == 0 {
        top -= 1;
    }
    top
}

/// The summand of a job in the hash of a state.
fn mix(job: LocalJob) -> u64 {
    split_mix(&mut u64::from(job.0).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

//! The plan cache: graphs of equal structure share a plan.
//!
//! *Needs* only the structure hash of a graph, which emitting computes. *Ensures* that a plan serves only the structure, wanted
//! values and options it was made for. All of them, with the options of the policy and of passes, enter a key of 128 bits.
//! A plan that is used often and has more batches than its bound is made again, because a longer search then pays. The cache
//! expects as many further executions as it has seen. Plans for training stay, because the order of their rows determines the
//! bits of parameter gradients.
//! *Cost.* A hit is one lookup. The cache holds a bounded number of plans and evicts the least recently used one.

#[cfg(test)]
mod tests;

use crate::request::{Gradients, Request};
use crate::rewrite::passes::Selection;
use crate::schedule::Schedule;
use autobatch_ir::graph::GraphData;
use autobatch_ir::hash::{StructureHash, hash_of};
use autobatch_ir::plan::{Mode, Plan, Verified};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A hash of 128 bits of a policy and all its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyId(u128);

impl PolicyId {
    /// The id of a policy.
    #[must_use]
    pub fn of(policy: &(impl Schedule + ?Sized)) -> Self {
        let mut hash = StructureHash::default();
        push_text(&mut hash, policy.name());
        push_text(&mut hash, &policy.options());
        Self(hash.value())
    }
}

/// Counts of cache lookups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Lookups that found a plan.
    pub hits: u64,
    /// Lookups that made a plan.
    pub misses: u64,
    /// Lookups that found a plan and made it again.
    pub replanned: u64,
    /// Plans evicted to keep the bound.
    pub evicted: u64,
}

/// A plan that is executed this often, or a power of [`REPLAN_FACTOR`] times as often, is made again if it has more batches
/// than its bound.
const FIRST_REPLAN: u64 = 4;
/// The ratio between the numbers of executions at which a plan is made again.
const REPLAN_FACTOR: u64 = 4;

/// A cached plan.
#[derive(Debug)]
struct Entry {
    plan: Arc<Verified<Plan>>,
    /// The time of the last lookup.
    used: u64,
    /// How often lookups returned a plan of this entry.
    executions: u64,
    /// The number of executions at which the plan is made again.
    replan_at: u64,
}

/// Plans by a key of everything that they depend on.
#[derive(Debug)]
pub struct PlanCache {
    plans: BTreeMap<u128, Entry>,
    capacity: usize,
    clock: u64,
    stats: CacheStats,
    /// The plan evicted last, if it had no other owner.
    evicted: Option<Plan>,
}

impl PlanCache {
    /// A cache of at most `capacity` plans; 0 stores none.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { plans: BTreeMap::new(), capacity, clock: 0, stats: CacheStats::default(), evicted: None }
    }

    /// The plan of a graph and a request under a policy, after `passes` if any. If the cache has none, `plan` makes it. Its
    /// argument is the expected number of executions.
    ///
    /// # Errors
    /// The errors of `plan`.
    pub fn get_or_plan<E>(
        &mut self,
        graph: &GraphData,
        request: &Request<'_>,
        policy: PolicyId,
        passes: Option<&Selection>,
        plan: impl FnOnce(u64) -> Result<Verified<Plan>, E>,
    ) -> Result<Arc<Verified<Plan>>, E> {
        let key = key(graph, request, policy, passes);
        self.clock += 1;
        if let Some(entry) = self.plans.get_mut(&key) {
            entry.used = self.clock;
            entry.executions += 1;
            self.stats.hits += 1;
            if request.mode == Mode::Infer && entry.is_due() {
                entry.plan = Arc::new(plan(entry.executions)?);
                self.stats.replanned += 1;
            }
            return Ok(Arc::clone(&entry.plan));
        }
        self.stats.misses += 1;
        let plan = Arc::new(plan(1)?);
        if self.capacity > 0 {
            self.evict();
            let plan = Arc::clone(&plan);
            self.plans.insert(key, Entry { plan, used: self.clock, executions: 1, replan_at: FIRST_REPLAN });
        }
        Ok(plan)
    }

    fn evict(&mut self) {
        while self.plans.len() >= self.capacity {
            let oldest = self.plans.iter().min_by_key(|(_, entry)| entry.used).map(|(&key, _)| key);
            let Some(oldest) = oldest else { return };
            let evicted = self.plans.remove(&oldest).and_then(|entry| Arc::into_inner(entry.plan));
            self.evicted = evicted.map(Verified::into_inner);
            self.stats.evicted += 1;
        }
    }

    /// Takes the plan evicted last, unless it has another owner. [`Planner::recycle`](crate::Planner::recycle) reuses its memory.
    pub fn take_evicted(&mut self) -> Option<Plan> {
        self.evicted.take()
    }

    /// Drops all plans.
    pub fn clear(&mut self) {
        self.plans.clear();
        self.evicted = None;
    }

    /// The counts of lookups so far.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.stats
    }

    /// The number of plans in the cache.
    #[must_use]
    pub fn len(&self) -> usize {
        self.plans.len()
    }

    /// Whether the cache has no plan.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }
}

impl Entry {
    /// Whether to make the plan again now. Sets the next time.
    fn is_due(&mut self) -> bool {
        let certificate = &self.plan.certificate;
        let due = self.executions >= self.replan_at && certificate.batches > certificate.bound;
        if due {
            self.replan_at = self.executions.saturating_mul(REPLAN_FACTOR);
        }
        due
    }
}

/// Hashes everything that a plan depends on. The pattern is exhaustive, so that a new field of a request needs a decision here.
fn key(graph: &GraphData, request: &Request<'_>, policy: PolicyId, passes: Option<&Selection>) -> u128 {
    let Request { wanted, mode, training, rows, gradients, arriving, shards } = request;
    let mut hash = StructureHash::default();
    let PolicyId(policy) = policy;
    for number in [graph.structure(), policy] {
        hash.push(number as u64);
        hash.push((number >> 64) as u64);
    }
    hash.push(graph.module.identity());
    hash.push(hash_of(&(mode, training, rows)));
    hash.push(hash_of(&passes));
    // Names of outputs belong to a plan, but not to a structure.
    for output in &graph.outputs {
        push_text(&mut hash, &output.name);
    }
    hash.push(wanted.len() as u64);
    for value in *wanted {
        hash.push(value.index() as u64);
    }
    if let Some(Gradients { losses, params, values }) = gradients {
        hash.push(losses.len() as u64);
        for (value, factor) in *losses {
            hash.push((value.index() as u64) << 32 | u64::from(factor.to_bits()));
        }
        hash.push(params.map_or(u64::MAX, |params| params.len() as u64));
        for param in params.unwrap_or(&[]) {
            hash.push(param.index() as u64);
        }
        hash.push(values.len() as u64);
        for value in *values {
            hash.push(value.index() as u64);
        }
    }
    hash.push(arriving.len() as u64);
    for value in *arriving {
        hash.push(value.index() as u64);
    }
    hash.push(shards.len() as u64);
    for first in *shards {
        hash.push(first.index() as u64);
    }
    hash.value()
}

/// Hashes the length and all bytes of a text, so that two texts collide only in all 128 bits.
fn push_text(hash: &mut StructureHash, text: &str) {
    hash.push(text.len() as u64);
    for chunk in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash.push(u64::from_le_bytes(word));
    }
}

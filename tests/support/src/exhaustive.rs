//! Exhaustive search: the fewest batches of a small problem, to judge policies and bounds.
//!
//! *How.* Breadth-first search over sets of finished jobs. A step runs all ready jobs of one type, or one alone job. The first
//! layer with the full set has the fewest batches. The search uses no bound, no parts and no safe rule. *Cost.* O(2^jobs) at worst.

use crate::job_graphs::JobGraph;

/// Largest number of jobs: a set is one word, and 2^jobs sets may exist.
const MAX_JOBS: usize = 20;

/// A set of finished jobs, and the state of the previous layer that led to it.
#[derive(Clone, Copy)]
struct State {
    done: u32,
    from: u32,
}

/// Returns the batches of an optimal order: the first in order of (finished set, type).
///
/// # Panics
/// If the graph has more than 20 jobs.
pub fn shortest_order(graph: &JobGraph) -> Vec<Vec<u32>> {
    let jobs = graph.ty.len();
    assert!(jobs <= MAX_JOBS, "exhaustive search: expected at most {MAX_JOBS} jobs, found {jobs}");
    let all = (1u32 << jobs) - 1;
    let set = |items: &[u32]| items.iter().fold(0u32, |set, &job| set | 1 << job);
    let needs: Vec<u32> = (0..jobs).map(|job| set(graph.operands_of(job))).collect();
    let groups = groups(graph);
    let mut layers = vec![vec![State { done: 0, from: 0 }]];
    loop {
        let last = &layers[layers.len() - 1];
        if let Some(end) = last.iter().position(|state| state.done == all) {
            return read_back(&layers, end);
        }
        let mut next = Vec::new();
        for (state, from) in last.iter().zip(0..) {
            let is_ready = |job: &usize| needs[*job] & !state.done == 0 && state.done >> job & 1 == 0;
            let ready = (0..jobs).filter(is_ready).fold(0u32, |set, job| set | 1 << job);
            let fired = groups.iter().map(|group| group & ready).filter(|&batch| batch != 0);
            next.extend(fired.map(|batch| State { done: state.done | batch, from }));
        }
        next.sort_by_key(|state| state.done);
        next.dedup_by_key(|state| state.done);
        layers.push(next);
    }
}

/// The jobs of every type as a set. An alone job is a set of its own.
fn groups(graph: &JobGraph) -> Vec<u32> {
    let alone = graph.alone.iter().fold(0u32, |set, &job| set | 1 << job);
    let of_type = |ty: u32| {
        let jobs = (0..graph.ty.len()).filter(|&job| graph.ty[job] == ty);
        jobs.fold(0u32, |set, job| set | 1 << job) & !alone
    };
    (0..graph.types).map(of_type).chain(graph.alone.iter().map(|&job| 1 << job)).collect()
}

/// Follows the states back from the full set and lists the batches.
fn read_back(layers: &[Vec<State>], mut at: usize) -> Vec<Vec<u32>> {
    let mut batches = Vec::new();
    for layer in (1..layers.len()).rev() {
        let state = layers[layer][at];
        at = state.from as usize;
        let fired = state.done & !layers[layer - 1][at].done;
        batches.push((0..u32::BITS).filter(|job| fired >> job & 1 == 1).collect());
    }
    batches.reverse();
    batches
}

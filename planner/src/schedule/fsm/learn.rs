//! Q-learning of the table from sample problems.
//!
//! An episode runs every sample once. A decision (ready types without a ratio-1 type among them) takes a random ready type with
//! probability epsilon, else the best known one, else the best ratio. Its reward is `-1 + ratio`: a batch costs one, and less the
//! larger the share of the type's sources it takes. After a run each decision moves towards the rewards of the next ten
//! decisions plus the best value known of the state after them (ten-step temporal difference, rate 0.4), last decision first. A
//! value is created by its first return, and a maximum starts at minus infinity: returns are never positive, so starting at
//! zero would make unknown actions look best. Epsilon falls from 0.5 by a tenth per episode, to 0.05. The table with the fewest
//! batches over all samples is kept, the last of equals (it has seen most), unless the ratio alone needs fewer: then the empty
//! table is returned, which makes the policy the ratio. Learning stops within one percent of the bound.

use super::super::ratio::{best_ratio, run_part, safe_type};
use super::super::solve::solve;
use super::super::{Problem, Schedule, Scratch};
use super::{Entry, Fsm, Place, Table, best_value};
use std::collections::BTreeMap;

const RATE: f64 = 0.4;
const HORIZON: usize = 10;
const LEAST_EPSILON: f64 = 0.05;

/// How long to train, and from which random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Training {
    /// The most episodes; each runs every sample twice (to learn, and to judge the table).
    pub episodes: u32,
    /// Seed of the random choices: equal seeds and samples give equal tables.
    pub seed: u64,
}

impl Default for Training {
    fn default() -> Self {
        Self { episodes: 60, seed: 1 }
    }
}

type Values = BTreeMap<Vec<u64>, Vec<(u64, f64)>>;

/// One decision of a run.
struct Decision {
    state: Vec<u64>,
    /// The name of the type that fired.
    ty: u64,
    reward: f64,
}

/// Learns a table from sample problems whose types are called the same in all of them.
pub fn train(samples: &[Problem<'_>], training: &Training, scratch: &mut Scratch) -> Table {
    let (mut values, mut random) = (Values::new(), Random(training.seed));
    let mut best = (Table::default(), judge(&Fsm::default(), samples, scratch).0);
    let mut epsilon = 0.5;
    for _ in 0..training.episodes {
        for sample in samples {
            solve(sample, scratch, |part, tools| {
                let mut decisions = Vec::new();
                let why = run_part(part, tools, |front| {
                    let place = Place { problem: sample, part, front };
                    decide(&place, &values, epsilon, &mut random, &mut decisions)
                });
                learn(&decisions, &mut values);
                why
            });
        }
        epsilon = f64::max(epsilon * 0.9, LEAST_EPSILON);
        let policy = Fsm { table: freeze(&values) };
        let (length, bound) = judge(&policy, samples, scratch);
        if length <= best.1 {
            best = (policy.table, length);
        }
        if length as f64 <= 1.01 * bound as f64 {
            break;
        }
    }
    best.0
}

/// Total batches and total bound over the samples.
fn judge(policy: &Fsm, samples: &[Problem<'_>], scratch: &mut Scratch) -> (u64, u64) {
    samples.iter().fold((0, 0), |(length, bound), sample| {
        let batches = policy.schedule(sample, scratch);
        (length + batches.len() as u64, bound + u64::from(batches.bound.unwrap_or(0)))
    })
}

/// Chooses a type, and records the choice unless it was forced by the safe rule.
fn decide(
    place: &Place<'_>,
    values: &Values,
    epsilon: f64,
    random: &mut Random,
    decisions: &mut Vec<Decision>,
) -> Option<u32> {
    let front = place.front;
    if let Some(ty) = safe_type(front) {
        return Some(ty);
    }
    let fallback = best_ratio(front)?;
    let mut state = Vec::new();
    place.describe(&mut state);
    let chosen = if random.fraction() < epsilon {
        Some(state[(random.next() % state.len() as u64) as usize])
    } else {
        values.get(&state).and_then(|known| best_value(known)).map(|(name, _)| name)
    };
    let ty = chosen.and_then(|name| place.ready(name)).unwrap_or(fallback);
    let ratio = f64::from(front.ready.count(ty)) / f64::from(front.sources[ty as usize]);
    decisions.push(Decision { state, ty: place.name(ty), reward: ratio - 1.0 });
    Some(ty)
}

/// Moves the values of a run's decisions, last first.
fn learn(decisions: &[Decision], values: &mut Values) {
    for (at, decision) in decisions.iter().enumerate().rev() {
        let end = (at + HORIZON).min(decisions.len());
        let near: f64 = decisions[at..end].iter().map(|decision| decision.reward).sum();
        let far =
            decisions.get(end).and_then(|then| values.get(&then.state)).and_then(|known| best_value(known));
        let target = near + far.map_or(0.0, |(_, value)| value);
        let known = values.entry(decision.state.clone()).or_default();
        match known.binary_search_by_key(&decision.ty, |&(ty, _)| ty) {
            Ok(at) => known[at].1 += RATE * (target - known[at].1),
            Err(at) => known.insert(at, (decision.ty, target)),
        }
    }
}

fn freeze(values: &Values) -> Table {
    let whole = |&(ty, value): &(u64, f64)| (ty, (value * 1e6).round() as i64);
    let entries = values
        .iter()
        .map(|(ready, values)| Entry { ready: ready.clone(), values: values.iter().map(whole).collect() });
    Table { entries: entries.collect() }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

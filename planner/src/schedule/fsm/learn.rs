//! Q-learning of the table from sample problems.
//!
//! An episode runs every sample once. A decision (no type with ratio 1 is ready) takes a random ready type with probability
//! epsilon, otherwise the best known type, otherwise the best ratio. Its reward is `-1 + ratio`: a batch costs one, and less the
//! larger its share of the sources of the type. After a run, each decision moves towards the rewards of the next ten decisions
//! plus the best known value of the state after them (ten-step temporal difference, rate 0.4), last decision first.
//!
//! The first return creates a value, and a maximum starts at minus infinity. Returns are never positive, so a start at zero would
//! prefer unknown actions. Epsilon falls from 0.5 by a tenth per episode, to 0.05. Training returns the table with the fewest
//! batches over all samples, the last of equals because it has seen most. If the ratio alone needs fewer, it returns the empty
//! table. It stops within one percent of the bound, or at a limit: a small file can describe as many types as jobs, whose
//! states are as long as all types and whose decisions look at all of them.

use super::super::ratio::{best_ratio, run_part, safe_type};
use super::super::solve::solve;
use super::super::{Problem, Schedule, Scratch};
use super::table::{Entry, Table, best_value};
use super::{Decision, Fsm};
use crate::ids::LocalType;
use autobatch_ir::hash::split_mix;
use std::collections::BTreeMap;

const RATE: f64 = 0.4;
const HORIZON: usize = 10;
const MIN_EPSILON: f64 = 0.05;
/// Words of the memory of a state besides its types.
const STATE_WORDS: usize = 16;

/// The length of the training, and the seed of its random choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Training {
    /// Largest number of episodes. Each runs every sample twice: to learn, and to judge the table.
    pub episodes: u32,
    /// Seed of the random choices. Equal seeds and samples give equal tables.
    pub seed: u64,
    /// Maximum number of words of all states, of the table and of the run that it learns from: one for each type, and 16.
    pub words: usize,
    /// Maximum number of jobs and of types that learning visits. The episode that exceeds it is the last.
    pub visits: u64,
}

impl Default for Training {
    /// Learning needs at most about a gigabyte and five minutes.
    fn default() -> Self {
        Self { episodes: 500, seed: 1, words: 1 << 25, visits: 1_000_000_000 }
    }
}

/// A learned table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// The table with the fewest batches over all samples.
    pub table: Table,
    /// The number of episodes that ran.
    pub episodes: u32,
    /// The limit that ended the training.
    pub limit: Option<TrainingLimit>,
}

/// The limits of a [`Training`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainingLimit {
    /// [`Training::words`].
    Words,
    /// [`Training::visits`].
    Visits,
}

type Values = BTreeMap<Vec<u64>, Vec<(u64, f64)>>;

/// A recorded decision of a run.
struct Record {
    state: Vec<u64>,
    /// The name of the type that ran.
    ty: u64,
    reward: f64,
}

/// The rest of the limits of a training.
struct Budget {
    words: usize,
    visits: u64,
    limit: Option<TrainingLimit>,
}

impl Budget {
    fn visit(&mut self, count: u64) {
        match self.visits.checked_sub(count) {
            Some(left) => self.visits = left,
            None => self.limit = Some(TrainingLimit::Visits),
        }
    }

    /// Takes the words of a state, if they are left.
    fn take(&mut self, state: &[u64]) -> bool {
        match self.words.checked_sub(state.len() + STATE_WORDS) {
            Some(left) => self.words = left,
            None => self.limit = Some(TrainingLimit::Words),
        }
        self.limit.is_none()
    }
}

/// Learns a table from sample problems. A type has the same name in all of them.
pub fn train(samples: &[Problem<'_>], training: &Training, scratch: &mut Scratch) -> Learned {
    let (mut values, mut random) = (Values::new(), Random(training.seed));
    let mut best = (Table::default(), judge(&Fsm::default(), samples, scratch).0);
    let mut budget = Budget { words: training.words, visits: training.visits, limit: None };
    let (mut epsilon, mut episodes) = (0.5, 0);
    while episodes < training.episodes && budget.limit.is_none() {
        for sample in samples {
            budget.visit(sample.ty().len() as u64);
            solve(sample, scratch, |part, tools| {
                let mut records = Vec::new();
                let why = run_part(part, tools, |front| {
                    let decision = Decision { problem: sample, part, front };
                    decide(&decision, &values, epsilon, &mut random, &mut records, &mut budget)
                });
                learn(records, &mut values, &mut budget);
                why
            });
        }
        episodes += 1;
        epsilon = f64::max(epsilon * 0.9, MIN_EPSILON);
        let policy = Fsm { table: freeze(&values) };
        let (length, bound) = judge(&policy, samples, scratch);
        if length <= best.1 {
            best = (policy.table, length);
        }
        if length as f64 <= 1.01 * bound as f64 {
            break;
        }
    }
    Learned { table: best.0, episodes, limit: budget.limit }
}

/// Total batches and total bound over the samples.
fn judge(policy: &Fsm, samples: &[Problem<'_>], scratch: &mut Scratch) -> (u64, u64) {
    samples.iter().fold((0, 0), |(length, bound), sample| {
        let batches = policy.schedule(sample, scratch);
        (length + batches.len() as u64, bound + u64::from(batches.bound.unwrap_or(0)))
    })
}

/// Chooses a type, and records the choice unless the safe rule forced it or the budget is spent.
fn decide(
    decision: &Decision<'_>,
    values: &Values,
    epsilon: f64,
    random: &mut Random,
    records: &mut Vec<Record>,
    budget: &mut Budget,
) -> Option<LocalType> {
    let front = decision.front;
    budget.visit(front.ready.types().len() as u64);
    if let Some(ty) = safe_type(front) {
        return Some(ty);
    }
    let fallback = best_ratio(front)?;
    if budget.limit.is_some() {
        return Some(fallback);
    }
    let mut state = Vec::new();
    decision.describe(&mut state);
    let chosen = if random.fraction() < epsilon {
        Some(state[(random.next() % state.len() as u64) as usize])
    } else {
        values.get(&state).and_then(|known| best_value(known)).map(|(name, _)| name)
    };
    let ty = chosen.and_then(|name| decision.ready(name)).unwrap_or(fallback);
    let ratio = f64::from(front.ready.count(ty)) / f64::from(front.sources[ty.index()]);
    if budget.take(&state) {
        records.push(Record { state, ty: decision.name(ty), reward: ratio - 1.0 });
    }
    Some(ty)
}

/// Moves the values of the decisions of a run, last first. Returns the words of states that the table knew to the budget.
fn learn(records: Vec<Record>, values: &mut Values, budget: &mut Budget) {
    for (at, record) in records.iter().enumerate().rev() {
        let end = (at + HORIZON).min(records.len());
        let near: f64 = records[at..end].iter().map(|record| record.reward).sum();
        let far =
            records.get(end).and_then(|then| values.get(&then.state)).and_then(|known| best_value(known));
        let target = near + far.map_or(0.0, |(_, value)| value);
        if values.contains_key(&record.state) {
            budget.words += record.state.len() + STATE_WORDS;
        }
        let known = values.entry(record.state.clone()).or_default();
        match known.binary_search_by_key(&record.ty, |&(ty, _)| ty) {
            Ok(at) => known[at].1 += RATE * (target - known[at].1),
            Err(at) => known.insert(at, (record.ty, target)),
        }
    }
}

/// Rounds the values to whole millionths.
fn freeze(values: &Values) -> Table {
    let whole = |&(ty, value): &(u64, f64)| (ty, (value * 1e6).round() as i64);
    let entries = values
        .iter()
        .map(|(ready, values)| Entry { ready: ready.clone(), values: values.iter().map(whole).collect() });
    Table { entries: entries.collect() }
}

/// Seeded random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// A uniform number in 0..1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

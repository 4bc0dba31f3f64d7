//! The life of a minibatch: emitted, planned, executed.

use super::Trainer;
use crate::emit::{Emitter, check_own};
use crate::error::Result;
use crate::session::{Planning, Prepared};
use crate::train::error::TrainError;
use crate::train::locate::of_minibatch;
use crate::train::minibatch::{Minibatch, sum};
use crate::train::report::Step;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_ir::types::{DType, Type};
use autobatch_ir::{Graph, Value, ValueKey};
use autobatch_planner::{Gradients, Request};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The losses of a minibatch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    count: usize,
    /// The number of the first item.
    first: usize,
    /// The sum of the weights of the items.
    weight: f64,
}

/// Some items of a minibatch, from item `first` on, as one graph.
pub(super) struct Items<I> {
    pub(super) items: Vec<I>,
    pub(super) first: usize,
    /// The sum of their weights.
    pub(super) weight: f64,
    /// The factor of each loss: one by the sum of the weights of the minibatch.
    pub(super) share: f32,
    /// The number of items before each shard but the first.
    pub(super) cuts: Vec<usize>,
}

/// A minibatch from which items are taken in order.
pub(super) struct ItemsLeft<I> {
    items: std::vec::IntoIter<I>,
    weights: Option<Vec<f32>>,
    taken: usize,
    share: f32,
}

impl<I> ItemsLeft<I> {
    /// All items of a minibatch.
    pub(super) fn new(minibatch: Minibatch<I>) -> Result<Self> {
        let share = (1.0 / minibatch.weight()?) as f32;
        let Minibatch { items, weights, .. } = minibatch;
        Ok(Self { items: items.into_iter(), weights, taken: 0, share })
    }

    /// Leaves out the items before one.
    pub(super) fn skip_to(&mut self, first: usize) {
        self.items.by_ref().take(first - self.taken).for_each(drop);
        self.taken = first;
    }

    /// The next items, at most this many, cut into shards; nothing without items.
    pub(super) fn take(&mut self, most: usize, cuts: Vec<usize>) -> Option<Items<I>> {
        let first = self.taken;
        let items: Vec<I> = self.items.by_ref().take(most).collect();
        self.taken += items.len();
        let weights = self.weights.as_ref().map(|weights| sum(&weights[first..self.taken]));
        let weight = weights.unwrap_or(items.len() as f64);
        (!items.is_empty()).then_some(Items { items, first, weight, share: self.share, cuts })
    }

    /// All items of a minibatch, cut into shards.
    pub(super) fn whole(minibatch: Minibatch<I>, shards: usize) -> Result<Items<I>> {
        let count = minibatch.items.len();
        let cuts = cuts(count, 0..shards.clamp(1, count.max(1)), shards);
        Self::new(minibatch)?.take(usize::MAX, cuts).ok_or_else(|| TrainError::Empty.into())
    }
}

/// The losses of a finished graph, which must be its own.
pub(super) fn keys_of<'g>(
    graph: &'g Graph,
    losses: impl IntoIterator<Item = Value<'g>>,
) -> Result<Vec<ValueKey>> {
    graph.check()?;
    let losses: Vec<Value<'g>> = losses.into_iter().collect();
    losses.iter().try_for_each(|&loss| check_own(graph, loss))?;
    Ok(losses.into_iter().filter_map(Value::key).collect())
}

/// The number of items before some shards of a minibatch but the first of them, counted from that one.
pub(super) fn cuts(count: usize, shards: Range<usize>, of: usize) -> Vec<usize> {
    let of = of.clamp(1, count.max(1));
    let first = |shard: usize| count * shard / of;
    (shards.start + 1..shards.end).map(|shard| first(shard) - first(shards.start)).collect()
}

/// How losses become the loss of the minibatch.
pub(super) struct Shares<'a> {
    /// The factor of each loss.
    pub(super) share: f32,
    /// The number of the first item.
    pub(super) first: usize,
    /// The sum of the weights, for the report.
    pub(super) weight: f64,
    /// The number of losses before each shard but the first.
    pub(super) cuts: &'a [usize],
}

impl Shares<'static> {
    /// The mean of losses.
    pub(super) fn of_mean(losses: usize) -> Result<Self> {
        match losses {
            0 => Err(TrainError::Empty.into()),
            _ => Ok(Self { share: 1.0 / losses as f32, first: 0, weight: losses as f64, cuts: &[] }),
        }
    }
}

/// Emits and plans items of a minibatch.
#[track_caller]
pub(super) fn prepare<I: Send>(
    planning: &mut Planning,
    emitter: &mut Emitter,
    trained: &[ParamId],
    Items { items, first, weight, share, cuts }: Items<I>,
    loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
) -> Result<Prepared<Losses>> {
    let start = Instant::now();
    let losses = emitter.emit(items, first, loss)?;
    let shares = Shares { share, first, weight, cuts: &cuts };
    plan(planning, &emitter.graph().data(), trained, &losses, shares, start)
}

/// Plans the emitted items.
pub(super) fn plan(
    planning: &mut Planning,
    data: &GraphData,
    trained: &[ParamId],
    losses: &[ValueKey],
    Shares { share, first, weight, cuts }: Shares<'_>,
    start: Instant,
) -> Result<Prepared<Losses>> {
    check_scalars(data, losses, first)?;
    let emit = start.elapsed();
    let wanted: Vec<ValueId> = losses.iter().map(|key| key.id()).collect();
    let factors: Vec<(ValueId, f32)> = wanted.iter().map(|&loss| (loss, share)).collect();
    let shards = first_nodes(data, &wanted, cuts);
    let request = Request {
        wanted: &wanted,
        mode: Mode::Train,
        training: true,
        rows: planning.rows(),
        gradients: Some(Gradients { losses: &factors, params: Some(trained), values: &[] }),
        arriving: &[],
        shards: &shards,
    };
    let plan = planning.plan(data, &request)?;
    let of = Losses { count: losses.len(), first, weight };
    Ok(Prepared { plan, emit, planning: start.elapsed() - emit, wanted, of })
}

/// The first node of each shard but the first, given the number of losses before it. Items were emitted one after the other,
/// and nothing behind the loss of an item contributes to it.
fn first_nodes(data: &GraphData, losses: &[ValueId], cuts: &[usize]) -> Vec<NodeId> {
    let (mut first, mut seen) = (0, 0);
    let next = |&cut: &usize| {
        let producers = losses[seen..cut].iter().map(|&loss| data.arena.producer(loss).index() + 1);
        (first, seen) = (producers.fold(first + 1, usize::max), cut);
        NodeId::new(first)
    };
    cuts.iter().map(next).collect()
}

impl Trainer {
    /// Plans the last emitted graph.
    pub(super) fn planned(
        &mut self,
        losses: &[ValueKey],
        shares: Shares<'_>,
        start: Instant,
    ) -> Result<Prepared<Losses>> {
        let Self { session, updater, emitter, .. } = self;
        let data = emitter.graph().data();
        plan(session.planning(), &data, updater.trained(), losses, shares, start)
    }

    /// Executes the minibatch of the last emitted graph.
    pub(super) fn execute(&mut self, ready: &Prepared<Losses>) -> Result<Step> {
        let noise = self.noise();
        let data = self.emitter.graph().data();
        let executed = self.session.execute(&ready.plan, &data, noise);
        self.executed(ready, &data, executed)
    }

    /// Returns the noise of the next step.
    pub(super) fn noise(&self) -> Noise {
        Noise::On { seed: self.seed, step: self.steps }
    }

    /// Reads the report of an executed minibatch.
    pub(super) fn executed(
        &self,
        ready: &Prepared<Losses>,
        data: &GraphData,
        executed: Result<Duration>,
    ) -> Result<Step> {
        let Prepared { plan, wanted, of: Losses { count, first, weight }, .. } = ready;
        let execute =
            executed.map_err(|error| of_minibatch(self.session.explained(data, plan, wanted, error)))?;
        let read = |number: usize| self.session.executor().output(plan, number);
        let asked = data.outputs.len();
        let losses: Vec<f32> = (asked..asked + count).map(|number| read(number)[0]).collect();
        if !self.skips_non_finite
            && let Some(number) = losses.iter().position(|loss| !loss.is_finite())
        {
            let (item, loss) = (first + number, losses[number]);
            return Err(TrainError::NotFinite { step: self.steps, item, loss }.into());
        }
        let outputs = data.outputs.iter().enumerate();
        Ok(Step {
            number: self.steps,
            loss: 0.0,
            losses,
            weight: *weight,
            gradient_norm: None,
            skipped: false,
            signal: self.signal,
            used: plan.reached(),
            outputs: outputs.map(|(number, output)| (output.name.clone(), read(number).to_vec())).collect(),
            batches: forward_batches(plan),
            bound: plan.certificate.bound,
            emit: ready.emit,
            plan: ready.planning,
            execute,
            update: Duration::ZERO,
            wait: Duration::ZERO,
        })
    }
}

/// The batches before the reverse. Its kernels are the only ones with a `'` in their names, which no
/// cell's name may have; its first step makes the gradients of the losses.
fn forward_batches(plan: &Plan) -> u32 {
    let forward =
        plan.steps.iter().map(|step| plan.kernel(step)).take_while(|kernel| !kernel.name.ends_with('\''));
    forward.filter(|kernel| !kernel.source).count() as u32
}

fn check_scalars(data: &GraphData, losses: &[ValueKey], first: usize) -> Result<()> {
    for (number, key) in losses.iter().enumerate() {
        let found = data.type_of(key.id());
        if found.element() != Type::scalar(DType::F32) || found.is_list {
            return Err(TrainError::NoScalar { item: Some(first + number), found }.into());
        }
    }
    Ok(())
}

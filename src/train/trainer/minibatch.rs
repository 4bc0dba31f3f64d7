//! The life of a minibatch: emitted, planned, executed.

use super::Trainer;
use crate::emit::Emitter;
use crate::error::Result;
use crate::session::{Planning, Prepared};
use crate::train::error::TrainError;
use crate::train::locate::of_minibatch;
use crate::train::report::Step;
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::{NodeId, ParamId, ValueId};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_ir::types::{DType, Type};
use autobatch_ir::{Graph, Value, ValueKey};
use autobatch_planner::{Gradients, Request};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The losses of a minibatch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    count: usize,
    /// The number of the first item; `None` for a step without items.
    first: Option<usize>,
    /// The sum of the weights of the items.
    weight: f64,
}

/// Items of a minibatch of `count` items, from item `first` on, as one graph.
pub(super) struct Items<I> {
    pub(super) items: Vec<I>,
    pub(super) first: usize,
    pub(super) count: usize,
    /// The number of items before each shard but the first.
    pub(super) cuts: Vec<usize>,
}

impl<I> Items<I> {
    /// A whole minibatch, cut into shards.
    pub(super) fn whole(items: Vec<I>, shards: usize) -> Self {
        let count = items.len();
        Self { items, first: 0, count, cuts: cuts(count, 0..shards.clamp(1, count.max(1)), shards) }
    }
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
    pub(super) shares: &'a [f32],
    /// The number of the first item; `None` for a step without items.
    pub(super) first: Option<usize>,
    /// The sum of the weights, for the report.
    pub(super) weight: f64,
    /// The number of losses before each shard but the first.
    pub(super) cuts: &'a [usize],
}

/// Emits and plans items of a minibatch.
#[track_caller]
pub(super) fn prepare<I: Send>(
    planning: &mut Planning,
    emitter: &mut Emitter,
    trained: &[ParamId],
    Items { items, first, count, cuts }: Items<I>,
    loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
) -> Result<Prepared<Losses>> {
    if items.is_empty() {
        return Err(TrainError::Empty.into());
    }
    let start = Instant::now();
    let losses = emitter.emit(items, first, loss)?;
    let shares = vec![1.0 / count as f32; losses.len()];
    let shares = Shares { shares: &shares, first: Some(first), weight: losses.len() as f64, cuts: &cuts };
    plan(planning, &emitter.graph().data(), trained, &losses, shares, start)
}

/// Emits items with the loss and the weight of each. Returns the losses and the sum of the weights.
#[track_caller]
pub(super) fn emit_weighted<I: Send>(
    emitter: &mut Emitter,
    items: Vec<I>,
    first: usize,
    loss: &(impl for<'g> Fn(&'g Graph, I) -> (Value<'g>, f32) + Sync),
) -> Result<(Vec<ValueKey>, f64)> {
    // Several threads may emit; each item has a place of its own.
    let weights: Vec<AtomicU32> = items.iter().map(|_| AtomicU32::new(0)).collect();
    let items: Vec<(usize, I)> = items.into_iter().enumerate().collect();
    let losses = emitter.emit(items, first, &|g, (number, item)| {
        let (value, weight) = loss(g, item);
        weights[number].store(weight.to_bits(), Ordering::Relaxed);
        value
    })?;
    let weights = weights.into_iter().map(|weight| f64::from(f32::from_bits(weight.into_inner())));
    Ok((losses, weights.sum()))
}

/// Plans the emitted items.
pub(super) fn plan(
    planning: &mut Planning,
    data: &GraphData,
    trained: &[ParamId],
    losses: &[ValueKey],
    Shares { shares, first, weight, cuts }: Shares<'_>,
    start: Instant,
) -> Result<Prepared<Losses>> {
    check_scalars(data, losses, first)?;
    let emit = start.elapsed();
    let wanted: Vec<ValueId> = losses.iter().map(|key| key.id()).collect();
    let factors: Vec<(ValueId, f32)> = wanted.iter().copied().zip(shares.iter().copied()).collect();
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
            let (item, loss) = (first.map(|first| first + number), losses[number]);
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

fn check_scalars(data: &GraphData, losses: &[ValueKey], first: Option<usize>) -> Result<()> {
    for (number, key) in losses.iter().enumerate() {
        let found = data.type_of(key.id());
        if found.element() != Type::scalar(DType::F32) || found.is_list {
            return Err(TrainError::NoScalar { item: first.map(|first| first + number), found }.into());
        }
    }
    Ok(())
}

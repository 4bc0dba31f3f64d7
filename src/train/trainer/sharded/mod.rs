//! Steps over shards: a minibatch is cut into shards, and their gradients are added in a fixed tree.
//!
//! The [tree](autobatch_distributed::tree) depends on the number of shards alone, so the weights depend neither on the number
//! of ranks nor on the division of the shards among them. A trainer that is alone executes a minibatch as one graph, whose
//! plan makes the sums of all shards and adds them. Otherwise each rank executes the nodes of the tree that its shards make,
//! each as one graph. Before the gradients are exchanged, all ranks exchange their losses or the reason of a failure, so
//! either all ranks update or none does.

mod layout;
mod measured;
mod ranks;

use super::Trainer;
use super::minibatch::{self, Items, ItemsLeft, Losses};
use crate::error::Result;
use crate::session::Prefetch;
use crate::train::error::TrainError;
use crate::train::minibatch::Minibatch;
use crate::train::report::Step;
use autobatch_distributed::tree::{self, Given};
use autobatch_distributed::{Alone, Buckets, Gradient, Group, reduce};
use autobatch_ir::id::ParamId;
use autobatch_ir::{Graph, Value};
use layout::GradientLayout;
pub(in crate::train) use ranks::Owned;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The shards of a trainer and the ranks that share them.
pub(super) struct Sharding {
    /// The number of shards of a minibatch.
    shards: usize,
    group: Mutex<Box<dyn Group>>,
    /// Whether each rank keeps the optimiser's states of its own parameters only.
    divided: bool,
    layout: GradientLayout,
    buckets: Buckets,
}

impl Sharding {
    fn new(shards: usize, group: Box<dyn Group>) -> Self {
        Self {
            shards: shards.max(1),
            group: Mutex::new(group),
            divided: false,
            layout: GradientLayout::default(),
            buckets: Buckets::default(),
        }
    }

    /// Calls a function with the group. A panic in an earlier call leaves the group usable.
    fn with_group<T>(&self, work: impl FnOnce(&mut dyn Group) -> T) -> T {
        work(&mut **self.group.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the number of this rank and the number of ranks.
    fn rank_of_ranks(&self) -> (usize, usize) {
        self.with_group(|group| (group.rank(), group.size()))
    }
}

/// The report of the shards of one rank, as the ranks exchange it. Floats are exchanged by their bits.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Report {
    error: Option<String>,
    losses: Vec<u32>,
    weight: u64,
    outputs: Vec<(String, Vec<u32>)>,
    batches: u32,
    bound: u32,
    used: Vec<u32>,
}

impl Report {
    fn of(step: &Step) -> Self {
        let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect();
        Self {
            error: None,
            losses: bits(&step.losses),
            weight: step.weight.to_bits(),
            outputs: step.outputs.iter().map(|(name, values)| (name.clone(), bits(values))).collect(),
            batches: step.batches,
            bound: step.bound,
            used: step.used.iter().map(|param| param.index() as u32).collect(),
        }
    }

    /// Appends the report of these shards to the step of the minibatch.
    fn add_to(self, step: &mut Step) {
        let floats = |bits: Vec<u32>| bits.into_iter().map(f32::from_bits).collect::<Vec<f32>>();
        step.losses.extend(floats(self.losses));
        step.weight += f64::from_bits(self.weight);
        step.outputs.extend(self.outputs.into_iter().map(|(name, bits)| (name, floats(bits))));
        step.batches += self.batches;
        step.bound += self.bound;
        step.use_params(self.used.into_iter().map(|param| ParamId::new(param as usize)).collect());
    }
}

/// The shards of one rank, executed.
#[derive(Default)]
struct Computed {
    /// The sums of the nodes of the tree that this rank's shards make.
    nodes: Vec<Gradient>,
    step: Option<Step>,
}

/// The work on the graphs of one minibatch.
struct Graphs<'a, I, N: Iterator<Item = Items<I>>, F> {
    next: N,
    prefetch: Prefetch<Losses>,
    loss: &'a F,
    step: Option<Step>,
}

impl Trainer {
    /// Cuts every minibatch into this many shards, at least one, whose gradients are added in a fixed tree. The weights
    /// then depend on the number of shards, and not on the number of [ranks](Self::group) that share them. A minibatch
    /// with fewer items has one shard per item. The shards of a rank execute together, in full batches.
    /// [`step`](Self::step) and [`pass`](Self::pass) work in shards; other steps have no items to cut and are errors. Shards
    /// execute on the CPU.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::Linear;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("line");
    /// # let line = Linear::new(&mut m, "line", 1, 1);
    /// let mut trainer = Trainer::new(m.build()?, Adam::new(0.05))?.shards(4);
    /// let items = [0.5, -1.0, 2.0, 0.25, 1.0];
    /// let step = trainer.step(items, |g, x| line.on(g.input(&[x])).mse(g.input(&[1.0])))?;
    /// assert_eq!(step.instances(), 5);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn shards(mut self, shards: usize) -> Self {
        match &mut self.sharding {
            Some(sharding) => sharding.shards = shards.max(1),
            None => self.sharding = Some(Sharding::new(shards, Box::new(Alone))),
        }
        self
    }

    /// Rejects a step that has no items to cut into shards.
    pub(super) fn check_whole(&self, method: &'static str) -> Result<()> {
        match self.sharding {
            Some(_) => Err(TrainError::NoShards { method }.into()),
            None => Ok(()),
        }
    }

    /// The number of shards of a minibatch with enough items.
    pub(super) fn shard_count(&self) -> usize {
        self.sharding.as_ref().map_or(1, |sharding| sharding.shards)
    }

    /// Whether this trainer executes minibatches as one graph each and updates with the gradients of its executor.
    pub(super) fn is_alone(&self) -> bool {
        self.sharding.as_ref().is_none_or(|sharding| {
            let elsewhere = self.session.executor().is_elsewhere();
            !(sharding.divided
                || elsewhere
                || self.session.always_rewrites()
                || sharding.rank_of_ranks().1 > 1)
        })
    }

    /// Makes one step over shards.
    #[track_caller]
    pub(super) fn step_in_shards<I: Send>(
        &mut self,
        minibatch: Minibatch<I>,
        loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Step> {
        let count = minibatch.items.len();
        if count == 0 {
            return Err(TrainError::Empty.into());
        }
        if self.session.executor().is_elsewhere() {
            return Err(TrainError::ShardsElsewhere.into());
        }
        let Some(sharding) = &mut self.sharding else { return Err(TrainError::Empty.into()) };
        sharding.layout.fit(self.session.module(), self.updater.trained());
        let leaves = sharding.shards.max(count.div_ceil(minibatch.together)).min(count);
        let computed = self.compute_shards(minibatch, leaves, loss);
        let (mut step, nodes) = self.report(computed)?;
        let updating = Instant::now();
        step.loss = step.weighted_loss();
        let before = step.wait;
        self.update_with_sum(leaves, nodes, &mut step)?;
        step.update = updating.elapsed() - (step.wait - before);
        Ok(step)
    }

    /// Emits and executes the shards of this rank.
    #[track_caller]
    fn compute_shards<I: Send>(
        &mut self,
        minibatch: Minibatch<I>,
        leaves: usize,
        loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Computed> {
        let Some(sharding) = &self.sharding else { return Ok(Computed::default()) };
        let (rank, ranks) = sharding.rank_of_ranks();
        let (own, count, most) =
            (tree::leaves_of(rank, ranks, leaves), minibatch.items.len(), minibatch.together);
        let first = move |leaf: usize| count * leaf / leaves;
        let nodes = tree::cover(leaves, own.clone());
        // Passes may move nodes of one shard into another.
        let together = !self.session.always_rewrites();
        let fits = |node: &Range<usize>| together && first(node.end) - first(node.start) <= most;
        let mut graphs = Vec::new();
        nodes.iter().for_each(|node| tree::divide(node.clone(), &fits, &mut graphs));
        let mut left = ItemsLeft::new(minibatch)?;
        left.skip_to(first(own.start));
        let mut next_node = graphs.clone().into_iter().peekable();
        let mut graphs = Graphs {
            next: graphs.into_iter().map_while(|node| {
                let items = first(node.end) - first(node.start);
                left.take(items, minibatch::cuts(count, node, leaves))
            }),
            prefetch: Prefetch::new(self.emitter.another()),
            loss,
            step: None,
        };
        let shape = sharding.layout.shape().clone();
        let mut sums = Vec::new();
        for node in nodes {
            sums.push(tree::sum(
                node,
                &mut |node| match next_node.next_if_eq(node) {
                    Some(_) => self.execute_graph(&mut graphs).map(Given::Sum),
                    None => Ok(Given::Children),
                },
                &mut |left: &mut Gradient, right| left.add(&right, &shape),
            )?);
        }
        Ok(Computed { nodes: sums, step: graphs.step })
    }

    /// Executes the next graph and prepares the one after it at the same time. Returns its gradient.
    #[track_caller]
    fn execute_graph<I: Send, N: Iterator<Item = Items<I>>>(
        &mut self,
        graphs: &mut Graphs<'_, I, N, impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync>,
    ) -> Result<Gradient> {
        let Graphs { next, prefetch, loss, step: whole } = graphs;
        let Self { session, updater, emitter, .. } = self;
        let ready = prefetch.take_or_prepare(emitter, |emitter| {
            Some(minibatch::prepare(session.planning(), emitter, updater.trained(), next.next()?, *loss))
        });
        let ready = ready.ok_or(TrainError::Empty)??;
        let follows = if prefetch.is_worthwhile(session) { next.next() } else { None };
        let step = match follows {
            Some(follows) => self.execute_while(&ready, prefetch, Ok(follows), *loss),
            None => self.execute(&ready),
        }?;
        match whole {
            None => *whole = Some(step),
            Some(whole) => whole.add(step),
        }
        let Some(sharding) = &self.sharding else { return Ok(Gradient::default()) };
        Ok(sharding.layout.collect(self.session.executor()))
    }

    /// Exchanges the reports of all ranks. Returns the step of the whole minibatch and the nodes of this rank, or an error
    /// on all ranks.
    fn report(&mut self, computed: Result<Computed>) -> Result<(Step, Vec<Gradient>)> {
        let number = self.steps;
        let Some(sharding) = &self.sharding else { return Err(TrainError::Empty.into()) };
        let own = match &computed {
            Ok(computed) => computed.step.as_ref().map(Report::of).unwrap_or_default(),
            Err(error) => Report { error: Some(error.to_string()), ..Report::default() },
        };
        let waiting = Instant::now();
        let reports = sharding.with_group(|group| ranks::exchange(group, &own))?;
        let waited = waiting.elapsed();
        let Computed { nodes, step: own } = computed?;
        let mut step = own.unwrap_or_default();
        step.number = number;
        step.wait = if reports.len() > 1 { waited } else { Duration::ZERO };
        (step.losses, step.outputs, step.used) = (Vec::new(), Vec::new(), Vec::new());
        (step.weight, step.batches, step.bound) = (0.0, 0, 0);
        for (rank, mut report) in reports.into_iter().enumerate() {
            if let Some(message) = report.error.take() {
                return Err(TrainError::OtherRank { rank, message }.into());
            }
            report.add_to(&mut step);
        }
        Ok((step, nodes))
    }

    /// Adds the gradients of all ranks and updates the parameters. All ranks have the same sum, so all update or none.
    fn update_with_sum(&mut self, leaves: usize, nodes: Vec<Gradient>, step: &mut Step) -> Result<()> {
        let Some(mut sharding) = self.sharding.take() else { return Ok(()) };
        let updated = self.update_with_shards(&mut sharding, leaves, nodes, step);
        sharding.layout.clear();
        self.sharding = Some(sharding);
        updated?;
        self.steps += 1;
        self.mirrored = self.progress;
        Ok(())
    }
}

impl Trainer {
    fn update_with_shards(
        &mut self,
        sharding: &mut Sharding,
        leaves: usize,
        nodes: Vec<Gradient>,
        step: &mut Step,
    ) -> Result<()> {
        let group = sharding.group.get_mut().unwrap_or_else(PoisonError::into_inner);
        let is_alone = group.size() == 1;
        let mut waits = |from: Instant| step.wait += if is_alone { Duration::ZERO } else { from.elapsed() };
        let reducing = Instant::now();
        let sum = reduce(&mut **group, leaves, nodes, sharding.layout.shape(), &mut sharding.buckets)?;
        waits(reducing);
        sharding.layout.set(sum);
        let verdict = self.may_update(Some(&sharding.layout), &step.losses)?;
        (step.gradient_norm, step.skipped) = (verdict.norm, verdict.skip);
        if verdict.skip {
            return Ok(());
        }
        let unused = self.unused(&step.used);
        let Self { session, updater, .. } = self;
        updater.update_with(session, &sharding.layout, &unused)?;
        if sharding.divided {
            let exchanging = Instant::now();
            updater.exchange(session, &mut **group, &sharding.layout, &unused)?;
            waits(exchanging);
        }
        Ok(())
    }
}

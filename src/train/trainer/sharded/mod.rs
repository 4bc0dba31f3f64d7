//! Steps over shards: a minibatch is cut into shards, and their gradients are added in a fixed tree.
//!
//! The [tree](autobatch_distributed::tree) depends on the number of shards alone, so the weights depend neither on the number
//! of ranks nor on the division of the shards among them. A trainer that is alone executes a minibatch as one graph, whose
//! plan makes the sums of all shards and adds them. Otherwise each rank executes the nodes of the tree that its shards make,
//! each as one graph. Before the gradients are exchanged, all ranks exchange their losses or the reason of a failure, so
//! either all ranks update or none does.

mod division;
mod layout;
mod measured;
mod message;
mod nodes;
mod open;
mod ranks;
mod report;

use super::Trainer;
use super::minibatch::{self, Items, ItemsLeft, Losses};
use crate::error::Result;
use crate::session::{Prefetch, Prepared};
use crate::train::error::TrainError;
use crate::train::minibatch::Minibatch;
use crate::train::report::Step;
use autobatch_distributed::{Alone, Buckets, Gradient, Group, reduce};
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Value};
use division::Division;
use layout::GradientLayout;
use nodes::{Incomplete, OwnNodes};
pub use open::ShardedStep;
use std::sync::{Arc, Mutex, PoisonError};
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

/// The shards of one rank, executed.
#[derive(Default)]
struct Computed {
    /// The sums of the nodes of the tree that this rank's shards make.
    nodes: Vec<Gradient>,
    /// The plan of the node after them, whose gradients are not complete.
    last: Option<Arc<Verified<Plan>>>,
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
        let division = self.divide(minibatch.items.len(), minibatch.together)?;
        let computed = self.compute_shards(minibatch, &division, loss);
        self.exchange_and_update(division.leaves, computed)
    }

    /// Divides a minibatch, of which at most `together` items execute in one graph, among the ranks.
    fn divide(&mut self, count: usize, together: usize) -> Result<Division> {
        if count == 0 {
            return Err(TrainError::Empty.into());
        }
        if self.session.executor().is_elsewhere() {
            return Err(TrainError::ShardsElsewhere.into());
        }
        let Some(sharding) = &mut self.sharding else { return Err(TrainError::NotSharded.into()) };
        sharding.layout.fit(self.session.module(), self.updater.trained());
        let together = together.max(1);
        let leaves = sharding.shards.max(count.div_ceil(together)).min(count);
        // Passes may move nodes of one shard into another.
        let together = (!self.session.always_rewrites()).then_some(together);
        Ok(Division::new(sharding.rank_of_ranks(), count, leaves, together))
    }

    /// Ends a step whose shards were computed on all ranks.
    fn exchange_and_update(&mut self, leaves: usize, computed: Result<Computed>) -> Result<Step> {
        let (mut step, computed) = self.report(computed)?;
        let updating = Instant::now();
        step.loss = step.weighted_loss();
        let before = step.wait + step.execute;
        self.update_with_sum(leaves, computed, &mut step)?;
        step.update = updating.elapsed().saturating_sub(step.wait + step.execute - before);
        Ok(step)
    }

    /// Emits and executes the shards of this rank.
    #[track_caller]
    fn compute_shards<I: Send>(
        &mut self,
        minibatch: Minibatch<I>,
        division: &Division,
        loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Computed> {
        let Some(sharding) = &self.sharding else { return Ok(Computed::default()) };
        let shape = sharding.layout.shape().clone();
        let mut left = ItemsLeft::new(minibatch)?;
        let mut graphs = Graphs {
            next: division.graphs.iter().map_while(|node| {
                let items = division.items(node);
                left.skip_to(items.start);
                left.take(items.len(), division.cuts(node))
            }),
            prefetch: Prefetch::new(self.emitter.another()),
            loss,
            step: None,
        };
        let whole = division.graphs.len() - usize::from(division.ends_alone());
        let mut sums = Vec::new();
        for node in &division.graphs[..whole] {
            let gradient = self.execute_graph(&mut graphs)?;
            division.push(&mut sums, node.clone(), gradient, &shape);
        }
        let last = match division.ends_alone() {
            true => Some(self.execute_last(&mut graphs)?),
            false => None,
        };
        let nodes = sums.into_iter().map(|sum| sum.gradient).collect();
        Ok(Computed { nodes, last, step: graphs.step })
    }

    /// Executes the next graph and prepares the one after it at the same time. Returns its gradient.
    #[track_caller]
    fn execute_graph<I: Send, N: Iterator<Item = Items<I>>>(
        &mut self,
        graphs: &mut Graphs<'_, I, N, impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync>,
    ) -> Result<Gradient> {
        let ready = self.next_graph(graphs)?;
        let Graphs { next, prefetch, loss, step: whole } = graphs;
        let session = &self.session;
        let follows = if prefetch.is_worthwhile(session) { next.next() } else { None };
        let step = match follows {
            Some(follows) => self.execute_while(&ready, prefetch, Ok(follows), *loss),
            None => self.execute(&ready),
        }?;
        add_part(whole, step);
        let Some(sharding) = &self.sharding else { return Ok(Gradient::default()) };
        Ok(sharding.layout.collect(self.session.executor()))
    }

    /// Executes the last graph but for the sums of its gradients. Returns its plan.
    #[track_caller]
    fn execute_last<I: Send, N: Iterator<Item = Items<I>>>(
        &mut self,
        graphs: &mut Graphs<'_, I, N, impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync>,
    ) -> Result<Arc<Verified<Plan>>> {
        let ready = self.next_graph(graphs)?;
        let noise = self.noise();
        let data = self.emitter.graph().data();
        let executed = self.session.execute_steps(&ready.plan, &data, noise);
        add_part(&mut graphs.step, self.executed(&ready, &data, executed)?);
        Ok(ready.plan)
    }

    /// The next graph, which may be prepared already.
    #[track_caller]
    fn next_graph<I: Send, N: Iterator<Item = Items<I>>>(
        &mut self,
        graphs: &mut Graphs<'_, I, N, impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync>,
    ) -> Result<Prepared<Losses>> {
        let Graphs { next, prefetch, loss, .. } = graphs;
        let Self { session, updater, emitter, .. } = self;
        let ready = prefetch.take_or_prepare(emitter, |emitter| {
            Some(minibatch::prepare(session.planning(), emitter, updater.trained(), next.next()?, *loss))
        });
        ready.ok_or(TrainError::Empty)?
    }

    /// Exchanges the reports of all ranks. Returns the step of the whole minibatch with what this rank computed, or an error on
    /// all ranks.
    fn report(&mut self, computed: Result<Computed>) -> Result<(Step, Computed)> {
        let Some(sharding) = &self.sharding else { return Err(TrainError::Empty.into()) };
        let waiting = Instant::now();
        let (step, ranks) = sharding.with_group(|group| {
            let own = computed.as_ref().map(|computed| computed.step.as_ref());
            (report::exchange(group, own, self.signal), group.size())
        });
        let waited = waiting.elapsed();
        // The error of this rank says more than what it told the others.
        let computed = computed?;
        let mut step = step?;
        step.number = self.steps;
        step.wait = if ranks > 1 { waited } else { Duration::ZERO };
        Ok((step, computed))
    }

    /// Adds the gradients of all ranks and updates the parameters. All ranks have the same sum, so all update or none.
    fn update_with_sum(&mut self, leaves: usize, computed: Computed, step: &mut Step) -> Result<()> {
        let Some(mut sharding) = self.sharding.take() else { return Ok(()) };
        let updated = self.update_with_shards(&mut sharding, leaves, computed, step);
        sharding.layout.clear();
        self.sharding = Some(sharding);
        updated?;
        self.steps += 1;
        self.mirrored = self.progress;
        Ok(())
    }

    fn update_with_shards(
        &mut self,
        sharding: &mut Sharding,
        leaves: usize,
        Computed { nodes, last, .. }: Computed,
        step: &mut Step,
    ) -> Result<()> {
        let Sharding { group, layout, buckets, divided, .. } = sharding;
        let group = &mut **group.get_mut().unwrap_or_else(PoisonError::into_inner);
        let is_alone = group.size() == 1;
        let mut waits = |time: Duration| step.wait += if is_alone { Duration::ZERO } else { time };
        let reducing = Instant::now();
        let mut sum = layout.take_sum();
        let graph = self.emitter.graph().data();
        let last = last.as_ref().map(|plan| Incomplete { session: &mut self.session, plan, graph: &graph });
        let mut own = OwnNodes::new(layout, nodes, last);
        let reduced = reduce(group, leaves, &mut own, layout.shape(), buckets, &mut sum);
        let completing = own.finish()?;
        drop(graph);
        reduced?;
        waits(reducing.elapsed().saturating_sub(completing));
        step.execute += completing;
        layout.set(sum);
        let verdict = self.may_update(Some(layout), &step.losses)?;
        (step.gradient_norm, step.skipped) = (verdict.norm, verdict.skip);
        if verdict.skip {
            return Ok(());
        }
        let unused = self.unused(&step.used);
        let Self { session, updater, .. } = self;
        updater.update_with(session, layout, &unused)?;
        if *divided {
            let exchanging = Instant::now();
            updater.exchange(session, group, layout, &unused)?;
            waits(exchanging.elapsed());
        }
        Ok(())
    }
}

/// Adds the step of a part of the minibatch.
fn add_part(whole: &mut Option<Step>, part: Step) {
    match whole {
        None => *whole = Some(part),
        Some(whole) => whole.add(part),
    }
}

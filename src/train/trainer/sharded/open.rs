//! [`ShardedStep`]: a step over shards whose graphs the caller emits, one after the other.

use super::division::{Division, Sum};
use super::{Computed, add_part, report};
use crate::error::Result;
use crate::train::error::TrainError;
use crate::train::minibatch::sum;
use crate::train::report::Step;
use crate::train::trainer::Trainer;
use crate::train::trainer::minibatch::{self, Shares};
use autobatch_distributed::GradientShape;
use autobatch_ir::{Graph, Value};
use std::fmt;
use std::ops::Range;
use std::time::Instant;

/// A step of [`Trainer::begin_shards`]. Without [`finish`](Self::finish) it changes nothing, and fails on all ranks.
pub struct ShardedStep<'t> {
    trainer: &'t mut Trainer,
    division: Division,
    /// The number of graphs that were executed.
    done: usize,
    weights: Vec<f32>,
    share: f32,
    shape: GradientShape,
    sums: Vec<Sum>,
    step: Option<Step>,
    is_finished: bool,
}

impl fmt::Debug for ShardedStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedStep").field("division", &self.division).finish_non_exhaustive()
    }
}

impl Trainer {
    /// Begins a step over [shards](Self::shards), whose graphs the caller emits: for frontends that emit without closures. The
    /// weights are those of all items of the minibatch. At most `together` items execute in one graph.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::Linear;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("line");
    /// # let line = Linear::new(&mut m, "line", 1, 1);
    /// # let mut trainer = Trainer::new(m.build()?, Adam::new(0.05))?.shards(2);
    /// let items = [0.5, -2.0, 1.0];
    /// let mut step = trainer.begin_shards(&[1.0; 3], 2)?;
    /// while let Some(own) = step.items() {
    ///     let g = step.graph();
    ///     let losses = own.map(|item| {
    ///         g.instance(item as u64);
    ///         line.on(g.input(&[items[item]])).mse(g.input(&[0.0]))
    ///     });
    ///     let losses: Vec<_> = losses.collect();
    ///     step.part(&g, losses)?;
    /// }
    /// assert_eq!(step.finish()?.instances(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The minibatch is empty, the sum of the weights is not positive and finite, or the trainer has no shards or is not on the CPU.
    pub fn begin_shards(&mut self, weights: &[f32], together: usize) -> Result<ShardedStep<'_>> {
        let weight = sum(weights);
        if !(weights.is_empty() || weight.is_finite() && weight > 0.0) {
            return Err(TrainError::Weights { sum: weight }.into());
        }
        let division = self.divide(weights.len(), together)?;
        let shape =
            self.sharding.as_ref().map(|sharding| sharding.layout.shape().clone()).unwrap_or_default();
        Ok(ShardedStep {
            trainer: self,
            division,
            done: 0,
            weights: weights.to_vec(),
            share: (1.0 / weight) as f32,
            shape,
            sums: Vec::new(),
            step: None,
            is_finished: false,
        })
    }
}

impl ShardedStep<'_> {
    /// Returns the items of the next graph; `None` after the last. Other ranks execute the others.
    #[must_use]
    pub fn items(&self) -> Option<Range<usize>> {
        self.division.graphs.get(self.done).map(|node| self.division.items(node))
    }

    /// Returns an empty graph of the module.
    #[must_use]
    pub fn graph(&self) -> Graph {
        self.trainer.session.graph()
    }

    /// Executes the graph of the next [items](Self::items), which were emitted one after the other, and keeps its gradients.
    ///
    /// # Errors
    /// As [`Trainer::step_graph`]; also if the number of losses is not that of the items.
    #[track_caller]
    pub fn part<'g>(&mut self, graph: &'g Graph, losses: impl IntoIterator<Item = Value<'g>>) -> Result<()> {
        let start = Instant::now();
        let losses = minibatch::keys_of(graph, losses)?;
        let Some(items) = self.items() else {
            return Err(TrainError::Losses { expected: 0, found: losses.len() }.into());
        };
        if losses.len() != items.len() {
            return Err(TrainError::Losses { expected: items.len(), found: losses.len() }.into());
        }
        let node = self.division.graphs[self.done].clone();
        let cuts = self.division.cuts(&node);
        let weight = sum(&self.weights[items.clone()]);
        let shares = Shares { share: self.share, first: items.start, weight, cuts: &cuts };
        let (noise, data) = (self.trainer.noise(), graph.data());
        let Trainer { session, updater, .. } = &mut *self.trainer;
        session.check_module(&data)?;
        let ready = minibatch::plan(session.planning(), &data, updater.trained(), &losses, shares, start)?;
        let executed = session.execute(&ready.plan, &data, noise);
        add_part(&mut self.step, self.trainer.executed(&ready, &data, executed)?);
        if let Some(sharding) = &self.trainer.sharding {
            let gradient = sharding.layout.collect(self.trainer.session.executor());
            self.division.push(&mut self.sums, node, gradient, &self.shape);
        }
        self.done += 1;
        Ok(())
    }

    /// Adds the gradients of all ranks, and updates the parameters.
    ///
    /// # Errors
    /// As [`Trainer::step`], and if graphs are missing.
    pub fn finish(mut self) -> Result<Step> {
        if let Some(items) = self.items() {
            return Err(TrainError::Losses { expected: items.len(), found: 0 }.into());
        }
        self.is_finished = true;
        let nodes = std::mem::take(&mut self.sums).into_iter().map(|sum| sum.gradient).collect();
        let computed = Computed { nodes, last: None, step: self.step.take() };
        self.trainer.exchange_and_update(self.division.leaves, Ok(computed))
    }
}

impl Drop for ShardedStep<'_> {
    /// Tells the other ranks, which wait for this one, that the step has failed.
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        if let Some(sharding) = &self.trainer.sharding {
            let message = report::of_error("its step was left before its end; see its own error");
            // This rank has an error of its own already.
            let _ = sharding.with_group(|group| group.all_gather(message.bytes()));
        }
    }
}

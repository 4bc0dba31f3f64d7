//! Steps on losses that are not the mean over items, and gradients without a step.

use super::Trainer;
use super::minibatch::{self, Items, Shares};
use super::sharded::Mean;
use crate::emit::check_own;
use crate::error::Result;
use crate::session::Gradients;
use crate::train::error::TrainError;
use crate::train::report::Step;
use autobatch_ir::id::ParamId;
use autobatch_ir::{Graph, Value, ValueKey};
use std::time::Instant;

impl Trainer {
    /// Makes one step on a loss that `loss` emits as a whole, for example a sum over pairs, or over instances
    /// with a common encoder.
    ///
    /// Call [`Graph::instance`] before the ops of each instance: its key selects the noise of the instance, and
    /// errors name it. Call [`Graph::common`] before the ops that belong to all instances, such as the sum of
    /// their losses. A loss of one instance needs neither.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    #[track_caller]
    pub fn step_with(&mut self, loss: impl for<'g> FnOnce(&'g Graph) -> Value<'g>) -> Result<Step> {
        self.step_on_sum(|g| vec![loss(g)])
    }

    /// Makes one step on the sum of the losses that `losses` emits, for example those of several tasks. The
    /// report holds each of them in `losses`, in order, and their sum as `loss`.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::Linear;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// # let [shape, colour] = ["shape", "colour"].map(|name| Linear::new(&mut m, name, 2, 2));
    /// # let mut trainer = Trainer::new(m.build()?, Sgd::new(0.1))?;
    /// let step = trainer.step_on_sum(|g| {
    ///     let x = g.input(&[1.0, -1.0]);
    ///     vec![shape.on(x).cross_entropy(0), 0.5 * colour.on(x).cross_entropy(1)]
    /// })?;
    /// assert_eq!(step.loss, step.losses[0] + step.losses[1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`step`](Self::step).
    #[track_caller]
    pub fn step_on_sum(&mut self, losses: impl for<'g> FnOnce(&'g Graph) -> Vec<Value<'g>>) -> Result<Step> {
        let start = Instant::now();
        self.check_whole("step_on_sum")?;
        let losses = self.emitter.emit_here(losses)?;
        let shares = vec![1.0; losses.len()];
        let ready =
            self.planned(&losses, Shares { shares: &shares, first: None, weight: 1.0, cuts: &[] }, start)?;
        let step = self.execute(&ready);
        self.finish(step)
    }

    /// Makes one step whose loss is the sum of the items' losses divided by the sum of their weights. With the
    /// sum over the tokens of an item and their number, it is the mean over all tokens of the minibatch.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::{Embedding, losses};
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// # let words = Embedding::new(&mut m, "words", 9, 3);
    /// # let mut trainer = Trainer::new(m.build()?, Sgd::new(0.1))?;
    /// let sentences: [(&[u32], &[u32]); 2] = [(&[3, 1, 4], &[0, 1, 2]), (&[1], &[1])];
    /// let step = trainer.step_weighted(sentences, |g, (tokens, tags)| {
    ///     let logits: Vec<Value> = tokens.iter().map(|&token| words.look(g, token)).collect();
    ///     let sum = losses::sequence_cross_entropy(g, logits, tags.iter().copied());
    ///     (sum, tokens.len() as f32)
    /// })?;
    /// assert_eq!((step.weight, step.losses.len()), (4.0, 2));
    /// assert_eq!(step.loss, (step.losses[0] + step.losses[1]) / 4.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`step`](Self::step); also if the weights are not numbers with a positive sum.
    #[track_caller]
    pub fn step_weighted<I: Send>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        loss: impl for<'g> Fn(&'g Graph, I) -> (Value<'g>, f32) + Sync,
    ) -> Result<Step> {
        let start = Instant::now();
        let items: Vec<I> = items.into_iter().collect();
        if items.is_empty() {
            return Err(TrainError::Empty.into());
        }
        if self.sharding.is_some() {
            return self.step_in_shards(items, usize::MAX, Mean::Weights, &loss);
        }
        let (losses, weight) = minibatch::emit_weighted(&mut self.emitter, items, 0, &loss)?;
        if !(weight.is_finite() && weight > 0.0) {
            return Err(TrainError::Weights { sum: weight }.into());
        }
        let shares = vec![(1.0 / weight) as f32; losses.len()];
        let ready =
            self.planned(&losses, Shares { shares: &shares, first: Some(0), weight, cuts: &[] }, start)?;
        let step = self.execute(&ready);
        self.finish(step)
    }

    /// Returns the gradients that [`step`](Self::step) would apply to these items, for all parameters, frozen ones
    /// included. The noise is that of the next step. Parameters, optimiser and step number stay unchanged. With
    /// [shards](Self::shards), each rank computes all items, and the sums have another order than those of a step.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::Linear;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("line");
    /// # let line = Linear::new(&mut m, "line", 1, 1);
    /// let mut trainer = Trainer::new(m.build()?, Adam::new(0.05))?;
    /// let gradients = trainer.gradients([(0.5, 1.0), (2.0, -1.0)], |g, (x, y)| {
    ///     line.on(g.input(&[x])).mse(g.input(&[y]))
    /// })?;
    /// for (name, gradient) in gradients.iter() {
    ///     println!("{name}: {gradient:?}");
    /// }
    /// assert_eq!(gradients.by_name("line.b").map(<[f32]>::len), Ok(1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`step`](Self::step).
    #[track_caller]
    pub fn gradients<I: Send>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        loss: impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
    ) -> Result<Gradients> {
        let items: Vec<I> = items.into_iter().collect();
        let all: Vec<ParamId> = (0..self.module().params.len()).map(ParamId::new).collect();
        let items = Items::whole(items, 1);
        let Self { session, emitter, .. } = self;
        let ready = minibatch::prepare(session.planning(), emitter, &all, items, &loss)?;
        let step = self.execute(&ready);
        let step = self.handle_device_loss(step)?;
        let read = self.session.minibatch_gradients(&ready.plan, step.weighted_loss());
        self.handle_device_loss(read)
    }

    /// Makes one step on a graph that the caller emitted, for frontends that emit without closures. The loss of
    /// the minibatch is the mean of `losses`. `Step::emit` is zero.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::Linear;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("line");
    /// # let line = Linear::new(&mut m, "line", 1, 1);
    /// # let mut trainer = Trainer::new(m.build()?, Adam::new(0.05))?;
    /// let g = trainer.session().graph();
    /// let losses = [0.5, -2.0].map(|x| line.on(g.input(&[x])).mse(g.input(&[0.0])));
    /// assert_eq!(trainer.step_graph(&g, losses)?.instances(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`step`](Self::step); also if the graph's module has other parameters.
    #[track_caller]
    pub fn step_graph<'g>(
        &mut self,
        graph: &'g Graph,
        losses: impl IntoIterator<Item = Value<'g>>,
    ) -> Result<Step> {
        let start = Instant::now();
        self.check_whole("step_graph")?;
        graph.check()?;
        let losses: Vec<Value<'g>> = losses.into_iter().collect();
        losses.iter().try_for_each(|&loss| check_own(graph, loss))?;
        let losses: Vec<ValueKey> = losses.into_iter().filter_map(Value::key).collect();
        if losses.is_empty() {
            return Err(TrainError::Empty.into());
        }
        let data = graph.data();
        self.session.check_module(&data)?;
        let shares = vec![1.0 / losses.len() as f32; losses.len()];
        let shares = Shares { shares: &shares, first: Some(0), weight: losses.len() as f64, cuts: &[] };
        let ready =
            minibatch::plan(self.session.planning(), &data, self.updater.trained(), &losses, shares, start)?;
        let executed = self.session.execute(&ready.plan, &data, self.noise());
        let step = self.executed(&ready, &data, executed);
        self.finish(step)
    }
}

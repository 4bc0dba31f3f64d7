//! [`OpenStep`]: a step whose graphs the caller emits one after the other.

use super::Trainer;
use super::minibatch::{self, Shares};
use crate::error::Result;
use crate::session::Growing;
use crate::train::error::TrainError;
use crate::train::report::Step;
use autobatch_ir::{Graph, Value};
use std::fmt;
use std::time::Instant;

/// A step of [`Trainer::begin_step`]. Without [`finish`](Self::finish) it changes nothing.
pub struct OpenStep<'t> {
    trainer: &'t mut Trainer,
    /// The sum of the weights of all items.
    weight: f64,
    step: Option<Step>,
}

impl fmt::Debug for OpenStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStep").field("weight", &self.weight).finish_non_exhaustive()
    }
}

impl Trainer {
    /// Begins a step whose minibatch the caller emits, into one graph or part after part: for frontends that emit without
    /// closures, and for minibatches that do not fit in memory. `weight` is the sum of the weights of all items: the loss of
    /// the minibatch is the sum of the items' losses divided by it. With the number of items it is their mean.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::Linear;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("line");
    /// # let line = Linear::new(&mut m, "line", 1, 1);
    /// # let mut trainer = Trainer::new(m.build()?, Adam::new(0.05))?;
    /// let mut step = trainer.begin_step(4.0)?;
    /// for part in [[0.5, -2.0], [1.0, 3.0]] {
    ///     let g = step.graph();
    ///     let losses = part.map(|x| line.on(g.input(&[x])).mse(g.input(&[0.0])));
    ///     step.part(&g, losses, 2.0)?;
    /// }
    /// assert_eq!(step.finish()?.instances(), 4);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The weight is not positive and finite. With [shards](Self::shards), steps take closures.
    pub fn begin_step(&mut self, weight: f64) -> Result<OpenStep<'_>> {
        self.check_whole("begin_step")?;
        match weight.is_finite() && weight > 0.0 {
            true => Ok(OpenStep { trainer: self, weight, step: None }),
            false => Err(TrainError::Weights { sum: weight }.into()),
        }
    }

    /// Executes a graph step by step while the model emits it, with the noise of the next step. A step on the same graph then
    /// has the values that the model saw.
    #[track_caller]
    pub fn growing<'s, 'g>(&'s mut self, graph: &'g Graph) -> Growing<'s, 'g> {
        let noise = self.noise();
        self.session.growing_with(graph, noise)
    }
}

impl OpenStep<'_> {
    /// Returns an empty graph of the module.
    #[must_use]
    pub fn graph(&self) -> Graph {
        self.trainer.session.graph()
    }

    /// Executes some items forward and in reverse, and adds their gradients to those of earlier parts. `weight` is the sum of
    /// the weights of these items.
    ///
    /// # Errors
    /// As [`Trainer::step_graph`].
    #[track_caller]
    pub fn part<'g>(
        &mut self,
        graph: &'g Graph,
        losses: impl IntoIterator<Item = Value<'g>>,
        weight: f64,
    ) -> Result<()> {
        let start = Instant::now();
        let losses = minibatch::keys_of(graph, losses)?;
        if losses.is_empty() {
            return Err(TrainError::Empty.into());
        }
        let first = self.step.as_ref().map_or(0, |step| step.losses.len());
        let shares = Shares { share: (1.0 / self.weight) as f32, first, weight, cuts: &[] };
        let Self { trainer, step: whole, .. } = self;
        let (noise, data) = (trainer.noise(), graph.data());
        trainer.session.check_module(&data)?;
        let trained = trainer.updater.trained();
        let ready = minibatch::plan(trainer.session.planning(), &data, trained, &losses, shares, start)?;
        trainer.session.accumulate_gradients(whole.is_some());
        let executed = trainer.session.execute(&ready.plan, &data, noise);
        trainer.session.accumulate_gradients(false);
        let step = trainer.executed(&ready, &data, executed);
        let step = trainer.handle_device_loss(step)?;
        match whole {
            None => *whole = Some(step),
            Some(whole) => whole.add(step),
        }
        Ok(())
    }

    /// Updates the parameters with the gradients of all parts.
    ///
    /// # Errors
    /// As [`Trainer::step`].
    pub fn finish(self) -> Result<Step> {
        let Self { trainer, step, .. } = self;
        trainer.finish(Ok(step.ok_or(TrainError::Empty)?))
    }
}

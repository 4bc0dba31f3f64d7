//! Steps on graphs that the caller emitted, and gradients without a step.

use super::Trainer;
use super::minibatch::{self, ItemsLeft};
use crate::error::Result;
use crate::session::Gradients;
use crate::train::error::TrainError;
use crate::train::minibatch::IntoMinibatch;
use crate::train::report::Step;
use autobatch_ir::id::ParamId;
use autobatch_ir::{Graph, Value};

impl Trainer {
    /// Returns the gradients that [`step`](Self::step) would apply to this minibatch, for all parameters, frozen ones
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
    pub fn gradients<M: IntoMinibatch<Item: Send>>(
        &mut self,
        minibatch: M,
        loss: impl for<'g> Fn(&'g Graph, M::Item) -> Value<'g> + Sync,
    ) -> Result<Gradients> {
        let all: Vec<ParamId> = (0..self.module().params.len()).map(ParamId::new).collect();
        let items = ItemsLeft::whole(minibatch.into_minibatch(), 1)?;
        let Self { session, emitter, .. } = self;
        let ready = minibatch::prepare(session.planning(), emitter, &all, items, &loss)?;
        let step = self.execute(&ready);
        let step = self.handle_device_loss(step)?;
        let read = self.session.minibatch_gradients(&ready.plan, step.weighted_loss());
        self.handle_device_loss(read)
    }

    /// Makes one step on a graph that the caller emitted: for a loss that is no sum over items, for instances with a
    /// common encoder, and for frontends that emit without closures. The loss of the minibatch is the mean of `losses`.
    /// `Step::emit` is zero.
    ///
    /// Call [`Graph::instance`] before the ops of each instance: its key selects the noise of the instance, and
    /// errors name it. Call [`Graph::common`] before the ops that belong to all instances, such as the sum of
    /// their losses. A [named output](Graph::output) of each summand reports it in [`Step::outputs`].
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
        self.check_whole("step_graph")?;
        let losses: Vec<Value<'g>> = losses.into_iter().collect();
        if losses.is_empty() {
            return Err(TrainError::Empty.into());
        }
        let weight = losses.len() as f64;
        let mut step = self.begin_step(weight)?;
        step.part(graph, losses, weight)?;
        step.finish()
    }
}

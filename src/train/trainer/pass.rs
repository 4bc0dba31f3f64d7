//! A pass over minibatches. It emits and plans the next minibatch while the current one executes.

use super::Trainer;
use super::minibatch::{self, Items, Losses};
use super::sharded::Mean;
use crate::emit::Emitter;
use crate::error::Result;
use crate::session::{Planning, Prefetch, Prepared};
use crate::train::checkpoint::Progress;
use crate::train::report::Step;
use autobatch_ir::{Graph, Value};
use std::fmt;
use std::iter::Fuse;

/// An iterator of steps over minibatches; [`Trainer::pass`] makes one.
pub struct Pass<'t, B, F> {
    trainer: &'t mut Trainer,
    /// Timing decides whether the pass looks ahead, so the iterator must stay at its end once it has ended.
    batches: Fuse<B>,
    loss: F,
    prefetch: Prefetch<Losses>,
}

impl<B, F> fmt::Debug for Pass<'_, B, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("trainer", &self.trainer).finish_non_exhaustive()
    }
}

impl Trainer {
    /// Steps over minibatches with the bits of [`step`](Self::step). On a GPU, and with several threads, the
    /// trainer emits and plans the next minibatch while the current one executes. The times `emit` and
    /// `plan` of a [`Step`] then count only the waiting. A program that stops early has taken one minibatch
    /// more from `batches` than it stepped.
    ///
    /// ```
    /// use autobatch::prelude::*;
    /// use autobatch::nn::Linear;
    ///
    /// # fn main() -> autobatch::Result<()> {
    /// let mut m = ModuleBuilder::new("line");
    /// let line = Linear::new(&mut m, "line", 1, 1);
    /// let mut trainer = Trainer::new(m.build()?, Adam::new(0.05))?;
    /// let data: Vec<(f32, f32)> = (0..32).map(|i| (i as f32 / 16.0, 1.0 - i as f32 / 8.0)).collect();
    /// let batches = data.batches(8).shuffled(1);
    /// for step in trainer.pass(batches, |g, (x, y)| line.on(g.input(&[*x])).mse(g.input(&[*y]))) {
    ///     assert!(step?.loss.is_finite());
    /// }
    /// assert_eq!(trainer.steps(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn pass<I, T, B, F>(&mut self, batches: B, loss: F) -> Pass<'_, B::IntoIter, F>
    where
        I: Send,
        T: IntoIterator<Item = I>,
        B: IntoIterator<Item = T>,
        F: for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
    {
        let prefetch = Prefetch::new(self.emitter.another());
        Pass { trainer: self, batches: batches.into_iter().fuse(), loss, prefetch }
    }
}

impl<I, T, B, F> Pass<'_, B, F>
where
    I: Send,
    T: IntoIterator<Item = I>,
    B: Iterator<Item = T>,
    F: for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
{
    /// Sets the position in the data for checkpoints, as [`Trainer::set_progress`].
    pub fn set_progress(&mut self, progress: Progress) {
        self.trainer.set_progress(progress);
    }

    /// Returns the trainer after the last step.
    #[must_use]
    pub fn trainer(&self) -> &Trainer {
        self.trainer
    }

    #[track_caller]
    fn prepared(&mut self) -> Option<Result<Prepared<Losses>>> {
        let Self { trainer, batches, loss, prefetch } = self;
        let shards = trainer.shard_count();
        let Trainer { session, updater, emitter, .. } = &mut **trainer;
        prefetch.take_or_prepare(emitter, |emitter| {
            let items = batches.next()?.into_iter().collect();
            let items = Items::whole(items, shards);
            Some(minibatch::prepare(session.planning(), emitter, updater.trained(), items, loss))
        })
    }

    /// Executes a minibatch and prepares the next one at the same time.
    fn execute(&mut self, ready: &Prepared<Losses>, items: Vec<I>) -> Result<Step> {
        let Self { trainer, loss, prefetch, .. } = self;
        let items = Items::whole(items, trainer.shard_count());
        trainer.execute_while(ready, prefetch, items, loss)
    }
}

impl Trainer {
    /// Executes the minibatch of the last emitted graph and prepares the next one at the same time.
    pub(super) fn execute_while<I: Send>(
        &mut self,
        ready: &Prepared<Losses>,
        prefetch: &mut Prefetch<Losses>,
        next: Items<I>,
        loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Step> {
        let noise = self.noise();
        let Self { session, updater, emitter, .. } = self;
        let data = emitter.graph().data();
        let prepare = |planning: &mut Planning, emitter: &mut Emitter| {
            minibatch::prepare(planning, emitter, updater.trained(), next, loss)
        };
        let executed = prefetch.execute(session, &ready.plan, (&data, noise), prepare);
        drop(data);
        self.executed(ready, &self.emitter.graph().data(), executed)
    }
}

impl<I, T, B, F> Iterator for Pass<'_, B, F>
where
    I: Send,
    T: IntoIterator<Item = I>,
    B: Iterator<Item = T>,
    F: for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
{
    type Item = Result<Step>;

    #[track_caller]
    fn next(&mut self) -> Option<Result<Step>> {
        let Self { trainer, batches, loss, .. } = self;
        if !trainer.is_alone() {
            let items = batches.next()?.into_iter().collect();
            return Some(
                trainer.step_in_shards(items, usize::MAX, Mean::Items, &|g, item| (loss(g, item), 1.0)),
            );
        }
        let ready = match self.prepared()? {
            Ok(ready) => ready,
            Err(error) => return Some(Err(error)),
        };
        let next =
            if self.prefetch.is_worthwhile(&self.trainer.session) { self.batches.next() } else { None };
        let items = next.map(|items| items.into_iter().collect());
        let step = match items {
            Some(items) => self.execute(&ready, items),
            None => self.trainer.execute(&ready),
        };
        Some(self.trainer.finish(step))
    }
}

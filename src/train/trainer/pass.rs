//! A pass over minibatches. It emits and plans the next minibatch while the current one executes.

use super::Trainer;
use super::minibatch::{self, Items, ItemsLeft, Losses};
use crate::emit::Emitter;
use crate::error::Result;
use crate::session::{Planning, Prefetch, Prepared};
use crate::train::checkpoint::Progress;
use crate::train::minibatch::{IntoMinibatch, Minibatch};
use crate::train::report::Step;
use autobatch_ir::{Graph, Value};
use std::fmt;
use std::iter::Fuse;

/// An iterator of steps over minibatches; [`Trainer::pass`] makes one.
pub struct Pass<'t, I, B, F> {
    trainer: &'t mut Trainer,
    /// Timing decides whether the pass looks ahead, so the iterator must stay at its end once it has ended.
    batches: Fuse<B>,
    loss: F,
    prefetch: Prefetch<Losses>,
    /// A minibatch taken early that does not execute as one graph.
    held: Option<Minibatch<I>>,
}

impl<I, B, F> fmt::Debug for Pass<'_, I, B, F> {
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
    pub fn pass<I, T, B, F>(&mut self, batches: B, loss: F) -> Pass<'_, I, B::IntoIter, F>
    where
        I: Send,
        T: IntoMinibatch<Item = I>,
        B: IntoIterator<Item = T>,
        F: for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
    {
        let prefetch = Prefetch::new(self.emitter.another());
        Pass { trainer: self, batches: batches.into_iter().fuse(), loss, prefetch, held: None }
    }
}

impl<I, T, B, F> Pass<'_, I, B, F>
where
    I: Send,
    T: IntoMinibatch<Item = I>,
    B: Iterator<Item = T>,
    F: for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
{
    /// Sets the position in the data for checkpoints, as [`Trainer::set_progress`].
    pub fn set_progress(&mut self, progress: Progress) {
        self.trainer.set_progress(progress);
    }

    /// Sets the signal of this rank, as [`Trainer::set_signal`].
    pub fn set_signal(&mut self, signal: u8) {
        self.trainer.set_signal(signal);
    }

    /// Returns the trainer after the last step.
    #[must_use]
    pub fn trainer(&self) -> &Trainer {
        self.trainer
    }

    fn next_minibatch(&mut self) -> Option<Minibatch<I>> {
        self.held.take().or_else(|| self.batches.next().map(IntoMinibatch::into_minibatch))
    }

    /// Takes the next minibatch early if it is one graph and preparing it takes long enough.
    fn take_early(&mut self) -> Option<Result<Items<I>>> {
        let is_worthwhile = self.prefetch.is_worthwhile(&self.trainer.session);
        let next = if is_worthwhile { self.next_minibatch() } else { None }?;
        if !self.trainer.is_one_graph(&next) {
            self.held = Some(next);
            return None;
        }
        Some(ItemsLeft::whole(next, self.trainer.shard_count()))
    }

    /// Makes the next step, or returns its minibatch prepared.
    #[track_caller]
    fn step_or_prepare(&mut self) -> Option<Result<Next>> {
        let fresh = if self.prefetch.is_ready() { None } else { Some(self.next_minibatch()?) };
        let Self { trainer, loss, prefetch, .. } = self;
        let items = match fresh {
            Some(minibatch) if !trainer.is_one_graph(&minibatch) => {
                return Some(trainer.step_as_is(minibatch, loss).map(Next::Step));
            }
            fresh => fresh.map(|minibatch| ItemsLeft::whole(minibatch, trainer.shard_count())),
        };
        let Trainer { session, updater, emitter, .. } = &mut **trainer;
        let ready = prefetch.take_or_prepare(emitter, |emitter| {
            let prepare =
                |items| minibatch::prepare(session.planning(), emitter, updater.trained(), items, &*loss);
            items.map(|items| items.and_then(prepare))
        });
        Some(ready?.map(Next::Ready))
    }
}

/// A minibatch of a pass.
enum Next {
    Step(Step),
    Ready(Prepared<Losses>),
}

impl Trainer {
    /// Executes the minibatch of the last emitted graph and prepares the next one at the same time.
    pub(super) fn execute_while<I: Send>(
        &mut self,
        ready: &Prepared<Losses>,
        prefetch: &mut Prefetch<Losses>,
        next: Result<Items<I>>,
        loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Step> {
        let noise = self.noise();
        let Self { session, updater, emitter, .. } = self;
        let data = emitter.graph().data();
        let prepare = |planning: &mut Planning, emitter: &mut Emitter| {
            minibatch::prepare(planning, emitter, updater.trained(), next?, loss)
        };
        let executed = prefetch.execute(session, &ready.plan, &data, noise, prepare);
        drop(data);
        self.executed(ready, &self.emitter.graph().data(), executed)
    }
}

impl<I, T, B, F> Iterator for Pass<'_, I, B, F>
where
    I: Send,
    T: IntoMinibatch<Item = I>,
    B: Iterator<Item = T>,
    F: for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
{
    type Item = Result<Step>;

    #[track_caller]
    fn next(&mut self) -> Option<Result<Step>> {
        let ready = match self.step_or_prepare()? {
            Ok(Next::Ready(ready)) => ready,
            Ok(Next::Step(step)) => return Some(Ok(step)),
            Err(error) => return Some(Err(error)),
        };
        let early = self.take_early();
        let Self { trainer, loss, prefetch, .. } = self;
        let step = match early {
            Some(next) => trainer.execute_while(&ready, prefetch, next, loss),
            None => trainer.execute(&ready),
        };
        Some(trainer.finish(step))
    }
}

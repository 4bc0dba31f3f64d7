//! A pass over minibatches: while one is executed, the next is emitted and planned.

use super::Trainer;
use super::minibatch::{self, Losses};
use crate::emit::Emitter;
use crate::error::Result;
use crate::session::{Meanwhile, Planning, Prepared};
use crate::train::checkpoint::Progress;
use crate::train::report::Step;
use autobatch_ir::{Graph, Value};
use std::fmt;
use std::iter::Fuse;

/// Steps over minibatches, one at a time: [`Trainer::pass`] makes one.
pub struct Pass<'t, B, F> {
    trainer: &'t mut Trainer,
    /// Whether a minibatch is looked for ahead depends on time; the first end must be the end either way.
    batches: Fuse<B>,
    loss: F,
    meanwhile: Meanwhile<Losses>,
}

impl<B, F> fmt::Debug for Pass<'_, B, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("trainer", &self.trainer).finish_non_exhaustive()
    }
}

impl Trainer {
    /// Steps over minibatches as [`step`](Self::step) makes them, bit for bit. On a GPU, and where there
    /// are threads, the next minibatch is emitted and planned while one is executed; of a [`Step`], `emit`
    /// and `plan` are then what it had to wait for. Whoever stops early has taken one minibatch more from
    /// `batches` than was stepped.
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
        let meanwhile = Meanwhile::new(self.emitter.another());
        Pass { trainer: self, batches: batches.into_iter().fuse(), loss, meanwhile }
    }
}

impl<I, T, B, F> Pass<'_, B, F>
where
    I: Send,
    T: IntoIterator<Item = I>,
    B: Iterator<Item = T>,
    F: for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
{
    /// Says where the data stands, for checkpoints: see [`Trainer::set_progress`].
    pub fn set_progress(&mut self, progress: Progress) {
        self.trainer.set_progress(progress);
    }

    /// The trainer as it stands behind the last step.
    #[must_use]
    pub fn trainer(&self) -> &Trainer {
        self.trainer
    }

    #[track_caller]
    fn prepared(&mut self) -> Option<Result<Prepared<Losses>>> {
        let Self { trainer, batches, loss, meanwhile } = self;
        let Trainer { session, updater, emitter, .. } = &mut **trainer;
        meanwhile.due(emitter, |emitter| {
            let items = batches.next()?.into_iter().collect();
            Some(minibatch::prepare(session.planning(), emitter, updater.trained(), whole(items), loss))
        })
    }

    /// Executes a minibatch, and prepares the next meanwhile.
    fn execute(&mut self, ready: &Prepared<Losses>, items: Vec<I>) -> Result<Step> {
        let Self { trainer, loss, meanwhile, .. } = self;
        trainer.execute_while(ready, meanwhile, whole(items), loss)
    }
}

/// A whole minibatch as its only part.
fn whole<I>(items: Vec<I>) -> (Vec<I>, usize, usize) {
    let count = items.len();
    (items, 0, count)
}

impl Trainer {
    /// Executes a minibatch, whose graph is the one that was emitted last, and prepares another one meanwhile.
    pub(super) fn execute_while<I: Send>(
        &mut self,
        ready: &Prepared<Losses>,
        meanwhile: &mut Meanwhile<Losses>,
        next: (Vec<I>, usize, usize),
        loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Step> {
        let noise = self.noise();
        let Self { session, updater, emitter, .. } = self;
        let data = emitter.graph().data();
        let prepare = |planning: &mut Planning, emitter: &mut Emitter| {
            minibatch::prepare(planning, emitter, updater.trained(), next, loss)
        };
        let executed = meanwhile.execute(session, &ready.plan, (&data, noise), prepare);
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
        let ready = match self.prepared()? {
            Ok(ready) => ready,
            Err(error) => return Some(Err(error)),
        };
        let next = if self.meanwhile.pays(&self.trainer.session) { self.batches.next() } else { None };
        let items = next.map(|items| items.into_iter().collect());
        let step = match items {
            Some(items) => self.execute(&ready, items),
            None => self.trainer.execute(&ready),
        };
        Some(self.trainer.finish(step))
    }
}

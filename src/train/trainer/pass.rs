//! A pass over minibatches: while one is played, the next is emitted and planned.

use super::Trainer;
use super::minibatch::{self, Prepared};
use crate::error::Result;
use crate::session::Planning;
use crate::train::checkpoint::Progress;
use crate::train::emit::{Emitter, WORTH_A_THREAD};
use crate::train::report::Step;
use autobatch_ir::{Graph, Value};
use std::fmt;
use std::iter::Fuse;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps over minibatches, one at a time: [`Trainer::pass`] makes one.
pub struct Pass<'t, B, F> {
    trainer: &'t mut Trainer,
    /// Whether a minibatch is looked for ahead depends on time; the first end must be the end either way.
    batches: Fuse<B>,
    loss: F,
    /// Emits the next minibatch while the trainer's holds the one that is played.
    emitter: Emitter,
    /// The next minibatch if it was prepared already, or why it cannot be.
    next: Option<Result<Prepared>>,
    /// How long preparing took last.
    pace: Duration,
}

impl<B, F> fmt::Debug for Pass<'_, B, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("trainer", &self.trainer).finish_non_exhaustive()
    }
}

impl Trainer {
    /// Steps over minibatches as [`step`](Self::step) makes them, bit for bit. On a GPU, and where there
    /// are threads, the next minibatch is emitted and planned while one is played; of a [`Step`], `emit`
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
        let emitter = self.emitter.another();
        let batches = batches.into_iter().fuse();
        Pass { trainer: self, batches, loss, emitter, next: None, pace: Duration::ZERO }
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

    /// Whether a thread is at hand, and has something to do, while a minibatch is played.
    fn looks_ahead(&self) -> bool {
        self.pace >= WORTH_A_THREAD && (self.trainer.threads > 1 || self.trainer.session.is_elsewhere())
    }

    fn items(&mut self) -> Option<Vec<I>> {
        self.batches.next().map(|items| items.into_iter().collect())
    }

    #[track_caller]
    fn prepared(&mut self) -> Option<Result<Prepared>> {
        if let Some(ready) = self.next.take() {
            std::mem::swap(&mut self.trainer.emitter, &mut self.emitter);
            return Some(ready);
        }
        let items = self.items()?;
        let Trainer { session, updater, emitter, .. } = &mut *self.trainer;
        let start = Instant::now();
        let ready = minibatch::prepare(session.planning(), emitter, updater.trained(), items, &self.loss);
        self.pace = start.elapsed();
        Some(ready)
    }

    /// Plays a minibatch, and prepares the next meanwhile.
    fn play(&mut self, ready: &Prepared, items: Vec<I>) -> Result<Step> {
        let Self { trainer, loss, emitter, .. } = self;
        let (noise, data) = (trainer.noise(), trainer.emitter.graph().data());
        let trained = trainer.updater.trained();
        let start = Instant::now();
        let prepare = |planning: &mut Planning| minibatch::prepare(planning, emitter, trained, items, loss);
        let next = |made: &Result<Prepared>| made.as_ref().ok().map(|made| Arc::clone(&made.plan));
        let (played, mut made) = trainer.session.play_while(&ready.plan, &data, noise, prepare, next);
        if let Ok(made) = &mut made {
            self.pace = made.emit + made.planning;
            let waited = start.elapsed().saturating_sub(*played.as_ref().unwrap_or(&Duration::ZERO));
            made.waited_for(waited);
        }
        self.next = Some(made);
        trainer.played(ready, &data, played)
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
        let items = if self.looks_ahead() { self.items() } else { None };
        let step = match items {
            Some(items) => self.play(&ready, items),
            None => self.trainer.play(&ready),
        };
        Some(self.trainer.finish(step))
    }
}

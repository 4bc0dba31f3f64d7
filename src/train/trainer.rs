//! [`Trainer`]: a session with an optimiser.

mod back;
mod frozen;
mod minibatch;
mod pass;

pub use pass::Pass;

use crate::device::Device;
use crate::emit::{Emitter, Threads, check_own};
use crate::error::Result;
use crate::mirror::Trained;
use crate::row::Row;
use crate::session::{Meanwhile, Session, SessionOptions, Together, in_parts};
use crate::train::checkpoint::{self, CheckpointError, Progress};
use crate::train::error::TrainError;
use crate::train::locate::of_minibatch;
use crate::train::report::{Evaluation, Step};
use crate::train::update::Updater;
use autobatch_ir::{Graph, Module, Value, ValueKey, Weights};
use autobatch_nn::optim::{Optimizer, Schedule};
use autobatch_runtime_cpu::MAX_THREADS;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// How many items of an evaluation go into a graph.
const EVALUATED_TOGETHER: usize = 256;

/// A [`Session`] with an optimiser: steps change the session's weights.
///
/// Everything is a function of the module, the seed and the minibatches in their order: dropout
/// draws other noise in every step and the same in a repeated run, and neither the number of threads
/// nor the time that anything takes changes a bit.
///
/// ```
/// use autobatch::prelude::*;
/// use autobatch::nn::Linear;
///
/// # fn main() -> autobatch::Result<()> {
/// let mut m = ModuleBuilder::new("line");
/// let line = Linear::new(&mut m, "line", 1, 1);
/// let mut trainer = Trainer::new(m.build()?, Adam::new(0.05))?.on(Device::best())?;
/// let data: Vec<(f32, f32)> = (0..32).map(|i| i as f32 / 16.0 - 1.0).map(|x| (x, 3.0 * x - 1.0)).collect();
/// for epoch in 0..80 {
///     for batch in data.batches(8).shuffled(epoch) {
///         trainer.step(batch, |g, (x, y)| line.on(g.input(&[*x])).mse(g.input(&[*y])))?;
///     }
/// }
/// let error = trainer.evaluate(&data, |g, (x, _)| line.on(g.input(&[*x])), |(_, y), p| (p[0] - y).abs())?;
/// assert!(error.mean() < 0.05);
/// # Ok(())
/// # }
/// ```
pub struct Trainer {
    pub(super) session: Session,
    pub(super) updater: Updater,
    pub(super) seed: u64,
    steps: u64,
    progress: Progress,
    notes: BTreeMap<String, String>,
    /// Where the data stood in the state that is gone back to if a device is lost.
    mirrored: Progress,
    mirror_every: u64,
    emitter: Emitter,
    frozen: Vec<bool>,
}

impl fmt::Debug for Trainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trainer")
            .field("session", &self.session)
            .field("seed", &self.seed)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl Trainer {
    /// A trainer with freshly drawn weights (seed 0) and default options.
    ///
    /// # Errors
    /// If the module has no parameters, the optimiser has numbers that it cannot work with or speaks of parameters that there
    /// are not, or as [`Session::new`].
    #[track_caller]
    pub fn new(module: impl Borrow<Arc<Module>>, optimizer: impl Into<Optimizer>) -> Result<Self> {
        Self::with_options(module, optimizer, SessionOptions::default(), 0)
    }

    /// A trainer with given options. The weights and all noise follow from the seed.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[track_caller]
    pub fn with_options(
        module: impl Borrow<Arc<Module>>,
        optimizer: impl Into<Optimizer>,
        options: SessionOptions,
        seed: u64,
    ) -> Result<Self> {
        let module = module.borrow();
        if module.params.is_empty() {
            return Err(TrainError::NothingToTrain { frozen: 0 }.into());
        }
        let weights = Arc::new(Weights::try_init(module, seed)?);
        let mut session = Session::with_options(module, Arc::clone(&weights), options)?;
        let frozen = vec![false; module.params.len()];
        let (updater, states) = Updater::new(optimizer.into(), module, &frozen::trained(&frozen), &weights)?;
        session.replace(Trained { weights, states });
        let emitter = Emitter::new(module, Threads::UpTo(session.threads()));
        Ok(Self {
            session,
            updater,
            seed,
            steps: 0,
            progress: Progress::default(),
            notes: BTreeMap::new(),
            mirrored: Progress::default(),
            mirror_every: 0,
            emitter,
            frozen,
        })
    }

    /// Executes on another device from now on. Weights and the optimiser's state stay.
    ///
    /// A GPU keeps parameters and the optimiser's state: gradients never leave it, and of a step only
    /// losses and outputs come back. [`weights`](Self::weights), [`averages`](Self::averages) and
    /// [`save`](Self::save) read the rest. If the device is lost, the step fails with
    /// [`TrainError::WentBack`] and the trainer is as it was when it was read last, parameters, state,
    /// [`steps`](Self::steps) and [`progress`](Self::progress) alike: steps from there on have the bits
    /// that they had. [`mirror_every`](Self::mirror_every) reads now and then, so that less is lost.
    ///
    /// # Errors
    /// If there is no such device, or it gives no access.
    pub fn on(mut self, device: Device) -> Result<Self> {
        self.session = self.session.on(device)?;
        Ok(self)
    }

    /// Emits on exactly so many threads, [`MAX_THREADS`] at most, where it is normally as many as pay: results are the same.
    #[must_use]
    pub fn emit_threads(mut self, threads: usize) -> Self {
        self.emitter.set_threads(match threads {
            0 => Threads::UpTo(self.session.threads()),
            threads => Threads::Exactly(threads.min(MAX_THREADS)),
        });
        self
    }

    /// The session, for predictions: without noise, with the weights as they are now.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The module that is trained.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        self.session.module()
    }

    /// The parameters' values; see [`Session::weights`].
    #[must_use]
    pub fn weights(&self) -> &Arc<Weights> {
        self.session.weights()
    }

    /// The parameters with their moving averages in the place of their values, if the optimiser keeps
    /// averages: what is often better to ship, and to measure with a session of its own.
    #[must_use]
    pub fn averages(&self) -> Option<Weights> {
        let Trained { weights, states } = self.session.trained().unwrap_or(self.session.here());
        states.averages(weights)
    }

    /// Exchanges the parameters' values. The optimiser's state stays.
    ///
    /// # Errors
    /// If they are another module's.
    pub fn set_weights(&mut self, weights: Arc<Weights>) -> Result<()> {
        let set = self.session.set_weights(weights);
        self.noticed(set)?;
        self.mirrored = self.progress;
        Ok(())
    }

    /// The learning rate of the next step: the optimiser's times what its schedule says.
    #[must_use]
    pub fn learning_rate(&self) -> f64 {
        self.updater.optimizer().learning_rate(self.session.updates() + 1)
    }

    /// Exchanges the schedule of the learning rate, on a plateau say; the optimiser's state stays. Schedules count
    /// updates from the first one on, and checkpoints hold none.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// # m.param("w", [1], Init::ZEROS);
    /// let mut trainer = Trainer::new(m.build()?, Adam::new(0.01))?;
    /// trainer.set_schedule(Schedule::custom(|_| 0.5));
    /// assert_eq!(trainer.learning_rate(), 0.005);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_schedule(&mut self, schedule: Schedule) {
        self.updater.set_schedule(schedule);
    }

    /// Says where the data stands, for the next checkpoint.
    pub fn set_progress(&mut self, progress: Progress) {
        self.progress = progress;
    }

    /// One step: the loss of the minibatch is the mean of the items' losses. Items are emitted as
    /// instances whose keys are their places in the minibatch, on several threads where it pays.
    ///
    /// # Errors
    /// The first fault of emitting, an empty minibatch, a loss or a learning rate that is not finite, an index
    /// that is out of range; the weights are as before the step then.
    #[track_caller]
    pub fn step<I: Send>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        loss: impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
    ) -> Result<Step> {
        let items: Vec<I> = items.into_iter().collect();
        let count = items.len();
        let Self { session, updater, emitter, .. } = self;
        let ready =
            minibatch::prepare(session.planning(), emitter, updater.trained(), (items, 0, count), &loss)?;
        let step = self.execute(&ready);
        self.finish(step)
    }

    /// One step, emitted freely: sums over pairs, encoders that instances share.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    #[track_caller]
    pub fn step_with(&mut self, loss: impl for<'g> FnOnce(&'g Graph) -> Value<'g>) -> Result<Step> {
        let start = Instant::now();
        let losses = self.emitter.emit_one(loss)?;
        let ready = self.planned(&losses, None, 1, start)?;
        let step = self.execute(&ready);
        self.finish(step)
    }

    /// One step over items whose course depends on what is computed of them: each is a task, see
    /// [`Session::tasks`], that gives its loss. What tasks wait for is executed with the noise of this
    /// step, round by round; then everything that the losses need is executed once more, forward and
    /// backward, with the same bits. `Step::emit` has the time of all rounds.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::Linear;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("line");
    /// # let line = Linear::new(&mut m, "line", 1, 1);
    /// # let mut trainer = Trainer::new(m.build()?, Adam::new(0.05))?;
    /// let step = trainer.step_tasks([0.5, -2.0], async |g, x| {
    ///     let mut y = line.on(g.input(&[x]));
    ///     while y.get().await?[0].abs() > 1.0 {
    ///         y = y * 0.5;
    ///     }
    ///     Ok(y.mse(g.input(&[0.0])))
    /// })?;
    /// assert_eq!(step.instances(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`step`](Self::step) and [`Session::tasks`].
    #[track_caller]
    pub fn step_tasks<I>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        loss: impl for<'g> AsyncFn(&'g Graph, I) -> Result<Value<'g>>,
    ) -> Result<Step> {
        let start = Instant::now();
        let noise = self.noise();
        let Self { session, emitter, .. } = self;
        let graph = emitter.restart();
        let tasks = items.into_iter().map(|item| loss(graph, item));
        let losses = session.growing_with(graph, noise).tasks(tasks).and_then(|losses| {
            losses.iter().try_for_each(|&loss| check_own(graph, loss))?;
            Ok(losses.into_iter().filter_map(Value::key).collect())
        });
        let losses: Vec<ValueKey> = self.noticed(losses).map_err(of_minibatch)?;
        if losses.is_empty() {
            return Err(TrainError::Empty.into());
        }
        let ready = self.planned(&losses, Some(0), losses.len(), start)?;
        let step = self.execute(&ready);
        self.finish(step)
    }

    /// One step whose minibatch is executed in parts of at most so many items, for minibatches that do
    /// not fit in memory: gradients are summed up over the parts, then parameters are updated once.
    /// Losses, noise and the update are those of [`step`](Self::step), up to the order of sums.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    #[track_caller]
    pub fn step_in_parts<I: Send>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        part: usize,
        loss: impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
    ) -> Result<Step> {
        let items = items.into_iter().collect::<Vec<I>>();
        let count = items.len();
        let mut parts = Together::new(items, part);
        let mut next = move || parts.next().map(|(first, items)| (items, first, count));
        let mut meanwhile = Meanwhile::new(self.emitter.another());
        let mut whole: Option<Step> = None;
        loop {
            let Self { session, updater, emitter, .. } = self;
            let ready = meanwhile.due(emitter, |emitter| {
                Some(minibatch::prepare(session.planning(), emitter, updater.trained(), next()?, &loss))
            });
            let Some(ready) = ready else { break };
            let ready = ready?;
            let follows = if meanwhile.pays(session) { next() } else { None };
            session.accumulate_gradients(whole.is_some());
            let executed = match follows {
                Some(follows) => self.execute_while(&ready, &mut meanwhile, follows, &loss),
                None => self.execute(&ready),
            };
            self.session.accumulate_gradients(false);
            let step = self.noticed(executed)?;
            match &mut whole {
                None => whole = Some(step),
                Some(whole) => whole.add(step),
            }
        }
        self.finish(Ok(whole.ok_or(TrainError::Empty)?))
    }

    /// Updates along the gradients that were executed.
    fn finish(&mut self, step: Result<Step>) -> Result<Step> {
        let mut step = self.noticed(step)?;
        let updating = Instant::now();
        let updated = self.updater.update(&mut self.session);
        if self.noticed(updated)? {
            self.mirrored = self.progress;
        }
        self.steps += 1;
        if self.mirror_every > 0 && self.steps.is_multiple_of(self.mirror_every) {
            // What goes wrong is said by the next step, which goes back.
            let _ = self.session.trained();
        }
        step.update = updating.elapsed();
        step.loss =
            (step.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / step.losses.len() as f64) as f32;
        Ok(step)
    }

    /// Measures every item without noise: `metric` takes the item and what `forward` computed of it, 256 items a part as
    /// [`Session::run_in_parts`] takes them. Weights stay as they are.
    ///
    /// # Errors
    /// As [`Session::run`]; or an index that is out of range.
    pub fn evaluate<I: Copy + Send, S: Into<f64>>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        forward: impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
        mut metric: impl FnMut(I, &Row) -> S,
    ) -> Result<Evaluation> {
        let mut evaluation = Evaluation::default();
        let Self { session, emitter, .. } = self;
        let measured = in_parts(
            session,
            emitter,
            (items, EVALUATED_TOGETHER),
            &|g, item, values| values.push(forward(g, item)),
            |item, rows| evaluation.add(metric(item, rows[0]).into()),
        );
        self.noticed(measured.map(|()| evaluation))
    }

    /// Writes a checkpoint: parameters, the optimiser's state, step, seed and [`Progress`], as
    /// safetensors. The file is whole at every moment: an old one is replaced at once or not at all.
    ///
    /// # Errors
    /// If the file cannot be written, or the notes do not fit one.
    pub fn save(&self, path: impl AsRef<Path>) -> std::result::Result<(), CheckpointError> {
        checkpoint::save(self, path.as_ref())
    }

    /// Goes on from a checkpoint of the same model and optimiser, with the same parameters frozen: the next steps have the bits that
    /// they would have had without the interruption, given the same minibatches. Nothing is changed
    /// if the checkpoint is refused.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or belongs to another model or optimiser; if other parameters were frozen.
    /// [`read_weights`](crate::train::read_weights) takes parameters alone.
    pub fn load(&mut self, path: impl AsRef<Path>) -> std::result::Result<(), CheckpointError> {
        checkpoint::load(self, path.as_ref())
    }
}

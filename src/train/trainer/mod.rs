//! [`Trainer`]: a session with an optimiser.

mod back;
mod finish;
mod frozen;
mod graph;
mod minibatch;
mod open_step;
mod pass;
mod phases;
mod sharded;

pub use open_step::OpenStep;
pub use pass::Pass;
pub use phases::SetAside;
pub use sharded::ShardedStep;

use crate::device::Device;
use crate::emit::{Emitter, Threads, check_own};
use crate::error::Result;
use crate::mirror::Trained;
use crate::row::Row;
use crate::session::{Prefetch, Session, SessionOptions};
use crate::train::checkpoint::{self, Progress};
use crate::train::checkpoint_error::CheckpointError;
use crate::train::error::TrainError;
use crate::train::locate::of_minibatch;
use crate::train::minibatch::{IntoMinibatch, Minibatch};
use crate::train::report::{Evaluation, Step};
use crate::train::update::Updater;
use autobatch_ir::id::ParamId;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::types::DType;
use autobatch_ir::{Graph, Module, States, Value, ValueKey, Weights};
use autobatch_nn::optim::{Optimizer, Schedule};
use autobatch_runtime_cpu::MAX_THREADS;
use minibatch::{ItemsLeft, Shares};
use sharded::Sharding;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The number of items per graph of an evaluation.
const EVALUATED_TOGETHER: usize = 256;

/// A [`Session`] with an optimiser. Steps change the session's weights.
///
/// The result is a function of the module, the seed and the minibatches in order. Dropout draws new
/// noise in every step and repeats it in a repeated run. The number of threads and the timing change no
/// bit.
///
/// ```
/// use autobatch::prelude::*;
/// use autobatch::nn::Linear;
///
/// # fn main() -> autobatch::Result<()> {
/// let mut m = ModuleBuilder::new("line");
/// let line = Linear::new(&mut m, "line", 1, 1);
/// let mut trainer = Trainer::new(m.build()?, Adam::new(0.05))?.on_device(Device::best())?;
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
    /// The position in the data of the state that a device loss leads back to.
    mirrored: Progress,
    mirror_every: u64,
    emitter: Emitter,
    frozen: Vec<bool>,
    /// The plan of the gradients that wait for [`update`](Self::update).
    pending: Option<Arc<Verified<Plan>>>,
    /// The shards of each minibatch; `None` if it executes as a whole.
    sharding: Option<Sharding>,
    /// The signal of this rank.
    signal: u8,
    /// The settings that differ from those of the loaded checkpoint.
    changes: Vec<String>,
    skips_non_finite: bool,
    skipped: u64,
    updates_unused: bool,
    /// The parameters that the waiting gradients belong to.
    pending_used: Vec<ParamId>,
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
    /// Creates a trainer with freshly drawn weights (seed 0) and default options.
    ///
    /// # Errors
    /// The module has no parameters, or the optimiser has invalid hyperparameters or names parameters that
    /// do not exist; or as [`Session::new`].
    #[track_caller]
    pub fn new(module: impl Borrow<Arc<Module>>, optimizer: impl Into<Optimizer>) -> Result<Self> {
        let weights = Arc::new(Weights::try_init(module.borrow(), 0)?);
        Self::with_options(module, optimizer, weights, SessionOptions::default())
    }

    /// Creates a trainer with the given weights and options, as
    /// [`Session::with_options`]. Weights come from [`Weights::init`] with a seed, from a file, or from another
    /// trainer; [`SessionOptions::seed`] selects the noise.
    ///
    /// # Errors
    /// As [`new`](Self::new); also if the weights belong to another module.
    #[track_caller]
    pub fn with_options(
        module: impl Borrow<Arc<Module>>,
        optimizer: impl Into<Optimizer>,
        weights: Arc<Weights>,
        options: SessionOptions,
    ) -> Result<Self> {
        let module = module.borrow();
        if module.params.is_empty() {
            return Err(TrainError::NothingToTrain { frozen: 0 }.into());
        }
        let seed = options.seed;
        let mut session = Session::with_options(module, Arc::clone(&weights), options)?;
        let frozen = vec![false; module.params.len()];
        let (updater, states) =
            Updater::new(optimizer.into(), module, &frozen::trained(&frozen), None, &weights)?;
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
            pending: None,
            sharding: None,
            signal: 0,
            changes: Vec::new(),
            skips_non_finite: false,
            skipped: 0,
            updates_unused: false,
            pending_used: Vec::new(),
        })
    }

    /// Moves training to another device. Weights and optimiser states stay.
    ///
    /// A GPU keeps parameters and states: gradients leave it only to name one that is not finite, and a step returns only losses and
    /// outputs. [`weights`](Self::weights), [`averages`](Self::averages) and [`save`](Self::save) read the
    /// rest. After a device loss the step fails with [`TrainError::WentBack`]. The trainer then has the
    /// parameters, states, [`steps`](Self::steps) and [`progress`](Self::progress) of the last read, and the
    /// following steps repeat with equal bits. [`mirror_every`](Self::mirror_every) reads regularly, so that
    /// a loss costs less.
    ///
    /// # Errors
    /// The device does not exist or cannot be opened.
    pub fn on_device(mut self, device: Device) -> Result<Self> {
        self.session = self.session.on_device(device)?;
        Ok(self)
    }

    /// Emits on exactly this many threads, at most [`MAX_THREADS`], instead of the measured best. Results are equal.
    #[must_use]
    pub fn emit_threads(mut self, threads: usize) -> Self {
        self.emitter.set_threads(match threads {
            0 => Threads::UpTo(self.session.threads()),
            threads => Threads::Exactly(threads.min(MAX_THREADS)),
        });
        self
    }

    /// Returns the session, for predictions without noise with the current weights.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Returns the module.
    #[must_use]
    pub fn module(&self) -> &Arc<Module> {
        self.session.module()
    }

    /// Returns the values of the parameters; see [`Session::weights`].
    #[must_use]
    pub fn weights(&self) -> &Arc<Weights> {
        self.session.weights()
    }

    /// Returns the optimiser's states, such as moments. With [divided states](Self::divide_states), those of the elements of this
    /// rank.
    #[must_use]
    pub fn states(&self) -> &States {
        &self.session.trained().unwrap_or(self.session.host_copy()).states
    }

    /// Replaces the values of the parameters. The optimiser's states stay.
    ///
    /// # Errors
    /// The weights belong to another module.
    pub fn set_weights(&mut self, weights: Arc<Weights>) -> Result<()> {
        let set = self.session.set_weights(weights);
        self.handle_device_loss(set)?;
        self.mirrored = self.progress;
        Ok(())
    }

    /// Returns the learning rate of the next step: the optimiser's rate times the schedule's factor.
    #[must_use]
    pub fn learning_rate(&self) -> f64 {
        self.updater.optimizer().learning_rate(self.session.updates() + 1)
    }

    /// Replaces the schedule of the learning rate, for example on a plateau. The optimiser's states stay.
    /// Schedules count updates from the first one; checkpoints hold no schedule.
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

    /// Sets the position in the data for the next checkpoint.
    pub fn set_progress(&mut self, progress: Progress) {
        self.progress = progress;
    }

    /// Makes one step over a [`Minibatch`], or over any collection of items, whose loss is then the mean of the items'
    /// losses. Each item is an instance whose key is its position; several threads emit items where that is faster.
    ///
    /// # Errors
    /// The first fault of emitting, an empty minibatch, weights without a positive sum, a loss or learning rate that is
    /// not finite, or an index out of range. The weights of the model then stay unchanged.
    #[track_caller]
    pub fn step<M: IntoMinibatch<Item: Send>>(
        &mut self,
        minibatch: M,
        loss: impl for<'g> Fn(&'g Graph, M::Item) -> Value<'g> + Sync,
    ) -> Result<Step> {
        self.step_as_is(minibatch.into_minibatch(), &loss)
    }

    /// Whether a minibatch executes as one graph.
    fn is_one_graph<I>(&self, minibatch: &Minibatch<I>) -> bool {
        minibatch.together >= minibatch.items.len() && self.is_alone()
    }

    #[track_caller]
    fn step_as_is<I: Send>(
        &mut self,
        minibatch: Minibatch<I>,
        loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Step> {
        if !self.is_one_graph(&minibatch) {
            return match self.sharding.is_some() {
                true => self.step_in_shards(minibatch, loss),
                false => self.step_in_parts(minibatch, loss),
            };
        }
        let items = ItemsLeft::whole(minibatch, self.shard_count())?;
        let Self { session, updater, emitter, .. } = self;
        let ready = minibatch::prepare(session.planning(), emitter, updater.trained(), items, loss)?;
        let step = self.execute(&ready);
        self.finish(step)
    }

    /// Makes one step over items whose course depends on computed values. Each item is a task, see
    /// [`Session::tasks`], that returns its loss. The session executes the values that tasks await with the
    /// noise of this step, round by round. Then it executes the whole graph once more, forward and in
    /// reverse, with equal bits. `Step::emit` holds the time of all rounds.
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
        self.check_whole("step_tasks")?;
        let noise = self.noise();
        let Self { session, emitter, .. } = self;
        let graph = emitter.restart();
        let tasks = items.into_iter().map(|item| loss(graph, item));
        let losses = session.growing_with(graph, noise).tasks(tasks).and_then(|losses| {
            losses.iter().try_for_each(|&loss| check_own(graph, loss))?;
            Ok(losses.into_iter().filter_map(Value::key).collect())
        });
        let losses: Vec<ValueKey> = self.handle_device_loss(losses).map_err(of_minibatch)?;
        let ready = self.planned(&losses, Shares::of_mean(losses.len())?, start)?;
        let step = self.execute(&ready);
        self.finish(step)
    }

    /// Makes one step whose minibatch executes part after part.
    #[track_caller]
    fn step_in_parts<I: Send>(
        &mut self,
        minibatch: Minibatch<I>,
        loss: &(impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync),
    ) -> Result<Step> {
        let together = minibatch.together;
        let mut left = ItemsLeft::new(minibatch)?;
        let mut next = move || left.take(together, Vec::new());
        let mut prefetch = Prefetch::new(self.emitter.another());
        let mut whole: Option<Step> = None;
        loop {
            let Self { session, updater, emitter, .. } = self;
            let ready = prefetch.take_or_prepare(emitter, |emitter| {
                Some(minibatch::prepare(session.planning(), emitter, updater.trained(), next()?, loss))
            });
            let Some(ready) = ready else { break };
            let ready = ready?;
            let follows = if prefetch.is_worthwhile(session) { next() } else { None };
            session.accumulate_gradients(whole.is_some());
            let executed = match follows {
                Some(follows) => self.execute_while(&ready, &mut prefetch, Ok(follows), loss),
                None => self.execute(&ready),
            };
            self.session.accumulate_gradients(false);
            let step = self.handle_device_loss(executed)?;
            match &mut whole {
                None => whole = Some(step),
                Some(whole) => whole.add(step),
            }
        }
        self.finish(Ok(whole.ok_or(TrainError::Empty)?))
    }

    /// Measures every item without noise. `metric` receives the item and the elements that `forward`
    /// computes for it, 256 items per part as in [`run_in_parts`](Self::run_in_parts), whose division among ranks it has; integers and truth values come as numbers.
    /// The weights stay unchanged.
    ///
    /// # Errors
    /// As [`Session::run`]; also an index out of range.
    pub fn evaluate<I: Copy + Send, S: Into<f64>>(
        &mut self,
        items: impl IntoIterator<Item = I>,
        forward: impl for<'g> Fn(&'g Graph, I) -> Value<'g> + Sync,
        mut metric: impl FnMut(I, &Row) -> S,
    ) -> Result<Evaluation> {
        let mut evaluation = Evaluation::default();
        self.run_in_parts(
            items,
            EVALUATED_TOGETHER,
            |g, item, values| {
                let value = forward(g, item);
                let ty = value.ty();
                let is_word = ty.dtype != DType::F32 && !ty.is_list;
                values.push(if is_word { value.cast(DType::F32) } else { value });
            },
            |item, rows| evaluation.add(metric(item, rows[0]).into()),
        )?;
        Ok(evaluation)
    }

    /// Writes a checkpoint as safetensors: parameters, optimiser states, step, seed and [`Progress`]. The
    /// file is whole at every moment: it replaces an old one at once or not at all.
    ///
    /// # Errors
    /// The file cannot be written, or its header cannot hold the notes.
    pub fn save(&self, path: impl AsRef<Path>) -> std::result::Result<(), CheckpointError> {
        checkpoint::save(self, path.as_ref())
    }

    /// Continues from a checkpoint of the same model and optimiser with the same frozen parameters. Given
    /// the same minibatches, the next steps have the bits of an uninterrupted run. A refused checkpoint
    /// changes nothing. [`changes`](Self::changes) tells which settings are others than those of the checkpoint.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or belongs to another model or optimiser, or other parameters
    /// were frozen. [`read_weights`](crate::train::read_weights) reads only the parameters.
    pub fn load(&mut self, path: impl AsRef<Path>) -> std::result::Result<(), CheckpointError> {
        checkpoint::load(self, path.as_ref())
    }
}

//! Executes verified plans: a loop over waves and steps.
//!
//! An [`Executor`] owns what outlives a plan: slab memory, compiled kernels, and packed weights, which are packed again
//! when the version of their parameter changes. Executing a plan of a size seen before on one thread allocates nothing.
//!
//! **Bits.** Every value depends on its own lane only. Tiles, threads and instruction sets do not change the bits.

mod clock;
mod cost;
mod counters;
mod error;
mod executed_prefix;
mod factors;
mod folds;
mod footprint;
mod gradients;
mod interrupt;
mod labels;
mod map;
mod memory;
mod norm;
mod paused;
mod pieces;
mod prepared;
mod products;
mod program;
mod reductions;
mod register_uses;
mod row_ops;
mod shards;
mod sparse_rows;
mod stream;
#[cfg(test)]
mod tests;
mod tile;
mod updates;
mod watch;
mod waves;
mod weight_cache;
mod work_kind;

pub use counters::{Counters, KernelCount, Span, StepCount};
pub use error::RunError;
pub use footprint::footprint;
pub use interrupt::Interrupt;
pub use norm::ORDINARY_SQUARES;
pub use paused::Paused;
pub use updates::GradientSource;
pub use work_kind::WorkKind;

use crate::crew::Crew;
use crate::kernels::Isa;
use autobatch_ir::plan::{
    FieldId, Footprint, Inputs, Limits, Mode, Plan, StoreId, Stores, UpdatePlan, Verified, WordOrigins,
};
use autobatch_ir::{ParamId, States, Weights};
use clock::Clock;
use counters::Timing;
use executed_prefix::ExecutedPrefix;
use gradients::Gradients;
use interrupt::Interruptible;
use memory::Memory;
use pieces::Waiting;
use prepared::{PreparedSteps, StoreReader, recycled};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tile::{ExecutionContext, TileMemory};
use updates::{Arrays, Updates};
use waves::WaveOptions;
use work_kind::KindTicks;

/// Executes plans on the CPU.
pub struct Executor {
    isa: Isa,
    /// The threads besides the calling one.
    pool: Option<Arc<ThreadPool>>,
    memory: Memory,
    /// The steps executed last, if the plan can grow.
    executed: Option<ExecutedPrefix>,
    gradients: Gradients,
    /// The rest of the sums of the plan executed last.
    waiting: Waiting,
    accumulate_gradients: bool,
    updates: Updates,
    threads: Vec<Mutex<TileMemory>>,
    prepared: PreparedSteps,
    params: Vec<&'static [f32]>,
    origins: WordOrigins,
    limits: Limits,
    /// The footprint that was compared with the limits last, and the identity of its plan.
    accepted: Option<(u64, Footprint)>,
    shared_work: usize,
    watch: bool,
    interrupt: Option<Interrupt>,
    counters: Option<Counters>,
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("isa", &self.isa)
            .field("threads", &self.threads.len())
            .finish_non_exhaustive()
    }
}

/// The maximum number of threads. No machine has more cores, and starting the threads would take minutes.
pub const MAX_THREADS: usize = 1024;

/// Resolves a requested number of threads: 0 means one per core of this process, at most [`MAX_THREADS`].
#[must_use]
pub fn resolve_threads(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS)),
        threads => threads,
    }
}

impl Executor {
    /// Makes an executor on `threads` threads, with the best instruction set or the one that `AUTOBATCH_CPU` forces.
    ///
    /// # Errors
    /// If the forced instruction set is unknown or not available, or `threads` exceeds [`MAX_THREADS`].
    pub fn new(threads: usize) -> Result<Self, RunError> {
        if threads > MAX_THREADS {
            return Err(RunError::Threads { max: MAX_THREADS, found: threads });
        }
        Ok(Self::with_isa(Isa::detect().map_err(RunError::Isa)?, threads))
    }

    /// Makes an executor with a given instruction set, which must be available, on at most [`MAX_THREADS`] threads.
    #[must_use]
    pub fn with_isa(isa: Isa, threads: usize) -> Self {
        let threads = threads.clamp(1, MAX_THREADS);
        let pool = (threads > 1)
            .then(|| ThreadPoolBuilder::new().num_threads(threads - 1).build().ok().map(Arc::new))
            .flatten();
        let threads = if pool.is_some() { threads } else { 1 };
        Self {
            isa,
            pool,
            memory: Memory::default(),
            executed: None,
            gradients: Gradients::default(),
            waiting: Waiting::default(),
            accumulate_gradients: false,
            updates: Updates::default(),
            threads: (0..threads).map(|_| Mutex::default()).collect(),
            prepared: PreparedSteps::default(),
            params: Vec::new(),
            origins: WordOrigins::default(),
            limits: Limits::NONE,
            accepted: None,
            shared_work: waves::SHARED_WORK,
            watch: false,
            interrupt: None,
            counters: None,
        }
    }

    /// The instruction set of the kernels.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Calls `lead` with this executor, and `other` at the same time on one of its threads, which then helps to execute. An
    /// executor of one thread calls one after the other.
    ///
    /// # Panics
    /// If `lead` panics. A panic of `other` is its result.
    pub fn beside<R, S: Send>(
        &mut self,
        other: impl FnOnce() -> S + Send,
        lead: impl FnOnce(&mut Self) -> R,
    ) -> (R, thread::Result<S>) {
        let other = || catch_unwind(AssertUnwindSafe(other));
        let Some(pool) = self.pool.clone() else {
            let led = lead(self);
            return (led, other());
        };
        let mut made = None;
        let led = pool.in_place_scope(|scope| {
            scope.spawn(|_| made = Some(other()));
            lead(self)
        });
        (led, made.expect("the scope waits for its tasks"))
    }

    /// Bytes of allocated slab memory.
    #[must_use]
    pub fn slab_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// Limits the footprint of plans; the default has no limits. A plan that needs more is rejected with
    /// [`RunError::Limit`] before any of its memory is allocated. Memory of earlier plans is freed if it would exceed the limit
    /// together with a plan's needs.
    pub fn set_limits(&mut self, limits: Limits) {
        (self.limits, self.accepted) = (limits, None);
    }

    /// The memory and the work of executing a plan, computed before anything is allocated.
    #[must_use]
    pub fn footprint(&self, plan: &Verified<Plan>) -> Footprint {
        footprint::with_programs(plan, self.threads.len(), &self.prepared)
    }

    /// Sets the floating-point operations from which threads share a wave. The default makes a fork and a join a small
    /// part of the work. The value does not change the bits; tests set it to 1 to share every wave.
    pub fn set_shared_work(&mut self, flops: usize) {
        self.shared_work = flops.max(1);
    }

    /// Sets whether [`execute`](Self::execute) checks every result. It then stops with [`RunError::NotFinite`] at the first
    /// result that is not finite although all its inputs are. Off by default. It costs about one more read of all results.
    pub fn set_watch(&mut self, watch: bool) {
        self.watch = watch;
    }

    /// Sets whether runs are counted and timed step by step. Off by default.
    pub fn set_counting(&mut self, counting: bool) {
        self.counters = counting.then(Counters::default);
    }

    /// The counters of the last run, if runs are counted.
    #[must_use]
    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_ref()
    }

    /// Executes a plan. Afterwards [`output`](Self::output) reads its results. It does not pause: the floats include the
    /// gradients that arrive at a pause. [`start`](Self::start) pauses.
    ///
    /// # Errors
    /// If bindings or stores do not fit the plan, an allocation fails, or a watched result is not finite.
    pub fn execute(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
    ) -> Result<(), RunError> {
        self.execute_from(plan, stores, inputs, None)
    }

    /// Executes the new steps of a plan that has grown since this executor executed it last. Existing rows are reused.
    /// The bits are those of executing the whole plan, if the bindings and stores of the earlier steps are the same.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and [`RunError::NotResumable`] if the plan is not in mode `grow` or does not
    /// begin with the plan executed last.
    pub fn resume(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
    ) -> Result<(), RunError> {
        let first = self.executed.as_ref().and_then(|prefix| prefix.first_new_wave(plan));
        self.execute_from(plan, stores, inputs, Some(first.ok_or(RunError::NotResumable)?))
    }

    /// Executes all waves, or the waves from `first` on over existing rows; then the reductions.
    fn execute_from(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
        first: Option<usize>,
    ) -> Result<(), RunError> {
        inputs.check(plan, stores)?;
        self.check_limits(plan, first.is_none())?;
        let before = self.execute_waves(plan, stores, inputs, first.unwrap_or(0)..plan.waves.len())?;
        self.reduce(plan, stores, inputs.words)?;
        self.executed = ExecutedPrefix::of(plan, before);
        Ok(())
    }

    /// Compares the footprint of a plan with the limits. `fresh` tells that no row of an earlier run is reused.
    fn check_limits(&mut self, plan: &Verified<Plan>, fresh: bool) -> Result<(), RunError> {
        if self.limits == Limits::NONE {
            return Ok(());
        }
        let accepted = self.accepted.filter(|accepted| accepted.0 == plan.identity());
        let footprint = accepted.map_or_else(|| self.footprint(plan), |accepted| accepted.1);
        footprint.check(self.limits).map_err(|over| RunError::Limit(Box::new(over)))?;
        self.accepted = Some((plan.identity(), footprint));
        if let Some(limit) = self.limits.memory.filter(|_| fresh) {
            self.executed = None;
            let others = footprint.memory() - footprint.slabs;
            // Nothing can be freed while a grown plan reuses rows, so a growing plan starts without surplus memory.
            let slabs = if plan.mode == Mode::Grow { footprint.slabs } else { limit.saturating_sub(others) };
            self.memory.shrink_to(plan, slabs);
        }
        Ok(())
    }

    /// Executes waves of a checked plan. Returns the prefix that was executed before.
    fn execute_waves(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        inputs: Inputs<'_>,
        waves: Range<usize>,
    ) -> Result<Option<ExecutedPrefix>, RunError> {
        self.waiting = Waiting::default();
        let mut params = recycled(std::mem::take(&mut self.params));
        let clock = self.counters.is_some().then(Clock::start);
        self.prepared.prepare(plan, &mut StoreReader { isa: self.isa, stores, params: &mut params })?;
        let prepared = clock.map(|clock| clock.now());
        let limits = |step| &self.prepared.program(step).word_limits[..];
        self.origins.check(plan, inputs.words, self.prepared.least_limit, limits)?;
        let before = self.executed.take().filter(|_| waves.start > 0);
        let fields = self.memory.fit(plan).ok_or(RunError::Memory { bytes: plan.slab_bytes() })?;
        let tile = self.prepared.tile_floats;
        for memory in &mut self.threads {
            let memory = memory.get_mut().unwrap_or_else(PoisonError::into_inner);
            memory.fit(tile).ok_or(RunError::Tiles { bytes: (tile as u64).saturating_mul(4) })?;
        }
        let context = ExecutionContext {
            isa: self.isa,
            plan,
            prepared: &self.prepared,
            params: &params,
            fields,
            inputs,
        };
        let options = WaveOptions { waves, shared_work: self.shared_work, watched: self.watch };
        let checked = clock.map(|clock| clock.now());
        let interruptible = Interruptible::new(self.interrupt.as_ref());
        let threads = &mut self.threads;
        let outcome = Crew::with(self.pool.as_deref(), threads.len(), |crew| {
            waves::execute(&context, crew, threads, options, clock, interruptible)
        });
        if let (Some(counters), Some(clock), Some(prepared), Some(checked)) =
            (&mut self.counters, clock, prepared, checked)
        {
            let timing = Timing { clock, prepared, checked, executed: clock.now() };
            let mut kinds = KindTicks::default();
            for memory in &mut *threads {
                let spent = waves::exclusive(memory).take_kinds();
                kinds.iter_mut().zip(spent).for_each(|(sum, ticks)| *sum += ticks);
            }
            let of_threads = (0..).zip(threads);
            let parts = of_threads.flat_map(|(thread, memory)| {
                waves::exclusive(memory).timed.drain(..).map(move |part| (thread, part))
            });
            counters.record(plan, &timing, kinds, parts);
        }
        self.params = recycled(params);
        outcome.map(|()| before)
    }

    /// Executes an update plan on the gradients of the plan executed last. Changed parameters get new versions, and
    /// `states` counts the update. `floats` are the bindings of the optimiser.
    ///
    /// # Errors
    /// If gradients, weights, states or floats do not fit the plan. Then nothing changes.
    pub fn update(
        &mut self,
        plan: &Verified<UpdatePlan>,
        weights: &mut Weights,
        states: &mut States,
        floats: &[f32],
    ) -> Result<(), RunError> {
        let gradients = std::mem::take(&mut self.gradients);
        let updated = self.update_with(plan, &gradients, weights, states, floats);
        self.gradients = gradients;
        updated
    }

    /// [`update`](Self::update) on gradients of the caller.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn update_with(
        &mut self,
        plan: &Verified<UpdatePlan>,
        gradients: &(dyn GradientSource + Sync),
        weights: &mut Weights,
        states: &mut States,
        floats: &[f32],
    ) -> Result<(), RunError> {
        let packed = self.prepared.release_weights();
        let arrays = Arrays { plan, gradients, weights: &mut *weights, states: &mut *states, floats, packed };
        arrays.check()?;
        let (isa, threads, updates) = (self.isa, self.threads.len(), &mut self.updates);
        Crew::with(self.pool.as_deref(), threads, |crew| updates.execute(isa, crew, arrays))?;
        states.set_updates(states.updates() + 1);
        Ok(())
    }

    /// The gradient of a parameter of the plan executed last.
    #[must_use]
    pub fn gradient_of(&self, param: ParamId) -> Option<&[f32]> {
        self.gradients.of_param(param)
    }

    /// The sparse rows of a table's gradient of the plan executed last, ascending; `None` if the gradient is dense.
    #[must_use]
    pub fn sparse_rows(&self, param: ParamId) -> Option<&[u32]> {
        self.gradients.sparse_rows(param)
    }

    /// The elements of a gradient store of the plan executed last, see [`Plan::gradient_of`]; `None` for other stores.
    #[must_use]
    pub fn gradient(&self, store: StoreId) -> Option<&[f32]> {
        self.gradients.of(store)
    }

    /// The elements of an output of the plan executed last, as words (floats by their bits).
    #[must_use]
    pub fn output<'a>(&'a self, plan: &Plan, number: usize) -> &'a [f32] {
        let output = &plan.outputs[number];
        self.row(plan, output.field, output.row)
    }

    /// The elements of a row of a field of the plan executed last, as [`output`](Self::output).
    #[must_use]
    pub fn row<'a>(&'a self, plan: &Plan, field: FieldId, row: u32) -> &'a [f32] {
        self.memory.row(field.index(), row as usize, plan.field(field).width() as usize)
    }
}

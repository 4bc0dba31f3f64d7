//! Executes verified plans: a small loop over waves and steps.
//!
//! A [`Executor`] keeps what lasts longer than a plan: slab memory, kernels made ready for tiles, and
//! packed weights, which are packed again when the version of their parameter changes. Executing a
//! plan of a size seen before on one thread allocates nothing.
//!
//! **Bits.** Every value is a function of its own lane: tiles, threads and instruction sets only
//! decide who computes it when.

mod border;
mod clock;
mod counters;
mod error;
mod folds;
mod gradients;
mod kept;
mod map;
mod memory;
mod packed;
mod products;
mod program;
mod ready;
mod reductions;
mod rows;
mod sparse_rows;
mod tile;
mod updates;
mod watch;
mod waves;

pub use counters::{Counters, KernelCount, Span, StepCount};
pub use error::RunError;
pub use updates::GradientSource;

use crate::kernels::Isa;
use autobatch_ir::plan::{Bound, Mode, Plan, StoreId, Stores, UpdatePlan, Verified};
use autobatch_ir::{ParamId, States, Weights};
use border::Origins;
use clock::{Clock, Ticks};
use gradients::Gradients;
use kept::Kept;
use memory::Memory;
use ready::{Ready, recycled};
use reductions::Executed;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tile::{ExecutionContext, TileMemory};
use updates::{Arrays, Updates};
use waves::Timing;

/// Executes plans on the CPU.
pub struct Executor {
    isa: Isa,
    pool: Option<rayon::ThreadPool>,
    memory: Memory,
    kept: Option<Kept>,
    gradients: Gradients,
    accumulate_gradients: bool,
    updates: Updates,
    threads: Vec<Mutex<TileMemory>>,
    ready: Ready,
    params: Vec<&'static [f32]>,
    origins: Origins,
    limit: Option<u64>,
    shared_work: usize,
    watch: bool,
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

/// More threads than this are refused: no machine has them, and starting them alone takes minutes.
pub const MAX_THREADS: usize = 1024;

/// How many threads are meant: 0 are as many as there are cores that this process may use, [`MAX_THREADS`] at most.
#[must_use]
pub fn threads_meant(threads: usize) -> usize {
    match threads {
        0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_THREADS)),
        threads => threads,
    }
}

impl Executor {
    /// An executor on so many threads, with the best instruction set or the one that
    /// `AUTOBATCH_CPU` forces.
    ///
    /// # Errors
    /// If that one is unknown or not available, or there are more than [`MAX_THREADS`].
    pub fn new(threads: usize) -> Result<Self, RunError> {
        if threads > MAX_THREADS {
            return Err(RunError::Threads { most: MAX_THREADS, found: threads });
        }
        Ok(Self::with_isa(Isa::detect().map_err(RunError::Isa)?, threads))
    }

    /// An executor with a given instruction set, which must be available, on at most [`MAX_THREADS`].
    #[must_use]
    pub fn with_isa(isa: Isa, threads: usize) -> Self {
        let threads = threads.clamp(1, MAX_THREADS);
        let pool = (threads > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok())
            .flatten();
        let threads = if pool.is_some() { threads } else { 1 };
        Self {
            isa,
            pool,
            memory: Memory::default(),
            kept: None,
            gradients: Gradients::default(),
            accumulate_gradients: false,
            updates: Updates::default(),
            threads: (0..threads).map(|_| Mutex::default()).collect(),
            ready: Ready::default(),
            params: Vec::new(),
            origins: Origins::default(),
            limit: None,
            shared_work: waves::SHARED_WORK,
            watch: false,
            counters: None,
        }
    }

    /// The instruction set that kernels run on.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Bytes of slab memory held.
    #[must_use]
    pub fn slab_bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// How many bytes slabs may take; `None`, at first, is as many as can be had. A plan that needs more
    /// is refused with [`RunError::Limit`] before anything is executed. Memory kept from earlier plans is
    /// given back where it would not fit beside what a plan needs. Packed weights are not counted.
    pub fn set_memory_limit(&mut self, limit: Option<u64>) {
        self.limit = limit;
    }

    /// Floating-point operations from which a wave is shared by the threads; at first so many that a fork
    /// and a join are a small part of them. Bits are the same whatever it is: 1 shares all, for tests.
    pub fn set_shared_work(&mut self, flops: usize) {
        self.shared_work = flops.max(1);
    }

    /// Whether [`execute`](Self::execute) looks at every result and stops with [`RunError::NotFinite`] at
    /// the first that is not finite though all that it was made of was. Off at first; costs about as
    /// much as reading all results once more.
    pub fn set_watch(&mut self, watch: bool) {
        self.watch = watch;
    }

    /// Whether executes are counted and timed step by step. Off at first.
    pub fn set_counting(&mut self, counting: bool) {
        self.counters = counting.then(Counters::default);
    }

    /// The steps of the last run, if they are counted.
    #[must_use]
    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_ref()
    }

    /// Executes a plan. Afterwards [`output`](Self::output) reads its results.
    ///
    /// # Errors
    /// If bindings or stores do not fit the plan, memory cannot be had, or a watched result is not
    /// finite.
    pub fn execute(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
    ) -> Result<(), RunError> {
        self.execute_from(plan, stores, bound, None)
    }

    /// Executes what a plan gained since this executor executed it last, over the rows that are there. The bits
    /// are those of executing all of it, if what is bound and stored for the earlier steps is the same.
    ///
    /// # Errors
    /// As [`execute`](Self::execute); and [`RunError::NotBefore`] if the plan is not one in mode `grow` that
    /// begins with what was executed last.
    pub fn resume(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
    ) -> Result<(), RunError> {
        let first = self.kept.as_ref().and_then(|kept| kept.continues(plan)).ok_or(RunError::NotBefore)?;
        self.execute_from(plan, stores, bound, Some(first))
    }

    /// Executes the waves from `first` on over kept rows, or all of them, and what comes after all waves.
    fn execute_from(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
        first: Option<usize>,
    ) -> Result<(), RunError> {
        bound.check(plan, stores)?;
        if let Some(limit) = self.limit {
            let needs = plan.slab_bytes();
            if needs > limit {
                return Err(RunError::Limit { needs, limit });
            }
            if first.is_none() {
                self.kept = None;
                // Beside rows that are kept nothing can be given back, so a plan that grows begins without the rest.
                self.memory.shrink_to(plan, if plan.mode == Mode::Grow { needs } else { limit });
            }
        }
        let mut params = recycled(std::mem::take(&mut self.params));
        let clock = self.counters.is_some().then(Clock::start);
        self.ready.prepare(self.isa, plan, stores, &mut params)?;
        let packed = clock.map(|clock| clock.now());
        border::check_words(plan, &self.ready, bound.words, &mut self.origins)?;
        let before = self.kept.take().filter(|_| first.is_some());
        let fields = self.memory.fit(plan).ok_or(RunError::Memory { bytes: plan.slab_bytes() })?;
        let tile = self.ready.tile_floats();
        for memory in &mut self.threads {
            let memory = memory.get_mut().unwrap_or_else(PoisonError::into_inner);
            memory.fit(tile).ok_or(RunError::Tiles { bytes: (tile as u64).saturating_mul(4) })?;
        }
        let context =
            ExecutionContext { isa: self.isa, plan, ready: &self.ready, params: &params, fields, bound };
        let how =
            waves::How { first: first.unwrap_or(0), shared_work: self.shared_work, watched: self.watch };
        let timing = |(clock, packed): (Clock, Ticks)| Timing { clock, packed, checked: clock.now() };
        let counted = self.counters.as_mut().zip(clock.zip(packed).map(timing));
        let threads = &mut self.threads;
        let executed = match &self.pool {
            None => waves::execute(&context, threads, how, counted),
            Some(pool) => pool.install(|| waves::execute(&context, threads, how, counted)),
        };
        self.params = recycled(params);
        executed?;
        let count = self.threads.len();
        let kept = self.accumulate_gradients;
        self.gradients.fit(plan, count, kept)?;
        let executed = Executed { isa: self.isa, plan, memory: &self.memory, words: bound.words };
        let gradients = &mut self.gradients;
        let begin = self.counters.is_some().then(Instant::now);
        match &self.pool {
            None => gradients.execute(executed, count, kept)?,
            Some(pool) => pool.install(|| gradients.execute(executed, count, kept))?,
        }
        if let (Some(counters), Some(begin)) = (&mut self.counters, begin) {
            counters.reductions = begin.elapsed();
        }
        self.kept = Kept::of(plan, before);
        Ok(())
    }

    /// Whether the gradients of the plans executed from now on are added to what is there, in place of
    /// beginning at 0: gradients of several minibatches are accumulated like those of one. The sums
    /// go on in order, so their bits are those of one plan whose reductions name the rows of all. Turn it
    /// on behind the first of the minibatches, off behind the last. Off at first.
    pub fn set_accumulate_gradients(&mut self, keep: bool) {
        self.accumulate_gradients = keep;
    }

    /// Executes an update plan on the gradients of the plan executed last. Parameters that it changes get
    /// new versions, and `states` counts the update. `floats` are what the optimiser binds for it.
    ///
    /// # Errors
    /// If gradients, weights, states or floats do not fit the plan; then nothing was changed.
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

    /// [`update`](Self::update) on gradients from elsewhere.
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
        let packed = self.ready.packed();
        let arrays = Arrays { plan, gradients, weights: &mut *weights, states: &mut *states, floats, packed };
        arrays.check()?;
        let (isa, threads, updates) = (self.isa, self.threads.len(), &mut self.updates);
        match &self.pool {
            None => updates.execute(isa, threads, arrays)?,
            Some(pool) => pool.install(|| updates.execute(isa, threads, arrays))?,
        }
        states.set_updates(states.updates() + 1);
        Ok(())
    }

    /// The gradient of a parameter, made by the plan that was executed last.
    #[must_use]
    pub fn gradient_of(&self, param: ParamId) -> Option<&[f32]> {
        self.gradients.of_param(param)
    }

    /// The rows of a table's gradient that the plan executed last touched, ascending; `None` if all count
    /// as touched.
    #[must_use]
    pub fn sparse_rows(&self, param: ParamId) -> Option<&[u32]> {
        self.gradients.sparse_rows(param)
    }

    /// The elements of a gradient store of the plan that was executed last; `None` for other stores.
    /// [`Plan::gradient_of`] names the store of a parameter.
    #[must_use]
    pub fn gradient(&self, store: StoreId) -> Option<&[f32]> {
        self.gradients.of(store)
    }

    /// The elements of an output of the plan that was executed last, as words (floats by their bits).
    #[must_use]
    pub fn output<'a>(&'a self, plan: &Plan, number: usize) -> &'a [f32] {
        let output = &plan.outputs[number];
        let width = plan.field(output.field).width() as usize;
        self.memory.row(output.field.index(), output.row as usize, width)
    }
}

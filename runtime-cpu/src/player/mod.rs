//! Plays verified plans: a small loop over waves and steps.
//!
//! A [`Player`] keeps what lasts longer than a plan: slab memory, kernels made ready for tiles, and
//! packed weights, which are packed again when the version of their parameter changes. Playing a
//! plan of a size seen before allocates next to nothing.
//!
//! **Bits.** Every value is a function of its own lane: tiles, threads and instruction sets only
//! decide who computes it when.

mod border;
mod finals;
mod memory;
mod program;
mod tile;

use crate::kernels::{Isa, IsaError, KernelError, Matrix, PackedWeights};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Kernel, Place, Plan, Step, StoreId, Verified};
use autobatch_ir::{ParamId, Weights};
use finals::{Gradients, Played};
use memory::{FieldMemory, Memory};
use program::{Program, Weight};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tile::{StepContext, TileMemory};

/// Floating-point operations below which a step is not split among threads: about 30 µs of one core.
const SPLIT_WORK: usize = 3_000_000;

/// Parameter values by store, with a version that changes whenever they do.
pub trait Stores {
    /// The elements of a store.
    fn values(&self, store: StoreId) -> &[f32];
    /// A number that changes with the elements.
    fn version(&self, store: StoreId) -> u64;
}

impl Stores for Weights {
    fn values(&self, store: StoreId) -> &[f32] {
        self.get(ParamId::new(store.index()))
    }
    fn version(&self, store: StoreId) -> u64 {
        self.version(ParamId::new(store.index()))
    }
}

/// Why a plan was not played.
#[derive(Debug)]
pub enum RunError {
    /// The instruction set asked for is not available.
    Isa(IsaError),
    /// Fewer words or floats are bound than the plan reads.
    Missing {
        /// What is missing: `words` or `floats`.
        what: &'static str,
        /// How many the plan reads.
        expected: usize,
        /// How many are bound.
        found: usize,
    },
    /// A bound index is out of range.
    Index {
        /// The place of the word.
        word: usize,
        /// The step that reads it.
        step: usize,
        /// The name of its kernel.
        kernel: String,
        /// The index.
        found: u32,
        /// How many values it may take.
        limit: u32,
    },
    /// A store holds another number of elements than the plan says.
    Store {
        /// The name of the store.
        name: String,
        /// How many the plan says.
        expected: usize,
        /// How many it holds.
        found: usize,
    },
    /// The slabs do not fit in memory.
    Memory {
        /// How many bytes the slabs take.
        bytes: u64,
    },
    /// A weight could not be packed.
    Kernel(KernelError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Isa(error) => error.fmt(f),
            Self::Missing { what, expected, found } => {
                write!(
                    f,
                    "the plan reads {expected} bound {what}, found {found}; bind the graph that it was planned for"
                )
            }
            Self::Index { word, step, kernel, found, limit } => write!(
                f,
                "index {found} (bound word {word}) is out of range for {kernel} in step f{step}: it must be below {limit}"
            ),
            Self::Store { name, expected, found } => {
                write!(f, "store @{name} must hold {expected} elements, found {found}")
            }
            Self::Memory { bytes } => write!(
                f,
                "the slabs of the plan take {bytes} bytes, which cannot be had; plan fewer instances at once"
            ),
            Self::Kernel(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<KernelError> for RunError {
    fn from(error: KernelError) -> Self {
        Self::Kernel(error)
    }
}

/// The numbers that are bound for one run.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    /// Indices and other words.
    pub words: &'a [u32],
    /// Float inputs.
    pub floats: &'a [f32],
    /// Whether dropout draws noise.
    pub noise: Noise,
}

/// Plays plans on the CPU.
pub struct Player {
    isa: Isa,
    pool: Option<rayon::ThreadPool>,
    memory: Memory,
    gradients: Gradients,
    threads: Vec<TileMemory>,
    programs: HashMap<(usize, bool), (Arc<Kernel>, Arc<Program>)>,
    packed: HashMap<(StoreId, Weight), (u64, Arc<PackedWeights>)>,
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Player")
            .field("isa", &self.isa)
            .field("threads", &self.threads.len())
            .finish_non_exhaustive()
    }
}

impl Player {
    /// A player on so many threads, with the best instruction set or the one that
    /// `AUTOBATCH_CPU` forces.
    ///
    /// # Errors
    /// If that one is unknown or not available.
    pub fn new(threads: usize) -> Result<Self, RunError> {
        Ok(Self::with_isa(Isa::detect().map_err(RunError::Isa)?, threads))
    }

    /// A player with a given instruction set, which must be available.
    #[must_use]
    pub fn with_isa(isa: Isa, threads: usize) -> Self {
        let threads = threads.max(1);
        let pool = (threads > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok())
            .flatten();
        let threads = if pool.is_some() { threads } else { 1 };
        Self {
            isa,
            pool,
            memory: Memory::default(),
            gradients: Gradients::default(),
            threads: (0..threads).map(|_| TileMemory::default()).collect(),
            programs: HashMap::new(),
            packed: HashMap::new(),
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

    /// Plays a plan. Afterwards [`output`](Self::output) reads its results.
    ///
    /// # Errors
    /// If bindings or stores do not fit the plan, or memory cannot be had.
    pub fn play(
        &mut self,
        plan: &Verified<Plan>,
        stores: &dyn Stores,
        bound: Bound<'_>,
    ) -> Result<(), RunError> {
        border::check_bound(plan, stores, bound)?;
        let programs: Vec<Arc<Program>> = plan.steps.iter().map(|step| self.program(plan, step)).collect();
        border::check_indices(plan, &programs, bound.words)?;
        let fields = self.memory.fit(plan).ok_or(RunError::Memory { bytes: plan.slab_bytes() })?;
        let mut contexts = Vec::with_capacity(plan.steps.len());
        for (step, program) in plan.steps.iter().zip(&programs) {
            contexts.push(self.context(plan, step, program, stores, &fields, bound)?);
        }
        let threads = &mut self.threads;
        match &self.pool {
            None => play_steps(plan, &contexts, threads),
            Some(pool) => pool.install(|| play_steps(plan, &contexts, threads)),
        }
        let count = self.threads.len();
        self.gradients.fit(plan, count)?;
        let played = Played { isa: self.isa, plan, memory: &self.memory, words: bound.words };
        let gradients = &mut self.gradients;
        match &self.pool {
            None => gradients.play(played, count),
            Some(pool) => pool.install(|| gradients.play(played, count)),
        }
    }

    /// The elements of a gradient store of the plan that was played last; `None` for other stores.
    /// [`Plan::gradient_of`] names the store of a parameter.
    #[must_use]
    pub fn gradient(&self, store: StoreId) -> Option<&[f32]> {
        self.gradients.of(store)
    }

    /// The elements of an output of the plan that was played last, as words (floats by their bits).
    #[must_use]
    pub fn output<'a>(&'a self, plan: &Plan, number: usize) -> &'a [f32] {
        let output = &plan.outputs[number];
        let width = plan.field(output.field).width() as usize;
        self.memory.row(output.field.index(), output.row as usize, width)
    }

    fn program(&mut self, plan: &Plan, step: &Step) -> Arc<Program> {
        let kernel = &plan.kernels[step.kernel.index()];
        let in_place = plan.places(step).iter().all(|place| !matches!(place, Place::Table { .. }));
        let key = (Arc::as_ptr(kernel) as usize, in_place);
        if let Some((known, program)) = self.programs.get(&key)
            && Arc::ptr_eq(known, kernel)
        {
            return Arc::clone(program);
        }
        let program = Arc::new(Program::new(kernel, in_place));
        self.programs.insert(key, (Arc::clone(kernel), Arc::clone(&program)));
        program
    }

    fn context<'a>(
        &mut self,
        plan: &'a Plan,
        step: &'a Step,
        program: &'a Program,
        stores: &'a dyn Stores,
        fields: &'a [FieldMemory],
        bound: Bound<'a>,
    ) -> Result<StepContext<'a>, RunError> {
        let numbers = (bound.words, bound.floats);
        let mut context = StepContext::new(plan, step, program, (self.isa, bound.noise), fields, numbers);
        context.params = plan.stores(step).iter().map(|&store| stores.values(store)).collect();
        for weight in &program.weights {
            let store = plan.stores(step)[weight.param as usize];
            context.weights.push(self.packed(plan, store, *weight, stores)?);
        }
        Ok(context)
    }

    fn packed(
        &mut self,
        plan: &Plan,
        store: StoreId,
        weight: Weight,
        stores: &dyn Stores,
    ) -> Result<Arc<PackedWeights>, RunError> {
        let version = stores.version(store);
        if let Some((known, packed)) = self.packed.get(&(store, weight))
            && *known == version
        {
            return Ok(Arc::clone(packed));
        }
        let dims = plan.stores[store.index()].ty.shape;
        let (rows, columns) = (dims.dims()[0] as usize, dims.dims()[1] as usize);
        let values = stores.values(store);
        let (col, width) = (weight.col as usize, weight.width as usize);
        let matrix = if weight.transposed {
            Matrix::new(&values[col * columns..], columns, width, columns).transposed()
        } else {
            Matrix::new(&values[col..], columns, rows, width)
        };
        let packed = Arc::new(PackedWeights::pack(self.isa, matrix)?);
        self.packed.insert((store, weight), (version, Arc::clone(&packed)));
        Ok(packed)
    }
}

fn play_steps(plan: &Plan, contexts: &[StepContext<'_>], threads: &mut [TileMemory]) {
    for wave in plan.waves() {
        for number in wave {
            play_step(plan.steps[number].rows as usize, &contexts[number], threads);
        }
    }
}

fn play_step(rows: usize, context: &StepContext<'_>, threads: &mut [TileMemory]) {
    let parts = (rows * context.program.row_work / SPLIT_WORK + 1).min(threads.len()).min(rows);
    if parts <= 1 {
        // SAFETY: the plan was verified, its bindings and stores were checked, its memory was made,
        // and only this thread plays.
        return unsafe { context.play(0..rows, &mut threads[0]) };
    }
    rayon::scope(|scope| {
        for (number, memory) in threads[..parts].iter_mut().enumerate() {
            let lanes = rows * number / parts..rows * (number + 1) / parts;
            // SAFETY: as above; each thread plays lanes of its own of one step, which are independent.
            scope.spawn(move |_| unsafe { context.play(lanes, memory) });
        }
    });
}

//! Compiles a plan into a list of dispatches.
//!
//! Compilation visits every step once. For each unit of its kernel it writes a record: the addresses, extents and
//! attributes that the unit's template reads. Only maps and epilogues are generated code. Nothing depends on bindings
//! or parameter values. The units of a wave are then merged into as few dispatches as their programs allow.

mod checks;
mod cost;
mod fold;
mod iterations;
mod kernels;
mod layout;
mod map;
mod outputs;
mod product;
mod record;
mod reductions;
mod row;
mod sparse_rows;
mod step;
mod units;
mod update;
mod wave;

pub use checks::IndexCheck;
pub use cost::Cost;
pub use iterations::LoopLimit;
pub(crate) use kernels::LoweringCache;
pub use layout::{BufferLayout, Packing, Stored, WordSource};
pub(crate) use layout::{Capacity, VECTOR};
pub use record::Record;
pub use sparse_rows::{SparseTable, sparse_tables};
pub use update::{SUM_OF_SQUARES, TILE_ELEMENTS, UpdateOp, UpdateProgram, Updates, compile_update};

use crate::error::GpuError;
use crate::module::{Program, Split, Tile};
use crate::predict::Card;
use autobatch_ir::plan::{KernelId, ParamPort, Plan, Step, Verified};
use autobatch_shaders::LOOKUP;
use checks::ComputedIndices;
use cost::Generated;
use kernels::Lowered;
use map::Variant;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use wave::{Threads, Wave};

/// Maximum number of threads of a dispatch. Two dimensions of 65,535 groups hold them, and 32 bits count them.
pub const MAX_THREADS: u64 = 1 << 31;
/// Words of the arena before those of the plan: the state of the noise generator, and zeros.
pub const HEAD: u64 = 8;
/// A word of the arena that is always zero.
const ZERO_WORD: u32 = 7;

/// A range of the arena: its first word, and the number of words.
pub type ArenaRange = (u64, u64);

/// A dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The number of its program.
    pub program: u32,
    /// The position of its segments in the tables. A segment is four words: first group, record, threads, first lane.
    pub segments: u32,
    /// The number of segments.
    pub count: u32,
    /// Groups in both dimensions.
    pub groups: [u32; 2],
    /// The first and the last step that it executes a part of; `None` for reductions, copies and outputs.
    pub steps: Option<[u32; 2]>,
    /// Its cost.
    pub cost: Cost,
}

impl Dispatch {
    /// The arguments of its module: the segments, their number, and a zero.
    pub(crate) const fn args(&self) -> [u32; 3] {
        [self.segments, self.count, 0]
    }
}

/// A plan that is compiled for a device.
#[derive(Debug)]
pub struct Compiled {
    /// The addresses of everything in the arena.
    pub layout: BufferLayout,
    /// The tables of the plan, then records and segments. Of a growing plan only records and segments.
    pub tables: Vec<u32>,
    /// The position of `tables` on the device: behind the reserved tables of a growing plan, else 0.
    pub tables_at: u32,
    /// The programs of dispatches.
    pub programs: Vec<Arc<Program>>,
    /// The dispatches, in order.
    pub dispatches: Vec<Dispatch>,
    /// The time of all dispatches on a small integrated GPU, as the cost model predicts it.
    pub time: Duration,
    /// The number of leading dispatches that copy parameters into the arena for kernels that read them whole.
    pub prologue: u32,
    /// Describes the words that constants and the prologue write. Plans with equal descriptions share these words until
    /// a parameter changes.
    pub persistent: Vec<u32>,
    /// For each step the number of dispatches that execute it.
    pub of_steps: Vec<u32>,
    /// The constants, which follow the head of the arena.
    pub constants: Vec<u32>,
    /// The number of leading dispatches that execute the steps before a pause.
    pub pause: usize,
    /// The first dispatch that collects outputs.
    pub collect: usize,
    /// The ranges of the arena that the host reads back, concatenated.
    pub readback: Vec<ArenaRange>,
    /// For each output its first word among those.
    pub outputs: Vec<u32>,
    /// The computed indices that the host checks. Their words are the last that it reads back.
    pub checks: Vec<IndexCheck>,
    /// The number of these words.
    pub checked: u64,
}

/// The limits of a device and the options that compilation depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Bytes of one binding, a power of two.
    pub binding: u64,
    /// Storage bindings of a module.
    pub bindings: u32,
    /// Words of scratch rows of a wave.
    pub scratch: u64,
    /// True if all products use the same tile, whatever their number of rows. Then no driver compiler can make the bits
    /// of a row depend on the batch.
    pub strict: bool,
    /// The storage of parameters.
    pub packing: Packing,
    /// The tallest tile of products.
    pub tallest: Tile,
    /// The maximum time of a dispatch, predicted for a small integrated GPU. A single lane may exceed it.
    pub dispatch_time: Duration,
    /// The maximum number of loop iterations of a thread, if there is one.
    pub iterations: Option<LoopLimit>,
}

impl Compiled {
    /// The number of words that the host reads back.
    #[must_use]
    pub fn readback_words(&self) -> u64 {
        self.readback.iter().map(|range| range.1).sum()
    }
}

impl Target {
    /// A device with the smallest limits that WebGPU allows.
    pub const MINIMUM: Self = Self {
        binding: 128 << 20,
        bindings: 8,
        scratch: DEFAULT_SCRATCH,
        strict: false,
        packing: Packing::Halves,
        tallest: Tile::Rows128,
        dispatch_time: DEFAULT_DISPATCH_TIME,
        iterations: None,
    };

    /// The split of arrays of these words across bindings.
    ///
    /// # Errors
    /// If they take more bindings than the device has.
    pub fn split(&self, arena: u64, params: u64) -> Result<Split, GpuError> {
        let bindings = |words: u64| (words * 4).div_ceil(self.binding).max(1);
        let (of_arena, of_params) = (bindings(arena), bindings(params));
        let free = u64::from(self.bindings.saturating_sub(1));
        if of_arena + of_params > free {
            return Err(GpuError::TooLarge {
                what: "the rows and parameters of the plan",
                needed: (arena + params) * 4,
                limit: free * self.binding,
            });
        }
        let shift = self.binding.ilog2() - 2;
        Ok(Split { arena: of_arena as u32, params: of_params as u32, shift })
    }
}

/// Words of scratch rows unless a budget sets fewer: 64 MiB.
pub const DEFAULT_SCRATCH: u64 = 16 << 20;

/// The time of a dispatch on a small integrated GPU unless a budget sets less: a tenth of the two seconds after which Windows
/// resets a device.
pub const DEFAULT_DISPATCH_TIME: Duration = Duration::from_millis(200);

/// Compiles a plan.
///
/// # Errors
/// If it exceeds 32-bit addresses, the limits of the device, or its loop limit.
pub fn compile(plan: &Verified<Plan>, target: Target) -> Result<Compiled, GpuError> {
    let layout = BufferLayout::new(plan, target.packing, Capacity::Exact)?;
    compile_from(plan, target, layout, 0, &mut LoweringCache::default())
}

/// Compiles the waves from `first` on, the reductions and the outputs. Kernels in the cache are not lowered again.
///
/// # Errors
/// As [`compile`].
pub(crate) fn compile_from(
    plan: &Verified<Plan>,
    target: Target,
    layout: BufferLayout,
    first: usize,
    cache: &mut LoweringCache,
) -> Result<Compiled, GpuError> {
    cache.trim();
    let mut build = Build::new(plan, target, layout, cache);
    build.copy_parameters()?;
    let prologue = build.dispatches.len() as u32;
    build.pause = prologue as usize;
    let steps_before_pause = plan.steps_before_pause();
    for wave in plan.waves_from(first) {
        let is_before_pause = wave.end <= steps_before_pause;
        for number in wave {
            build.step = Some(number as u32);
            step::lower(&mut build, &plan.steps[number])?;
        }
        build.end_wave()?;
        if is_before_pause {
            build.pause = build.dispatches.len();
        }
    }
    build.step = None;
    reductions::lower(&mut build)?;
    if plan.pause.is_some() {
        // The dispatch that collects outputs is executed at the pause, too.
        build.end_wave()?;
    }
    build.collect = build.dispatches.len();
    outputs::lower(&mut build)?;
    build.end_wave()?;
    if build.checked > 0 {
        build.readback.push((build.layout.checked().into(), build.checked));
    }
    build.finish(target, prologue)
}

struct Build<'a> {
    plan: &'a Plan,
    layout: BufferLayout,
    scratch_budget: u64,
    strict: bool,
    tallest: Tile,
    /// See [`Target::dispatch_time`].
    dispatch_seconds: f64,
    iterations: Option<LoopLimit>,
    /// Words of scratch rows of the largest wave.
    scratch: u64,
    records: Vec<u32>,
    /// The position of the first in the tables.
    records_at: u64,
    cache: &'a mut LoweringCache,
    /// See [`Compiled::persistent`]: constants, their number, and the records of the prologue.
    persistent: Vec<u32>,
    programs: Vec<Arc<Program>>,
    /// Counts over their generated code.
    generated: Vec<Generated>,
    /// The numbers of programs, by address.
    numbers: HashMap<usize, u32>,
    /// For each kernel its lowering, from the first step that executes it on.
    kernels: Vec<UsedKernel>,
    wave: Wave,
    dispatches: Vec<Dispatch>,
    /// The step that is being lowered.
    step: Option<u32>,
    /// For each step the number of its dispatches, and the number of the last plus one.
    of_steps: Vec<(u32, u32)>,
    /// See [`Compiled::pause`] and [`Compiled::collect`].
    pause: usize,
    collect: usize,
    /// See [`Compiled::readback`] and [`Compiled::outputs`].
    readback: Vec<ArenaRange>,
    outputs: Vec<u32>,
    computed: ComputedIndices,
    /// See [`Compiled::checks`] and [`Compiled::checked`].
    checks: Vec<IndexCheck>,
    checked: u64,
}

/// A kernel that steps of the plan execute.
#[derive(Clone, Default)]
struct UsedKernel {
    lowered: Option<Arc<Lowered>>,
    /// For each unit the generated program of its last step.
    last: Vec<Option<(Option<Variant>, u32)>>,
}

impl<'a> Build<'a> {
    fn new(plan: &'a Plan, target: Target, layout: BufferLayout, cache: &'a mut LoweringCache) -> Self {
        let records_at = layout.tables(plan.tables.len() as u64);
        let mut persistent = layout.constants();
        persistent.push(persistent.len() as u32);
        Self {
            plan,
            layout,
            scratch_budget: target.scratch.max(1),
            strict: target.strict,
            tallest: target.tallest,
            dispatch_seconds: target.dispatch_time.as_secs_f64().max(1e-6),
            iterations: target.iterations,
            scratch: 0,
            records: Vec::new(),
            records_at,
            cache,
            persistent,
            programs: Vec::new(),
            generated: Vec::new(),
            numbers: HashMap::new(),
            kernels: vec![UsedKernel::default(); plan.kernels.len()],
            wave: Wave::default(),
            dispatches: Vec::new(),
            step: None,
            of_steps: vec![(0, 0); plan.steps.len()],
            pause: 0,
            collect: 0,
            readback: Vec::new(),
            outputs: Vec::new(),
            computed: ComputedIndices::of(plan),
            checks: Vec::new(),
            checked: 0,
        }
    }

    /// The address of a parameter of a step's kernel.
    fn stored(&self, step: &Step, param: ParamPort) -> Stored {
        self.layout.store(self.plan.stores(step)[param.index()])
    }

    fn lowered(&mut self, kernel: KernelId) -> Arc<Lowered> {
        let used = &mut self.kernels[kernel.index()];
        let lowered = used.lowered.get_or_insert_with(|| {
            let lowered = self.cache.kernel(&self.plan.kernels[kernel.index()]);
            used.last.resize(lowered.units.len(), None);
            lowered
        });
        Arc::clone(lowered)
    }

    /// Adds the prologue. It copies parameters that kernels read whole into the arena, each as a lookup of its only row.
    fn copy_parameters(&mut self) -> Result<(), GpuError> {
        for (store, to, elements) in self.layout.whole_parameters() {
            let what = "a parameter that a kernel reads whole";
            let width = u32::try_from(elements).map_err(|_| GpuError::beyond_addresses(what, elements))?;
            let stored = self.layout.store(store);
            let mut record = Record::new(&[width, stored.at, 0, ZERO_WORD, 0, 0, 0, to, 0, 0, 0]);
            record.push(stored.kind).push(width);
            self.persistent.extend_from_slice(record.words());
            self.segment(Program::Fixed(LOOKUP), &record, 0, Threads::of(elements))?;
        }
        self.end_wave()
    }

    fn finish(self, target: Target, prologue: u32) -> Result<Compiled, GpuError> {
        let Self { records, records_at, .. } = self;
        let bytes = (records_at + records.len() as u64) * 4;
        if bytes > target.binding {
            return Err(GpuError::TooLarge { what: "the tables", needed: bytes, limit: target.binding });
        }
        target.split(self.layout.total(), self.layout.params())?;
        let (tables, tables_at) = match self.layout.capacity() {
            Capacity::Exact => ([self.plan.tables.as_slice(), &records].concat(), 0),
            Capacity::Growable => (records, records_at as u32),
        };
        Ok(Compiled {
            constants: self.layout.constants(),
            layout: self.layout,
            tables,
            tables_at,
            programs: self.programs,
            time: Card::SMALL.time_of_dispatches(&self.dispatches),
            dispatches: self.dispatches,
            prologue,
            persistent: self.persistent,
            of_steps: self.of_steps.into_iter().map(|(count, _)| count).collect(),
            pause: self.pause,
            collect: self.collect,
            readback: self.readback,
            outputs: self.outputs,
            checks: self.checks,
            checked: self.checked,
        })
    }
}

//! A plan as a list of dispatches.
//!
//! Compiling looks at every step once and writes, for each unit of its kernel, a record of what the unit's
//! template wants to know: places of operands and results, extents, attributes. Nothing of it is text, but
//! for the bodies of lines and tails; nothing depends on bound numbers or parameters' values. The units of
//! a wave's steps are then put together into as few dispatches as their programs allow.

mod fold;
mod kernels;
mod layout;
mod map;
mod matrix;
mod product;
mod record;
mod reductions;
mod rounds;
mod row;
mod sparse_rows;
mod step;
mod units;
mod update;
mod wave;
mod worth;

pub(crate) use kernels::Known;
pub(crate) use layout::Space;
pub(crate) use layout::VECTOR;
pub use layout::{Layout, Packing, Stored, Want};
pub use matrix::Room;
pub use record::Record;
pub use rounds::Rounds;
pub use sparse_rows::{Touches, touches};
pub use update::{Deed, SUM_OF_SQUARES, TILE_ELEMENTS, UpdateProgram, Updates, compile_update};

use crate::error::GpuError;
use crate::module::{Cuts, Program, Squares};
use autobatch_ir::plan::{FieldId, KernelId, Plan, PlanOutput, Step, Verified};
use autobatch_shaders::{COLLECT, LOOKUP};
use kernels::Lowered;
use map::Cut;
use matrix::Matrix;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use wave::Wave;

/// Threads of one dispatch at most: what two dimensions of 65,535 groups take, with room for the number
/// of a thread in 32 bits.
pub const MAX_THREADS: u64 = 1 << 31;
/// Words of the arena before anything of the plan: the noise that is drawn, and zeros.
pub const HEAD: u64 = 8;
/// A word of the arena that is always zero.
const ZERO_WORD: u32 = 7;

/// A stretch of the arena: its first word, and how many.
pub type Stretch = (u64, u64);

/// Stretches of the arena that are copied as they are; what lies in more is brought together first.
const MOST_STRETCHES: usize = 2;

/// A dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Which of the compiled programs.
    pub program: u32,
    /// Where its segments begin in the tables: first group, record, threads, first lane.
    pub segments: u32,
    /// How many segments it has.
    pub count: u32,
    /// Groups in both dimensions.
    pub groups: [u32; 2],
    /// Multiply-adds, about.
    pub work: u64,
}

impl Dispatch {
    /// What its modules know of it: the segments, how many, and a zero.
    pub(crate) const fn numbers(&self) -> [u32; 3] {
        [self.segments, self.count, 0]
    }
}

/// A plan, ready for a device.
#[derive(Debug)]
pub struct Compiled {
    /// Where everything is.
    pub layout: Layout,
    /// The plan's tables, and the records and segments behind them; of a plan that grows records and segments alone.
    pub tables: Vec<u32>,
    /// Where they begin on the device: behind the tables of a plan that grows, and what these have room for.
    pub tables_at: u32,
    /// What dispatches run.
    pub programs: Vec<Arc<Program>>,
    /// The dispatches, in order.
    pub dispatches: Vec<Dispatch>,
    /// How many of the first dispatches bring parameters to where kernels take them whole, or matrix units in pieces.
    pub prologue: u32,
    /// What these and the constants leave behind, and where: it stays for all plans that say the same while no parameter
    /// changes.
    pub standing: Vec<u32>,
    /// Per step how many dispatches it takes part in.
    pub of_steps: Vec<u32>,
    /// Words of constants, which lie behind the noise.
    pub constants: Vec<u32>,
    /// The stretches of the arena that come back, one behind the other.
    pub back: Vec<Stretch>,
    /// Per output where its words begin among those that come back.
    pub outputs: Vec<u32>,
    /// Words of terms and of sums of products on matrix units.
    pub matrix: Room,
}

/// What compiling needs to know of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Bytes of one binding, a power of two.
    pub binding: u64,
    /// Storage bindings of a module.
    pub bindings: u32,
    /// Words of rows that stages leave for one another.
    pub scratch: u64,
    /// Whether all products are cut alike, whatever their rows: then no compiler of a driver can make the
    /// bits of a row depend on how many others there are.
    pub strict: bool,
    /// How parameters lie in its memory.
    pub packing: Packing,
    /// Rounds of loops that a thread may take; nothing where it may take any.
    pub rounds: Option<Rounds>,
    /// What products are made of on its matrix units, if they are made there.
    pub matrix: Option<Squares>,
}

impl Compiled {
    /// How many words come back.
    #[must_use]
    pub fn words_back(&self) -> u64 {
        self.back.iter().map(|stretch| stretch.1).sum()
    }
}

impl Target {
    /// A device of the least limits that all have.
    pub const LEAST: Self = Self {
        binding: 128 << 20,
        bindings: 8,
        scratch: DEFAULT_SCRATCH,
        strict: false,
        packing: Packing::Halves,
        rounds: None,
        matrix: None,
    };

    /// Into how many bindings so many words are cut.
    ///
    /// # Errors
    /// If they are more than the device has.
    pub fn cuts(&self, arena: u64, params: u64) -> Result<Cuts, GpuError> {
        let bindings = |words: u64| (words * 4).div_ceil(self.binding).max(1);
        let (of_arena, of_params) = (bindings(arena), bindings(params));
        let free = u64::from(self.bindings.saturating_sub(if self.matrix.is_some() { 3 } else { 1 }));
        if of_arena + of_params > free {
            return Err(GpuError::TooLarge {
                what: "the rows and parameters of the plan",
                needed: (arena + params) * 4,
                limit: free * self.binding,
            });
        }
        let shift = self.binding.ilog2() - 2;
        let matrix = self.matrix.is_some();
        Ok(Cuts { arena: of_arena as u32, params: of_params as u32, shift, matrix })
    }
}

/// Words of scratch rows unless a budget says otherwise: 64 MiB.
pub const DEFAULT_SCRATCH: u64 = 16 << 20;

/// Compiles a plan.
///
/// # Errors
/// If it takes more than words of 32 bits can count, than the device holds, or longer loops than it executes.
pub fn compile(plan: &Verified<Plan>, target: Target) -> Result<Compiled, GpuError> {
    let layout = Layout::new(plan, target.packing, Space::Exact)?;
    compile_from(plan, target, layout, 0, &mut Known::default())
}

/// Compiles the waves of a plan from one on, and what comes behind all waves, for a layout. Of kernels that are known
/// nothing is found out once more, and no text is written.
///
/// # Errors
/// As [`compile`].
pub(crate) fn compile_from(
    plan: &Verified<Plan>,
    target: Target,
    layout: Layout,
    first: usize,
    known: &mut Known,
) -> Result<Compiled, GpuError> {
    known.make_room();
    let mut build = Build::new(plan, target, layout, known);
    build.parameters()?;
    let before = first.checked_sub(1).and_then(|last| plan.waves.get(last)).copied();
    matrix::weights(&mut build, before.unwrap_or(0) as usize)?;
    let prologue = build.dispatches.len() as u32;
    for wave in plan.waves_from(first) {
        for number in wave {
            build.step = Some(number as u32);
            step::lower(&mut build, &plan.steps[number])?;
        }
        build.end_wave()?;
    }
    build.step = None;
    reductions::lower(&mut build)?;
    build.outputs()?;
    build.end_wave()?;
    build.finish(target, prologue)
}

/// A compilation in progress.
struct Build<'a> {
    plan: &'a Plan,
    layout: Layout,
    scratch_budget: u64,
    strict: bool,
    /// See [`Target::rounds`].
    rounds: Option<Rounds>,
    /// What products on matrix units take.
    matrix: Matrix,
    /// Words of scratch that the greediest wave takes.
    scratch: u64,
    /// Records and segments, and where the first is.
    records: (Vec<u32>, u64),
    known: &'a mut Known,
    /// See [`Compiled::standing`]: constants, how many, and the records of what brings parameters.
    standing: Vec<u32>,
    programs: Vec<Arc<Program>>,
    /// By their addresses.
    numbers: HashMap<usize, u32>,
    /// Per kernel what is known of it, once a step was met that executes it.
    met: Vec<Met>,
    wave: Wave,
    dispatches: Vec<Dispatch>,
    /// The step that is being lowered.
    step: Option<u32>,
    /// Per step its dispatches, and one more than the number of the last.
    of_steps: Vec<(u32, u32)>,
    /// See [`Compiled::back`] and [`Compiled::outputs`].
    back: Vec<Stretch>,
    outputs: Vec<u32>,
}

/// A kernel that steps execute.
#[derive(Clone, Default)]
struct Met {
    lowered: Option<Arc<Lowered>>,
    /// Per unit the generated program of its last step.
    last: Vec<Option<(Cut, u32)>>,
}

impl<'a> Build<'a> {
    fn new(plan: &'a Plan, target: Target, layout: Layout, known: &'a mut Known) -> Self {
        let records_at = layout.tables(plan.tables.len() as u64);
        let mut standing = layout.constants();
        standing.push(standing.len() as u32);
        Self {
            plan,
            layout,
            scratch_budget: target.scratch.max(1),
            strict: target.strict,
            rounds: target.rounds,
            matrix: Matrix::new(plan, target),
            scratch: 0,
            records: (Vec::new(), records_at),
            known,
            standing,
            programs: Vec::new(),
            numbers: HashMap::new(),
            met: vec![Met::default(); plan.kernels.len()],
            wave: Wave::default(),
            dispatches: Vec::new(),
            step: None,
            of_steps: vec![(0, 0); plan.steps.len()],
            back: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// Where a parameter of a step's kernel is.
    fn stored(&self, step: &Step, param: u32) -> Stored {
        self.layout.store(self.plan.stores(step)[param as usize])
    }

    /// What steps of a kernel of the plan have in common.
    fn lowered(&mut self, kernel: KernelId) -> Arc<Lowered> {
        let met = &mut self.met[kernel.index()];
        let lowered = met.lowered.get_or_insert_with(|| {
            let lowered = self.known.kernel(&self.plan.kernels[kernel.index()], self.matrix.multiplies());
            met.last.resize(lowered.pieces.len(), None);
            lowered
        });
        Arc::clone(lowered)
    }

    /// Parameters that kernels take whole go into the arena, word by word, as lookups of their only row.
    fn parameters(&mut self) -> Result<(), GpuError> {
        for (store, to, elements) in self.layout.taken_whole() {
            let width = u32::try_from(elements).map_err(|_| GpuError::TooLarge {
                what: "a parameter that a kernel takes whole",
                needed: elements * 4,
                limit: u64::from(u32::MAX) * 4,
            })?;
            let stored = self.layout.store(store);
            let mut record = Record::new(&[width, stored.at, 0, ZERO_WORD, 0, 0, 0, to, 0, 0, 0]);
            record.push(stored.kind).push(width);
            self.standing.extend_from_slice(record.words());
            self.segment(Program::Fixed(LOOKUP), &record, 0, (0, elements), 1)?;
        }
        self.end_wave()
    }

    /// How outputs come back: from where they are, if there they lie together; else a dispatch brings them
    /// together, behind the scratch rows.
    fn outputs(&mut self) -> Result<(), GpuError> {
        let result = self.layout.reserve_outputs(self.scratch)?;
        if let Some((back, outputs)) = self.outputs_in_place() {
            (self.back, self.outputs) = (back, outputs);
            return self.layout.fit_outputs(0);
        }
        let mut record = Record::default();
        record.push(0).push(result).push(self.plan.outputs.len() as u32);
        let mut end = 0u64;
        for output in &self.plan.outputs {
            let width = u64::from(self.plan.field(output.field).width());
            let from = self.layout.field(output.field).0 as u64 + u64::from(output.row) * width;
            self.outputs.push(end as u32);
            let shift = (from as u32).wrapping_sub(end as u32);
            end += width;
            record.push(end as u32).push(shift);
        }
        self.layout.fit_outputs(end)?;
        self.back = vec![(result.into(), end)];
        self.segment(Program::Fixed(COLLECT), &record, 0, (0, end), 1)
    }

    /// The stretches of the arena that outputs are, nothing else between them, and where in these each output begins;
    /// nothing if there would be many.
    fn outputs_in_place(&self) -> Option<(Vec<Stretch>, Vec<u32>)> {
        let plan = self.plan;
        let mut rows: Vec<(FieldId, u32)> =
            plan.outputs.iter().map(|output| (output.field, output.row)).collect();
        rows.sort_unstable();
        rows.dedup();
        let mut runs: Vec<(FieldId, Range<u32>)> = Vec::new();
        for (field, row) in rows {
            let full = runs.len() == MOST_STRETCHES;
            match runs.last_mut() {
                Some((last, rows)) if *last == field && rows.end == row => rows.end += 1,
                _ if full => return None,
                _ => runs.push((field, row..row + 1)),
            }
        }
        let (mut stretches, mut begins, mut end) = (Vec::new(), Vec::new(), 0u64);
        for (field, rows) in &runs {
            let (base, width) = self.layout.field(*field);
            let [at, words] = [rows.start, rows.len() as u32].map(|rows| u64::from(rows) * u64::from(width));
            stretches.push((u64::from(base) + at, words));
            begins.push(end);
            end += words;
        }
        let place = |output: &PlanOutput| {
            let run =
                runs.iter().position(|(field, rows)| *field == output.field && rows.contains(&output.row))?;
            let before =
                u64::from(output.row - runs[run].1.start) * u64::from(plan.field(output.field).width());
            u32::try_from(begins[run] + before).ok()
        };
        Some((stretches, plan.outputs.iter().map(place).collect::<Option<_>>()?))
    }

    fn finish(self, target: Target, prologue: u32) -> Result<Compiled, GpuError> {
        let (records, records_at) = self.records;
        let bytes = (records_at + records.len() as u64) * 4;
        if bytes > target.binding {
            return Err(GpuError::TooLarge { what: "the tables", needed: bytes, limit: target.binding });
        }
        target.cuts(self.layout.total(), self.layout.params())?;
        let (tables, tables_at) = match self.layout.space() {
            Space::Exact => ([self.plan.tables.as_slice(), &records].concat(), 0),
            Space::Roomy => (records, records_at as u32),
        };
        Ok(Compiled {
            constants: self.layout.constants(),
            layout: self.layout,
            tables,
            tables_at,
            programs: self.programs,
            dispatches: self.dispatches,
            prologue,
            standing: self.standing,
            of_steps: self.of_steps.into_iter().map(|(count, _)| count).collect(),
            back: self.back,
            outputs: self.outputs,
            matrix: self.matrix.room(),
        })
    }
}

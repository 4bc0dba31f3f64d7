//! Executes the stages of one step on a tile of lanes.
//!
//! All stages run on one tile before the next tile, so temporaries stay in cache. Lanes are independent, so the result
//! is that of stage-by-stage execution. The strip of every register is computed before the first stage.

use super::clock::{Clock, TimedPart};
use super::folds::Attentions;
use super::memory::FieldMemory;
use super::prepared::{PreparedSteps, StepArgs, recycled};
use super::program::{Program, Register, RegisterLocation, TILE_STEP, Task};
use super::work_kind::{KindTicks, Stopwatch, WorkKind};
use crate::kernels::list_gradients::FoldSpace;
use crate::kernels::{
    Aligned, AttentionSpace, GraphSpace, Isa, LabelSpace, PackedLists, PackedWeights, Scratch, prefetch,
};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Group, Inputs, Kernel, List, Origin, Place, Plan, RegId, Stage, StepOperand, View};
use autobatch_ir::types::Type;
use std::ops::Range;
use std::sync::Arc;

/// The data shared by all steps of a run.
#[derive(Clone, Copy)]
pub(super) struct ExecutionContext<'a> {
    pub(super) isa: Isa,
    pub(super) plan: &'a Plan,
    pub(super) prepared: &'a PreparedSteps,
    /// The values of the parameter ports of all bindings.
    pub(super) params: &'a [&'a [f32]],
    pub(super) fields: &'a [FieldMemory],
    pub(super) inputs: Inputs<'a>,
}

/// The data shared by all tiles of a step.
pub(super) struct StepContext<'a> {
    pub(super) isa: Isa,
    pub(super) noise: Noise,
    pub(super) kernel: &'a Kernel,
    pub(super) program: &'a Program,
    pub(super) operands: &'a [StepOperand],
    pub(super) places: &'a [Place],
    pub(super) tables: &'a [u32],
    pub(super) groups: &'a [Group],
    pub(super) fields: &'a [FieldMemory],
    pub(super) words: &'a [u32],
    pub(super) floats: &'a [f32],
    /// The values of the step's parameter ports, followed by others.
    pub(super) params: &'a [&'a [f32]],
    /// The packed weights of its products, followed by others.
    pub(super) weights: &'a [Arc<PackedWeights>],
    /// The arguments of the next step, or one past the last.
    next: *const StepArgs,
}

/// A lane that computed an index out of range.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneFault {
    pub(super) lane: usize,
    pub(super) found: u32,
    pub(super) limit: u32,
}

/// The memory of one thread.
#[derive(Default)]
pub(super) struct TileMemory {
    tile: Aligned,
    /// The strips of the registers in the current tile.
    registers: Vec<Strip>,
    space: StageScratch,
    /// The times of executed parts, if the run is counted.
    pub(super) timed: Vec<TimedPart>,
    /// The first fault of the run on this thread, with its step.
    pub(super) fault: Option<(u32, LaneFault)>,
}

impl TileMemory {
    /// Allocates tiles of `floats` floats. Returns `None` if the allocation fails.
    pub(super) fn fit(&mut self, floats: usize) -> Option<()> {
        self.tile.fit(floats)
    }

    /// Measures the time of this thread by kind from now on, if there is a clock.
    pub(super) fn start_stopwatch(&mut self, clock: Option<Clock>) {
        self.space.stopwatch = clock.map(Stopwatch::new);
    }

    /// Takes the time of this thread by kind.
    pub(super) fn take_kinds(&mut self) -> KindTicks {
        self.space.stopwatch.take().map_or_else(KindTicks::default, |watch| watch.spent)
    }

    /// Keeps a fault of the step that was just executed, if it comes before the known one. A thread executes the lanes of
    /// a wave in any order.
    pub(super) fn keep_fault(&mut self, step: u32) {
        if let Some(fault) = self.space.fault.take()
            && self.fault.is_none_or(|(known, first)| (step, fault.lane) < (known, first.lane))
        {
            self.fault = Some((step, fault));
        }
    }
}

/// Scratch space of stages, reused to avoid allocations. The vectors are empty between calls.
#[derive(Default)]
pub(super) struct StageScratch {
    pub(super) scratch: Scratch,
    pub(super) strips: Vec<Strip>,
    pub(super) operands: Vec<(&'static [u32], Type)>,
    pub(super) results: Vec<&'static mut [u32]>,
    pub(super) lists: [Vec<&'static [f32]>; 2],
    pub(super) weights: Vec<f32>,
    /// The offsets and items of lists in groups.
    pub(super) expanded: [Vec<u32>; 2],
    pub(super) fold: FoldSpace,
    pub(super) attention: AttentionSpace,
    pub(super) graph: GraphSpace,
    pub(super) label: LabelSpace,
    /// The labels of the lanes.
    pub(super) labels: Vec<u32>,
    /// The lists that the attentions of a step packed.
    pub(super) packed: Vec<PackedLists<'static>>,
    /// The lists of the keys and values of each lane.
    pub(super) attended: Vec<[List<'static>; 2]>,
    /// The lists of the readers of each lane.
    pub(super) readers: Vec<List<'static>>,
    /// The first fault of the lanes that are executed now.
    fault: Option<LaneFault>,
    /// The time by kind, if the run is counted.
    pub(super) stopwatch: Option<Stopwatch>,
}

impl StageScratch {
    /// Begins to measure a tile, if the run is counted.
    fn begin_lap(&mut self) {
        if let Some(watch) = &mut self.stopwatch {
            watch.begin();
        }
    }

    /// Counts the time since the last lap as that of a kind of work, if the run is counted.
    fn end_lap(&mut self, kind: impl FnOnce() -> WorkKind) {
        if let Some(watch) = &mut self.stopwatch {
            watch.end(kind());
        }
    }
}

/// Strided rows of words: row `i` of the tile begins at `base + i * stride`.
#[derive(Clone, Copy)]
pub(super) struct Strip {
    pub(super) base: *mut f32,
    pub(super) stride: usize,
}

impl Strip {
    /// The strip of a register that no stage accesses by rows.
    const NONE: Self = Self { base: std::ptr::null_mut(), stride: 0 };
}

// SAFETY: a strip is used only while its tile runs, by the thread that runs it.
unsafe impl Send for Strip {}

impl<'a> ExecutionContext<'a> {
    pub(super) fn step(&self, args: &StepArgs) -> StepContext<'a> {
        let Self { isa, plan, prepared, params, fields, inputs } = *self;
        let (kernel, program) = prepared.kernel_and_program(args);
        StepContext {
            isa,
            noise: inputs.noise,
            kernel,
            program,
            operands: args.operands(plan),
            places: args.places(plan),
            tables: &plan.tables,
            groups: &plan.groups,
            fields,
            words: inputs.words,
            floats: inputs.floats,
            params: prepared.params(args, params),
            weights: prepared.weights(args),
            next: std::ptr::from_ref(args).wrapping_add(1),
        }
    }
}

impl StepContext<'_> {
    /// The first row, word or float that an operand may read, and the floats from one to the next.
    #[inline(always)]
    pub(super) fn memory(&self, origin: Origin) -> (*const f32, usize) {
        match origin {
            Origin::Field(field) => {
                let field = self.fields[field.index()];
                (field.base.cast_const(), field.width)
            }
            Origin::Words => (self.words.as_ptr().cast(), 1),
            Origin::Floats => (self.floats.as_ptr(), 1),
        }
    }

    /// Executes some lanes of the step.
    ///
    /// # Safety
    /// The step belongs to a verified plan. Its fields have the rows that the plan declares, and the bindings cover
    /// what the plan binds. No other thread executes the same lanes or a step of another wave. `memory` fits a tile of
    /// the step.
    pub(super) unsafe fn execute(&self, lanes: Range<usize>, memory: &mut TileMemory) {
        let rows = self.program.tile_rows;
        let blocks = memory.tile.floats_mut().as_mut_ptr();
        let base = blocks.wrapping_add(self.program.block_floats);
        // The smallest number of nearly equal tiles: each tile reads the weights once.
        let tiles = lanes.len().div_ceil(rows).max(1);
        let height = lanes.len().div_ceil(tiles).max(1).next_multiple_of(TILE_STEP);
        let mut packed = recycled::<_, PackedLists<'_>>(std::mem::take(&mut memory.space.packed));
        for start in lanes.clone().step_by(height) {
            let lanes = start..lanes.end.min(start + height);
            let registers = std::mem::take(&mut memory.registers);
            // SAFETY: the caller guarantees the contract for all lanes, and the tile takes some of them.
            let mut tile = unsafe { Tile::new(self, lanes, blocks, base, registers) };
            tile.execute(&mut memory.space, &mut packed);
            memory.registers = tile.registers;
        }
        memory.space.packed = recycled(packed);
    }
}

/// Some lanes of a step that are executed now.
///
/// A tile has the contract of [`StepContext::execute`] as long as it exists: rows of operands and places exist, results of
/// different lanes do not overlap, rows are written before they are read, and no one else accesses the lanes.
pub(super) struct Tile<'a> {
    pub(super) step: &'a StepContext<'a>,
    pub(super) lanes: Range<usize>,
    /// The memory of block registers.
    blocks: *mut f32,
    /// The memory of tile registers.
    base: *mut f32,
    registers: Vec<Strip>,
}

impl<'a> Tile<'a> {
    /// # Safety
    /// As for [`StepContext::execute`].
    unsafe fn new(
        step: &'a StepContext<'a>,
        lanes: Range<usize>,
        blocks: *mut f32,
        base: *mut f32,
        registers: Vec<Strip>,
    ) -> Self {
        Self { step, lanes, blocks, base, registers }
    }

    fn execute(&mut self, space: &mut StageScratch, packed: &mut Vec<PackedLists<'a>>) {
        let mut attentions = Attentions { lists: packed, next: 0 };
        space.begin_lap();
        self.locate_registers();
        space.end_lap(|| WorkKind::Gather);
        let tasks = &self.step.program.tasks;
        for (number, task) in tasks.iter().enumerate() {
            if number + 1 == tasks.len() {
                // The arguments of the next step load during the last task.
                prefetch(self.step.next);
            }
            match task {
                Task::Prod { dst, rows, init, chains } => {
                    self.prod(*dst, *rows as usize, *init, chains, &mut space.scratch);
                }
                Task::Map(stage) => self.map(stage),
                Task::Multiply { left, right, dst } => {
                    self.multiply(*left, *right, *dst, &mut space.scratch);
                }
                Task::Stage(number) => self.stage(&self.step.kernel.stages[*number], space, &mut attentions),
            }
            space.end_lap(|| WorkKind::of(task, self.step.kernel));
        }
        self.copy_results();
        space.end_lap(|| WorkKind::Copy);
    }

    /// The tile memory at `floats` floats per lane, so that the registers of a small tile are close together.
    fn at(&self, floats: usize) -> *mut f32 {
        self.base.wrapping_add(floats * self.lanes.len())
    }

    fn locate_registers(&mut self) {
        let mut registers = std::mem::take(&mut self.registers);
        registers.clear();
        registers.extend(self.step.program.registers.iter().map(|register| self.locate(register)));
        self.registers = registers;
    }

    /// The strip of a register in this tile.
    #[inline(always)]
    fn locate(&self, &Register { location, width }: &Register) -> Strip {
        let step = self.step;
        let read_only = |base: *const f32| Strip { base: base.cast_mut(), stride: 0 };
        match location {
            RegisterLocation::Port(port) => self.port_strip(port as usize, width),
            RegisterLocation::Param(port) => read_only(step.params[port.index()].as_ptr()),
            RegisterLocation::Const(at) => read_only(step.program.constants[at..].as_ptr()),
            RegisterLocation::Tile(at) => Strip { base: self.at(at), stride: width },
            RegisterLocation::Block { at, rows } => {
                Strip { base: self.blocks.wrapping_add(at * rows.min(self.lanes.len())), stride: width }
            }
            RegisterLocation::Result(result) => {
                let base = self.result_row(result as usize, self.lanes.start);
                Strip { base, stride: step.fields[step.places[result as usize].field().index()].width }
            }
            // No stage reads edges (plan rule on gradients of folds).
            RegisterLocation::Edges(_) => Strip::NONE,
        }
    }

    /// The strip of a port. Gathered rows are copied into the tile if a stage reads them by rows. A list has no strip.
    fn port_strip(&self, port: usize, width: usize) -> Strip {
        let step = self.step;
        let StepOperand { origin, address } = step.operands[port];
        let (from, stride) = step.memory(origin);
        if let Some((start, lane_stride)) = address.steps() {
            let base = from.wrapping_add((start as usize + lane_stride as usize * self.lanes.start) * stride);
            return Strip { base: base.cast_mut(), stride: lane_stride as usize * stride };
        }
        let Some(table) = address.table() else { return Strip::NONE };
        let Some(at) = step.program.gathers[port] else { return Strip::NONE };
        let table = &step.tables[table as usize..][self.lanes.clone()];
        if let [number] = table {
            let base = from.wrapping_add(*number as usize * stride);
            return Strip { base: base.cast_mut(), stride: width };
        }
        let to = self.at(at);
        for (row, &number) in table.iter().enumerate() {
            let from = from.wrapping_add(number as usize * stride);
            // SAFETY: the contract of the tile; the tile reserves memory for these rows.
            unsafe { std::ptr::copy_nonoverlapping(from, to.add(row * width), width) };
        }
        Strip { base: to, stride: width }
    }

    pub(super) fn field_row(&self, field: usize, row: usize) -> *const f32 {
        let field = self.step.fields[field];
        field.base.wrapping_add(row * field.width)
    }

    pub(super) fn strip(&self, view: View) -> Strip {
        self.register(view.reg, view.start)
    }

    /// The strip of a register from element `start` on.
    pub(super) fn register(&self, reg: RegId, start: u32) -> Strip {
        let Strip { base, stride } = self.registers[reg.index()];
        debug_assert!(!base.is_null(), "lists and operands that only products gather have no strip");
        Strip { base: base.wrapping_add(start as usize), stride }
    }

    /// The start of a lane's result; for edges, of the first edge.
    pub(super) fn result_row(&self, result: usize, lane: usize) -> *mut f32 {
        let row = match self.step.places[result] {
            Place::Rows { start, .. } => start as usize + lane,
            Place::Table { at, .. } => self.step.tables[at as usize + lane] as usize,
            Place::Edges { start, offsets, .. } => {
                start as usize + self.step.tables[offsets as usize + lane] as usize
            }
        };
        self.field_row(self.step.places[result].field().index(), row).cast_mut()
    }

    fn stage(&self, stage: &Stage, space: &mut StageScratch, attentions: &mut Attentions<'_, 'a>) {
        if let Some(limit) = self.step.kernel.index_limit(stage) {
            self.check_indices(limit, &mut space.fault);
        }
        match stage {
            Stage::Row { op, sources, dsts } => self.row(*op, sources, dsts, space),
            Stage::Seg { .. } => self.seg(stage, space, attentions),
            Stage::SegGrad { .. } => self.fold_gradient(stage, space),
            Stage::MeanGrad { list, dy, dst } => self.mean_gradient(*list, *dy, *dst, space),
            Stage::AttendGrad { .. } => self.attention_gradient(stage, space, attentions),
            Stage::AttendPull { .. } => self.pull(stage, space, attentions),
            Stage::Lookup { param, index, dst } => self.lookup(param.index(), *index, *dst),
            Stage::LabelLoss { param, x, label, dst, log_sum, slope } => {
                self.label_loss(param.index(), [*x, *label], [Some(*dst), *log_sum, *slope], space);
            }
            Stage::Prod { .. } | Stage::Map { .. } => unreachable!("products and maps are other tasks"),
        }
    }

    /// Copies the results that were not written directly.
    fn copy_results(&self) {
        for &(number, view) in &self.step.program.copies {
            let from = self.strip(view);
            for (row, lane) in self.lanes.clone().enumerate() {
                // SAFETY: the contract of the tile; a result is no operand of its step.
                unsafe {
                    let from = from.base.add(row * from.stride);
                    std::ptr::copy_nonoverlapping(from, self.result_row(number, lane), view.width as usize);
                }
            }
        }
    }
}

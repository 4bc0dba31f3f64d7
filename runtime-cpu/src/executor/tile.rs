//! Executes the stages of one step on a tile of lanes.
//!
//! All stages run on the tile before the next tile begins, so temporaries stay in cache; lanes are
//! independent, so this is the same function as stage by stage. Before the first stage every register of the
//! program gets its strip: whatever stages ask later is an addition.

use super::Bound;
use super::memory::FieldMemory;
use super::program::{Home, Program, Register, TILE_STEP, Task};
use super::ready::{Ready, Turn};
use super::waves::Stretch;
use crate::kernels::list_gradients::FoldSpace;
use crate::kernels::{Aligned, Isa, PackedWeights, Scratch, prefetch};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Kernel, Operand, Place, Plan, Stage, View};
use autobatch_ir::types::Type;
use std::ops::Range;
use std::sync::Arc;

/// What all steps of a run share.
#[derive(Clone, Copy)]
pub(super) struct ExecutionContext<'a> {
    pub(super) isa: Isa,
    pub(super) plan: &'a Plan,
    pub(super) ready: &'a Ready,
    /// The values of parameter ports, where `ready` says.
    pub(super) params: &'a [&'a [f32]],
    pub(super) fields: &'a [FieldMemory],
    pub(super) bound: Bound<'a>,
}

/// What all tiles of a step share.
pub(super) struct StepContext<'a> {
    pub(super) isa: Isa,
    pub(super) noise: Noise,
    pub(super) kernel: &'a Kernel,
    pub(super) program: &'a Program,
    pub(super) operands: &'a [Operand],
    pub(super) places: &'a [Place],
    pub(super) tables: &'a [u32],
    pub(super) fields: &'a [FieldMemory],
    pub(super) words: &'a [u32],
    pub(super) floats: &'a [f32],
    /// The values of the step's parameter ports, and what follows.
    pub(super) params: &'a [&'a [f32]],
    /// The packed weights that its products meet, and what follows.
    pub(super) weights: &'a [Arc<PackedWeights>],
    /// The turn that is executed next, or one past the last.
    next: *const Turn,
}

/// The memory of one thread.
#[derive(Default)]
pub(super) struct TileMemory {
    tile: Aligned,
    /// Of the tile being executed, per register of the program.
    registers: Vec<Strip>,
    space: Space,
    /// What was executed when, if that is counted.
    pub(super) stretches: Vec<Stretch>,
}

impl TileMemory {
    /// Makes room for tiles of so many floats; `None` if it cannot be had.
    pub(super) fn fit(&mut self, floats: usize) -> Option<()> {
        self.tile.fit(floats)
    }
}

/// Space of stages, kept so that nothing is allocated again. The vectors hold nothing between calls.
#[derive(Default)]
pub(super) struct Space {
    pub(super) scratch: Scratch,
    pub(super) strips: Vec<Strip>,
    pub(super) operands: Vec<(&'static [u32], Type)>,
    pub(super) results: Vec<&'static mut [u32]>,
    pub(super) lists: [Vec<&'static [f32]>; 2],
    pub(super) weights: Vec<f32>,
    pub(super) fold: FoldSpace,
}

/// Strided rows of words: row `i` of the tile begins at `base + i * stride`.
#[derive(Clone, Copy)]
pub(super) struct Strip {
    pub(super) base: *mut f32,
    pub(super) stride: usize,
}

impl Strip {
    /// Of a register that no stage reads or writes by rows.
    const NONE: Self = Self { base: std::ptr::null_mut(), stride: 0 };
}

// SAFETY: a strip is read and written only while its tile is executed, by the thread that executes it.
unsafe impl Send for Strip {}

impl<'a> ExecutionContext<'a> {
    /// What the tiles of a step share.
    pub(super) fn step(&self, turn: &Turn) -> StepContext<'a> {
        let Self { isa, plan, ready, params, fields, bound } = *self;
        let (kernel, program) = ready.executed(turn);
        StepContext {
            isa,
            noise: bound.noise,
            kernel,
            program,
            operands: turn.operands(plan),
            places: turn.places(plan),
            tables: &plan.tables,
            fields,
            words: bound.words,
            floats: bound.floats,
            params: ready.params(turn, params),
            weights: ready.weights(turn),
            next: std::ptr::from_ref(turn).wrapping_add(1),
        }
    }
}

impl StepContext<'_> {
    /// Executes the given lanes.
    ///
    /// # Safety
    /// The context is that of a step of a verified plan, its fields have the rows that the plan
    /// declares, its bindings cover what the plan binds, and no other thread executes the same lanes or
    /// a step of another wave. The memory has room for a tile of the step.
    pub(super) unsafe fn execute(&self, lanes: Range<usize>, memory: &mut TileMemory) {
        let rows = self.program.tile_rows;
        let blocks = memory.tile.floats_mut().as_mut_ptr();
        let base = blocks.wrapping_add(self.program.block_floats);
        // As few tiles as can be, nearly equal: each goes through the weights once.
        let tiles = lanes.len().div_ceil(rows).max(1);
        let height = lanes.len().div_ceil(tiles).max(1).next_multiple_of(TILE_STEP);
        for start in lanes.clone().step_by(height) {
            let lanes = start..lanes.end.min(start + height);
            let registers = std::mem::take(&mut memory.registers);
            let mut tile = Tile { step: self, lanes, blocks, base, registers };
            // SAFETY: the tile's lanes are some of those that the caller vouches for.
            unsafe { tile.execute(&mut memory.space) };
            memory.registers = tile.registers;
        }
    }
}

pub(super) struct Tile<'a> {
    pub(super) step: &'a StepContext<'a>,
    pub(super) lanes: Range<usize>,
    /// Where registers of blocks are.
    blocks: *mut f32,
    base: *mut f32,
    /// Per register of the program, where its rows are.
    registers: Vec<Strip>,
}

// Every unsafe function of this type needs what `StepContext::execute` needs: then rows named by
// operands and places exist, results of distinct lanes are distinct, and what is read was written.
#[allow(clippy::missing_safety_doc, reason = "said once, above")]
impl Tile<'_> {
    unsafe fn execute(&mut self, space: &mut Space) {
        // SAFETY: as for this function, for all calls below.
        unsafe {
            self.find_registers();
            let tasks = &self.step.program.tasks;
            for (number, task) in tasks.iter().enumerate() {
                if number + 1 == tasks.len() {
                    // What comes next is read from memory while this is done.
                    prefetch(self.step.next);
                }
                match task {
                    Task::Prod { dst, rows, init, chains } => {
                        self.prod(*dst, *rows as usize, *init, chains, &mut space.scratch)
                    }
                    Task::Map(stage) => self.map(stage),
                    Task::Other(number) => self.other(&self.step.kernel.stages[*number], space),
                }
            }
            self.copy_results();
        }
    }

    /// Rows of the tile that begin so many floats a lane behind its first. A tile of few lanes is small, so that
    /// its registers lie close together.
    fn at(&self, floats: usize) -> *mut f32 {
        self.base.wrapping_add(floats * self.lanes.len())
    }

    unsafe fn find_registers(&mut self) {
        let mut registers = std::mem::take(&mut self.registers);
        registers.clear();
        // SAFETY: as for this function.
        registers.extend(self.step.program.registers.iter().map(|register| unsafe { self.found(register) }));
        self.registers = registers;
    }

    /// Where a register's rows are in this tile.
    #[inline(always)]
    unsafe fn found(&self, &Register { home, width }: &Register) -> Strip {
        let step = self.step;
        let read_only = |base: *const f32| Strip { base: base.cast_mut(), stride: 0 };
        match home {
            // SAFETY: as for this function.
            Home::Port(port) => unsafe { self.port_strip(port as usize, width) },
            Home::Param(port) => read_only(step.params[port as usize].as_ptr()),
            Home::Const(at) => read_only(step.program.constants[at..].as_ptr()),
            Home::Tile(at) => Strip { base: self.at(at), stride: width },
            Home::Block { at, rows } => {
                Strip { base: self.blocks.wrapping_add(at * rows.min(self.lanes.len())), stride: width }
            }
            Home::Result(result) => {
                let base = self.result_row(result as usize, self.lanes.start);
                Strip { base, stride: step.fields[step.places[result as usize].field().index()].width }
            }
            // Nobody reads edges (plan rule on gradients of folds).
            Home::Edges(_) => Strip::NONE,
        }
    }

    /// The rows of a port. Those that come through a table are copied next to each other where stages want
    /// them so; a list has none.
    unsafe fn port_strip(&self, port: usize, width: usize) -> Strip {
        let step = self.step;
        let steady = |base: *const f32, start: u32, stride: u32, width: usize| Strip {
            base: base.wrapping_add((start as usize + stride as usize * self.lanes.start) * width).cast_mut(),
            stride: stride as usize * width,
        };
        let (from, stride, table) = match step.operands[port] {
            Operand::Rows { field, start, stride } => {
                let field = step.fields[field.index()];
                return steady(field.base, start, stride, field.width);
            }
            Operand::Words { start, stride } => return steady(step.words.as_ptr().cast(), start, stride, 1),
            Operand::Floats { start, stride } => return steady(step.floats.as_ptr(), start, stride, 1),
            Operand::Segments { .. } => return Strip::NONE,
            Operand::Table { field, at } => {
                let field = step.fields[field.index()];
                (field.base.cast_const(), field.width, at)
            }
            Operand::WordTable { at } => (step.words.as_ptr().cast(), 1, at),
            Operand::FloatTable { at } => (step.floats.as_ptr(), 1, at),
        };
        let Some(at) = step.program.gathers[port] else { return Strip::NONE };
        let table = &step.tables[table as usize..][self.lanes.clone()];
        if let [number] = table {
            let base = from.wrapping_add(*number as usize * stride);
            return Strip { base: base.cast_mut(), stride: width };
        }
        let to = self.at(at);
        for (row, &number) in table.iter().enumerate() {
            let from = from.wrapping_add(number as usize * stride);
            // SAFETY: as for this function; the tile has room for its rows.
            unsafe { std::ptr::copy_nonoverlapping(from, to.add(row * width), width) };
        }
        Strip { base: to, stride: width }
    }

    pub(super) fn field_row(&self, field: usize, row: usize) -> *const f32 {
        let field = self.step.fields[field];
        field.base.wrapping_add(row * field.width)
    }

    /// The rows of a view for this tile.
    pub(super) fn strip(&self, view: View) -> Strip {
        self.register(view.reg, view.start)
    }

    /// The rows of a register from an element on.
    pub(super) fn register(&self, reg: u32, start: u32) -> Strip {
        let Strip { base, stride } = self.registers[reg as usize];
        debug_assert!(!base.is_null(), "a list and what only products read by tables has no rows of its own");
        Strip { base: base.wrapping_add(start as usize), stride }
    }

    /// Where a lane's result begins; of edges the first.
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

    unsafe fn other(&self, stage: &Stage, space: &mut Space) {
        // SAFETY: as for this function.
        unsafe {
            match stage {
                Stage::Row { op, sources, dsts } => self.row(*op, sources, dsts, space),
                Stage::Seg { op, query, lists, elements, dst } => {
                    self.seg(*op, *query, lists, elements, *dst, space);
                }
                Stage::SegGrad { .. } => self.fold_gradient(stage, space),
                Stage::Lookup { param, index, dst } => self.lookup(*param as usize, *index, *dst),
                Stage::Prod { .. } | Stage::Map { .. } => unreachable!("these are tasks of their own"),
            }
        }
    }

    /// Copies results that are no homes.
    unsafe fn copy_results(&self) {
        for &(number, view) in &self.step.program.copies {
            let from = self.strip(view);
            for (row, lane) in self.lanes.clone().enumerate() {
                // SAFETY: as for this function; results are no operands of their own step.
                unsafe {
                    let from = from.base.add(row * from.stride);
                    std::ptr::copy_nonoverlapping(from, self.result_row(number, lane), view.width as usize);
                }
            }
        }
    }
}

//! Plays the stages of one step on a tile of lanes.
//!
//! All stages run on the tile before the next tile begins, so temporaries stay in cache; lanes are
//! independent, so this is the same function as stage by stage.

use super::Bound;
use super::counters::Span;
use super::memory::FieldMemory;
use super::program::{Home, Program, TILE_STEP, Task};
use super::ready::Ready;
use crate::kernels::list_gradients::FoldSpace;
use crate::kernels::{Aligned, Isa, PackedWeights, Scratch};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Kernel, Operand, Place, Plan, Stage, View};
use autobatch_ir::types::Type;
use std::ops::Range;
use std::sync::Arc;

/// What all steps of a play share.
#[derive(Clone, Copy)]
pub(super) struct PlayContext<'a> {
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
}

/// The memory of one thread.
#[derive(Default)]
pub(super) struct TileMemory {
    tile: Aligned,
    space: Space,
    /// What was played when, if that is counted.
    pub(super) spans: Vec<Span>,
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

// SAFETY: a strip is read and written only while its tile is played, by the thread that plays it.
unsafe impl Send for Strip {}

impl<'a> PlayContext<'a> {
    /// What the tiles of a step share.
    pub(super) fn step(&self, number: usize) -> StepContext<'a> {
        let Self { isa, plan, ready, params, fields, bound } = *self;
        let step = &plan.steps[number];
        StepContext {
            isa,
            noise: bound.noise,
            kernel: plan.kernel(step),
            program: ready.program(number),
            operands: plan.operands(step),
            places: plan.places(step),
            tables: &plan.tables,
            fields,
            words: bound.words,
            floats: bound.floats,
            params: &params[ready.first_param(number)..],
            weights: ready.weights(number),
        }
    }
}

impl StepContext<'_> {
    /// Plays the given lanes.
    ///
    /// # Safety
    /// The context is that of a step of a verified plan, its fields have the rows that the plan
    /// declares, its bindings cover what the plan binds, and no other thread plays the same lanes or
    /// a step of another wave.
    pub(super) unsafe fn play(&self, lanes: Range<usize>, memory: &mut TileMemory) {
        let rows = self.program.tile_rows;
        // Every tile needs the same memory; a failed allocation aborts like any small one.
        memory
            .tile
            .fit(self.program.row_floats * rows)
            .expect("a tile is at most one MiB, or a few rows");
        // As few tiles as can be, nearly equal: each goes through the weights once.
        let tiles = lanes.len().div_ceil(rows).max(1);
        let height = lanes.len().div_ceil(tiles).max(1).next_multiple_of(TILE_STEP);
        for start in lanes.clone().step_by(height) {
            let tile = Tile {
                step: self,
                lanes: start..lanes.end.min(start + height),
                base: memory.tile.floats_mut().as_mut_ptr(),
            };
            // SAFETY: the tile's lanes are some of those that the caller vouches for.
            unsafe { tile.play(&mut memory.space) };
        }
    }
}

pub(super) struct Tile<'a> {
    pub(super) step: &'a StepContext<'a>,
    pub(super) lanes: Range<usize>,
    pub(super) base: *mut f32,
}

// Every unsafe function of this type needs what `StepContext::play` needs: then rows named by
// operands and places exist, results of distinct lanes are distinct, and what is read was written.
#[allow(clippy::missing_safety_doc, reason = "said once, above")]
impl Tile<'_> {
    unsafe fn play(&self, space: &mut Space) {
        // SAFETY: as for this function, for all calls below.
        unsafe {
            self.gather();
            for task in &self.step.program.tasks {
                match task {
                    Task::Prod { dst, rows, init, chains } => {
                        self.prod(*dst, *rows as usize, *init, chains, &mut space.scratch)
                    }
                    Task::Map(stage) => self.map(stage),
                    Task::Other(number) => self.other(&self.step.kernel.stages[*number], space),
                }
            }
            self.write_results();
        }
    }

    pub(super) fn at(&self, floats: usize) -> *mut f32 {
        self.base.wrapping_add(floats * self.step.program.tile_rows)
    }

    /// Copies rows that come through a table next to each other, where stages want them so.
    unsafe fn gather(&self) {
        for (port, at) in self.step.program.gathers.iter().enumerate() {
            let Some(at) = at else { continue };
            let width = self.step.program.widths[port];
            let to = self.at(*at);
            let (from, stride, table) = match self.step.operands[port] {
                Operand::Table { field, at } => {
                    let field = self.step.fields[field.index()];
                    (field.base.cast_const(), field.width, at)
                }
                Operand::WordTable { at } => (self.step.words.as_ptr().cast(), 1, at),
                Operand::FloatTable { at } => (self.step.floats.as_ptr(), 1, at),
                _ => continue,
            };
            let table = &self.step.tables[table as usize..][self.lanes.clone()];
            for (row, &number) in table.iter().enumerate() {
                let from = from.wrapping_add(number as usize * stride);
                // SAFETY: as for this function; the tile has room for its rows.
                unsafe { std::ptr::copy_nonoverlapping(from, to.add(row * width), width) };
            }
        }
    }

    fn is_tabled(&self, port: usize) -> bool {
        matches!(
            self.step.operands[port],
            Operand::Table { .. } | Operand::WordTable { .. } | Operand::FloatTable { .. }
        )
    }

    /// Where a lane's operand begins.
    unsafe fn operand_row(&self, port: usize, lane: usize) -> *const f32 {
        let step = self.step;
        let table = |at: u32| step.tables[at as usize + lane] as usize;
        let steady = |start: u32, stride: u32| start as usize + stride as usize * lane;
        match step.operands[port] {
            Operand::Rows { field, start, stride } => self.field_row(field.index(), steady(start, stride)),
            Operand::Table { field, at } => self.field_row(field.index(), table(at)),
            Operand::Words { start, stride } => {
                step.words.as_ptr().wrapping_add(steady(start, stride)).cast()
            }
            Operand::WordTable { at } => step.words.as_ptr().wrapping_add(table(at)).cast(),
            Operand::Floats { start, stride } => step.floats.as_ptr().wrapping_add(steady(start, stride)),
            Operand::FloatTable { at } => step.floats.as_ptr().wrapping_add(table(at)),
            Operand::Segments { .. } => {
                unreachable!("lists are read by folds only (plan rule on operand kinds)")
            }
        }
    }

    pub(super) fn field_row(&self, field: usize, row: usize) -> *const f32 {
        let field = self.step.fields[field];
        field.base.wrapping_add(row * field.width)
    }

    /// The rows of a view for this tile.
    pub(super) unsafe fn strip(&self, view: View) -> Strip {
        let step = self.step;
        let offset = view.start as usize;
        let width = || step.program.widths[view.reg as usize];
        match step.program.homes[view.reg as usize] {
            Home::Port(port) => {
                let port = port as usize;
                if self.is_tabled(port) {
                    let at = step.program.gathers[port].expect("ports that stages read by rows are gathered");
                    return Strip { base: self.at(at).wrapping_add(offset), stride: width() };
                }
                let stride = match step.operands[port] {
                    Operand::Rows { stride, .. } => stride as usize * width(),
                    Operand::Words { stride, .. } | Operand::Floats { stride, .. } => stride as usize,
                    _ => 0,
                };
                // SAFETY: as for this function.
                let base = unsafe { self.operand_row(port, self.lanes.start) };
                Strip { base: base.wrapping_add(offset).cast_mut(), stride }
            }
            Home::Param(port) => {
                let base = step.params[port as usize].as_ptr().wrapping_add(offset);
                Strip { base: base.cast_mut(), stride: 0 }
            }
            Home::Const(at) => {
                let base = step.program.constants.as_ptr().wrapping_add(at + offset);
                Strip { base: base.cast_mut(), stride: 0 }
            }
            Home::Tile(at) => Strip { base: self.at(at).wrapping_add(offset), stride: width() },
            Home::Result(result) => self.result_strip(result as usize, offset),
            Home::Edges(_) => unreachable!("edges are read by nobody (plan rule on gradients of folds)"),
        }
    }

    /// The rows of a result that is a home.
    fn result_strip(&self, result: usize, offset: usize) -> Strip {
        let first = self.result_row(result, self.lanes.start).wrapping_add(offset);
        Strip { base: first, stride: self.step.fields[self.step.places[result].field().index()].width }
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

    /// Copies results that are no homes: ports, constants, parameters, parts of registers.
    unsafe fn write_results(&self) {
        for (number, &view) in self.step.kernel.results.iter().enumerate() {
            let home = self.step.program.homes[view.reg as usize];
            if home == Home::Result(number as u32) || home == Home::Edges(number as u32) {
                continue;
            }
            // SAFETY: as for this function.
            let from = unsafe { self.strip(view) };
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

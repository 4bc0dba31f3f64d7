//! Steps: where the registers of a kernel live, and its units one after the other.
//!
//! A port lives where its operand is, so every stage reads operands through the row table itself and
//! nothing is gathered before. A register that is a result, whole, lives in the result's rows; all other
//! temporaries that reach memory live in scratch rows, one matrix a register, which the next wave uses
//! again. Results that live elsewhere (a port, a constant, part of a register) are moved at the end, in one
//! more dispatch.

use super::layout::Want;
use super::map::Generated;
use super::record::{Record, Spot, TABLED};
use super::units::{Unit, reads, writes};
use super::{Build, MOST_THREADS, fold, map, matrix, product, row};
use crate::error::GpuError;
use crate::module::Program;
use autobatch_ir::plan::{Kernel, Operand, Place, RegKind, Stage, Step, View};
use autobatch_shaders::{LOOKUP, MOVE};

/// Where a register lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    /// Where the operand is.
    Port,
    /// In a run of words that all lanes share.
    Shared(u32),
    /// In the rows of a result.
    Result(u32),
    /// In scratch rows, behind so many words a lane.
    Scratch(u64),
    /// Among the edges of a result; of none, if nobody wants them.
    Edges(Option<u32>),
}

/// A step's kernel on a stretch of its lanes.
pub(super) struct Lanes<'b, 'a> {
    pub(super) build: &'b mut Build<'a>,
    pub(super) step: &'a Step,
    pub(super) kernel: &'a Kernel,
    homes: Vec<Home>,
    /// The first lane, and how many.
    pub(super) first: u32,
    pub(super) count: u32,
    /// Where the scratch words of these lanes begin.
    region: u64,
    /// Per register the level at which all that was written of it can be read.
    ready: Vec<u32>,
    /// The level of what is being added.
    pub(super) level: u32,
}

/// Adds the units of a step to the wave.
pub(super) fn lower<'a>(build: &mut Build<'a>, step: &'a Step) -> Result<(), GpuError> {
    let kernel = build.plan.kernel(step);
    let units = build.units(step.kernel);
    let (homes, each) = homes(build, step, kernel, &units);
    let widest = kernel.regs.iter().map(|reg| reg.ty.shape.elements() as u64).max().unwrap_or(1).max(1);
    // Whole steps, unless the scratch rows or the threads of a dispatch would be too many.
    let by_scratch = build.scratch_budget.checked_div(each).unwrap_or(u64::MAX);
    let room = matrix::room(build, kernel, &units);
    let room_budget = build.matrix.budget(build.scratch_budget);
    let by_room = room.lanes(room_budget);
    let most = by_scratch.min(by_room).min(MOST_THREADS / widest).clamp(1, u64::from(u32::MAX)) as u32;
    let mut first = 0;
    while first < step.rows {
        let count = most.min(step.rows - first);
        let words = each * u64::from(count);
        // Lanes wait for nothing of the wave, so it may be played in pieces.
        let full = build.wave.scratch + words > build.scratch_budget
            || room.of(count).with(build.wave.matrix).is_more_than(room_budget);
        if !build.wave.is_empty() && full {
            build.end_wave()?;
        }
        let region = build.wave.scratch;
        build.wave.scratch += words;
        let ready = vec![0; kernel.regs.len()];
        let mut lanes =
            Lanes { build, step, kernel, homes: homes.clone(), first, count, region, ready, level: 0 };
        for unit in units.iter() {
            lanes.unit(unit)?;
        }
        lanes.moved_results()?;
        first += count;
    }
    Ok(())
}

/// Where registers live, and the scratch words of a lane.
fn homes(build: &Build<'_>, step: &Step, kernel: &Kernel, units: &[Unit]) -> (Vec<Home>, u64) {
    let mut scratch = 0u64;
    let mut homes = Vec::with_capacity(kernel.regs.len());
    let in_memory = in_memory(kernel, units);
    for (number, reg) in kernel.regs.iter().enumerate() {
        let result = || {
            let whole = kernel.whole(number as u32);
            kernel.results.iter().position(|&view| view == whole).map(|result| result as u32)
        };
        homes.push(match reg.kind {
            RegKind::Port => Home::Port,
            RegKind::Const(bits) => Home::Shared(build.layout.run(Want::Const(bits))),
            RegKind::Param(param) => {
                let store = build.plan.stores(step)[param as usize];
                Home::Shared(build.layout.run(Want::Store(store)))
            }
            RegKind::Edges => {
                let result = kernel.results.iter().position(|view| view.reg == number as u32);
                Home::Edges(result.map(|result| result as u32))
            }
            RegKind::Temp => match result() {
                Some(result) => Home::Result(result),
                None => {
                    let home = Home::Scratch(scratch);
                    scratch += if in_memory[number] { reg.ty.shape.elements() as u64 } else { 0 };
                    home
                }
            },
        });
    }
    (homes, scratch)
}

/// Whether a result has to be moved to where it is wanted: it is a port, a constant, part of a register, or there already
/// under another number.
pub(super) fn has_moves(kernel: &Kernel) -> bool {
    kernel.results.iter().enumerate().any(|(number, &view)| match kernel.regs[view.reg as usize].kind {
        RegKind::Edges => false,
        RegKind::Temp => view != kernel.whole(view.reg) || kernel.results[..number].contains(&view),
        RegKind::Port | RegKind::Const(_) | RegKind::Param(_) => true,
    })
}

/// Per register whether a unit writes any of it to memory.
fn in_memory(kernel: &Kernel, units: &[Unit]) -> Vec<bool> {
    let mut written = vec![false; kernel.regs.len()];
    let mut note = |stage: usize| {
        for view in writes(&kernel.stages[stage]) {
            written[view.reg as usize] = true;
        }
    };
    for unit in units {
        match unit {
            Unit::Stage(stage) => note(*stage),
            Unit::Fused { products, .. } | Unit::OnMatrix { products, .. } => {
                unit.tail().into_iter().for_each(&mut note);
                products.iter().filter(|product| product.kept).for_each(|product| note(product.stage));
            }
        }
    }
    written
}

impl Lanes<'_, '_> {
    /// Where the words of a view are, lane by lane.
    pub(super) fn spot(&self, view: View) -> Spot {
        let at = |[base, row, stride, width]: Spot| [base.wrapping_add(view.start), row, stride, width];
        match self.homes[view.reg as usize] {
            Home::Port => at(self.operand(self.build.plan.operands(self.step)[view.reg as usize])),
            Home::Shared(base) => at([base, 0, 0, 0]),
            Home::Result(result) => at(self.place(result)),
            Home::Scratch(before) => {
                let base =
                    u64::from(self.build.layout.scratch()) + self.region + before * u64::from(self.count);
                let width = self.kernel.whole(view.reg).width;
                at([base as u32, 0u32.wrapping_sub(self.first), 1, width])
            }
            // Nothing but results reads edges (rule P11), and those go through `edges`.
            Home::Edges(_) => [0; 4],
        }
    }

    pub(super) fn operand(&self, operand: Operand) -> Spot {
        self.build.operand(operand)
    }

    /// Where a result goes.
    fn place(&self, result: u32) -> Spot {
        match self.build.plan.places(self.step)[result as usize] {
            Place::Rows { field, start } => {
                let (base, width) = self.build.layout.field(field);
                [base, start, 1, width]
            }
            Place::Table { field, at } => {
                let (base, width) = self.build.layout.field(field);
                [base, at, TABLED, width]
            }
            Place::Edges { .. } => [0; 4],
        }
    }

    /// Where the edges of a register go: the first word, and where the tables of offsets begin.
    pub(super) fn edges(&self, reg: Option<u32>) -> Option<(u32, u32)> {
        let Home::Edges(Some(result)) = self.homes[reg? as usize] else { return None };
        match self.build.plan.places(self.step)[result as usize] {
            Place::Edges { field, start, offsets } => {
                let (base, width) = self.build.layout.field(field);
                Some((base + start * width, offsets))
            }
            Place::Rows { .. } | Place::Table { .. } => None,
        }
    }

    /// Scratch words behind those of the registers.
    pub(super) fn more_scratch(&mut self, words: u64) -> Result<u32, GpuError> {
        let at = u64::from(self.build.layout.scratch()) + self.build.wave.scratch;
        self.build.wave.scratch += words;
        u32::try_from(at + words).map(|_| at as u32).map_err(|_| GpuError::TooLarge {
            what: "the rows of the plan",
            needed: (at + words) * 4,
            limit: u64::from(u32::MAX) * 4,
        })
    }

    /// The number of a generated program, which is made unless the plan has it.
    pub(super) fn generated(&mut self, key: Generated, made: impl FnOnce(&Self) -> Program) -> u32 {
        if let Some(&number) = self.build.generated.get(&key) {
            debug_assert!(
                self.build.programs[number as usize] == made(self),
                "what it follows from is the same"
            );
            return number;
        }
        let program = made(self);
        let number = self.build.number(program);
        self.build.generated.insert(key, number);
        number
    }

    /// A segment with so many threads a lane.
    pub(super) fn segment(&mut self, program: Program, record: &Record, each: u32) -> Result<(), GpuError> {
        let threads = u64::from(self.count) * u64::from(each);
        self.build.segment(program, record, self.level, (self.first, threads), 1)
    }

    /// Adds a unit, at the level at which all that it reads is there.
    fn unit(&mut self, unit: &Unit) -> Result<(), GpuError> {
        let kernel = self.kernel;
        let stages = unit.stages(kernel);
        let read = stages.iter().flat_map(|stage| reads(stage));
        self.level = read.map(|view| self.ready[view.reg as usize]).max().unwrap_or(0);
        let tail = match unit.tail().map(|tail| &kernel.stages[tail]) {
            Some(Stage::Map { code, .. }) => code.as_slice(),
            // Tails are maps.
            _ => &[],
        };
        match unit {
            Unit::Stage(number) => self.stage(*number, stages[0])?,
            Unit::Fused { products, .. } => product::lower_fused(self, products, tail)?,
            Unit::OnMatrix { products, .. } => matrix::lower(self, products, tail)?,
        }
        for view in stages.iter().flat_map(|stage| writes(stage)) {
            let ready = &mut self.ready[view.reg as usize];
            *ready = (*ready).max(self.level + 1);
        }
        Ok(())
    }

    fn stage(&mut self, number: usize, stage: &Stage) -> Result<(), GpuError> {
        match stage {
            Stage::Prod { .. } => product::lower(self, number),
            Stage::Map { width, code } => map::lower(self, number, *width, code),
            Stage::Row { op, sources, dsts } => row::lower(self, *op, sources, dsts),
            Stage::Seg { .. } => fold::lower(self, stage),
            Stage::SegGrad { .. } => fold::lower_gradient(self, stage),
            Stage::Lookup { param, index, dst } => {
                let store = self.build.plan.stores(self.step)[*param as usize];
                let stored = self.build.layout.store(store);
                let last = self.kernel.params[*param as usize].shape.elements() as u32 / dst.width - 1;
                let mut record = Record::new(&[dst.width, stored.at, last]);
                record.all(&self.spot(*index)).all(&self.spot(*dst)).push(stored.kind);
                self.segment(Program::Fixed(LOOKUP), &record, dst.width)
            }
        }
    }

    /// Results that live elsewhere go where they are wanted, all in one segment.
    fn moved_results(&mut self) -> Result<(), GpuError> {
        let mut moves = Vec::new();
        self.level = 0;
        for (number, &view) in self.kernel.results.iter().enumerate() {
            let home = self.homes[view.reg as usize];
            if home == Home::Result(number as u32) || matches!(home, Home::Edges(_)) {
                continue;
            }
            self.level = self.level.max(self.ready[view.reg as usize]);
            moves.push(Move::straight(view.width, self.spot(view), self.place(number as u32)));
        }
        self.moves(&moves)
    }

    /// Moves of words, all in one segment.
    pub(super) fn moves(&mut self, moves: &[Move]) -> Result<(), GpuError> {
        let each = moves.iter().map(|one| one.extents.iter().product::<u32>()).sum();
        let mut record = Record::new(&[each, moves.len() as u32]);
        for one in moves {
            record.push(one.extents.iter().product());
            record.all(&one.extents).all(&one.from_steps).all(&one.to_steps);
            record.push(one.from_offset).push(one.to_offset).all(&one.from).all(&one.to);
        }
        match moves {
            [] => Ok(()),
            _ => self.segment(Program::Fixed(MOVE), &record, each),
        }
    }
}

/// Words that move, element by element of a box of four axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) extents: [u32; 4],
    pub(super) from_steps: [u32; 4],
    pub(super) to_steps: [u32; 4],
    pub(super) from_offset: u32,
    pub(super) to_offset: u32,
    pub(super) from: Spot,
    pub(super) to: Spot,
}

impl Move {
    /// So many words, in order.
    pub(super) fn straight(width: u32, from: Spot, to: Spot) -> Self {
        let (extents, steps) = ([1, 1, 1, width], [0, 0, 0, 1]);
        Self { extents, from_steps: steps, to_steps: steps, from_offset: 0, to_offset: 0, from, to }
    }
}

impl Build<'_> {
    /// Where an operand's words are, lane by lane; of lists, nothing.
    pub(super) fn operand(&self, operand: Operand) -> Spot {
        self.layout.operand(operand)
    }
}

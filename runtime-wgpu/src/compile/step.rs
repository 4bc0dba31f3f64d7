//! Steps: where the registers of a kernel live, and its units one after the other.
//!
//! A port lives where its operand is, so every stage reads operands through the row table itself and
//! nothing is gathered before. A register that is a result, whole, lives in the result's rows; all other
//! temporaries that reach memory live in scratch rows, one matrix a register, which the next wave uses
//! again. Results that live elsewhere (a port, a constant, part of a register) are moved at the end, in one
//! more dispatch; but for parts of rows of tables that nothing else reads: these are looked up where they are wanted.

use super::kernels::{Home, Lowered, Piece};
use super::layout::Want;
use super::map::Cut;
use super::record::{Record, Spot, TABLED};
use super::units::Unit;
use super::{Build, MAX_THREADS, fold, map, matrix, product, row};
use crate::error::GpuError;
use crate::module::Program;
use autobatch_ir::plan::{Kernel, Operand, Place, Stage, Step, View};
use autobatch_shaders::{LOOKUP, MOVE};

/// A step's kernel on a stretch of its lanes.
pub(super) struct Lanes<'b, 'a> {
    pub(super) build: &'b mut Build<'a>,
    pub(super) step: &'a Step,
    pub(super) kernel: &'a Kernel,
    pub(super) lowered: &'b Lowered,
    /// The first lane, and how many.
    pub(super) first: u32,
    pub(super) count: u32,
    /// Where the scratch words of these lanes begin.
    region: u64,
    /// The level of what is being added.
    pub(super) level: u32,
}

/// Adds the units of a step to the wave.
pub(super) fn lower<'a>(build: &mut Build<'a>, step: &'a Step) -> Result<(), GpuError> {
    let kernel = build.plan.kernel(step);
    let lowered = build.lowered(step.kernel);
    // Whole steps, unless the scratch rows or the threads of a dispatch would be too many.
    let by_scratch = build.scratch_budget.checked_div(lowered.scratch).unwrap_or(u64::MAX);
    let room = matrix::room(build, kernel, &lowered);
    let room_budget = build.matrix.budget(build.scratch_budget);
    let by_room = room.lanes(room_budget);
    let most = by_scratch.min(by_room).min(MAX_THREADS / lowered.widest).clamp(1, u64::from(u32::MAX)) as u32;
    let mut first = 0;
    while first < step.rows {
        let count = most.min(step.rows - first);
        let words = lowered.scratch * u64::from(count);
        // Lanes wait for nothing of the wave, so it may be executed in pieces.
        let full = build.wave.scratch + words > build.scratch_budget
            || room.of(count).with(build.wave.matrix).is_more_than(room_budget);
        if !build.wave.is_empty() && full {
            build.end_wave()?;
        }
        let region = build.wave.scratch;
        build.wave.scratch += words;
        let mut lanes = Lanes { build, step, kernel, lowered: &lowered, first, count, region, level: 0 };
        for piece in &lowered.pieces {
            lanes.piece(piece)?;
        }
        lanes.moved_results()?;
        first += count;
    }
    Ok(())
}

impl Lanes<'_, '_> {
    /// Where the words of a view are, lane by lane.
    pub(super) fn spot(&self, view: View) -> Spot {
        let at = |[base, row, stride, width]: Spot| [base.wrapping_add(view.start), row, stride, width];
        match self.lowered.homes[view.reg as usize] {
            Home::Port => at(self.operand(self.build.plan.operands(self.step)[view.reg as usize])),
            Home::Const(bits) => at([self.build.layout.run(Want::Const(bits)), 0, 0, 0]),
            Home::Param(param) => {
                let store = self.build.plan.stores(self.step)[param as usize];
                at([self.build.layout.run(Want::Store(store)), 0, 0, 0])
            }
            Home::Result(result) => at(self.place(result)),
            Home::Scratch(before) => {
                let base =
                    u64::from(self.build.layout.scratch()) + self.region + before * u64::from(self.count);
                let width = self.kernel.whole(view.reg).width;
                at([base as u32, 0u32.wrapping_sub(self.first), 1, width])
            }
            // Nothing but results reads edges (rule P11) and what is nowhere: those go through `edges` and `place`.
            Home::Edges(_) | Home::Nowhere => [0; 4],
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
        let Home::Edges(Some(result)) = self.lowered.homes[reg? as usize] else { return None };
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

    /// The number of the program of a piece, cut so; its body is written unless it is known.
    pub(super) fn generated(&mut self, piece: &Piece, cut: Cut, made: impl FnOnce() -> Program) -> u32 {
        let build = &mut *self.build;
        let last = &mut build.met[self.step.kernel.index()].last[piece.number as usize];
        if let Some((known, number)) = *last
            && known == cut
        {
            return number;
        }
        let program = build.known.generated((self.lowered.number, piece.number, cut), made);
        let number = build.number_of(program);
        build.met[self.step.kernel.index()].last[piece.number as usize] = Some((cut, number));
        number
    }

    /// A segment with so many threads a lane.
    pub(super) fn segment(&mut self, program: Program, record: &Record, each: u32) -> Result<(), GpuError> {
        let threads = u64::from(self.count) * u64::from(each);
        self.build.segment(program, record, self.level, (self.first, threads), 1)
    }

    /// Adds a unit, at the level at which all that it reads is there.
    fn piece(&mut self, piece: &Piece) -> Result<(), GpuError> {
        self.level = piece.level;
        match &piece.unit {
            Unit::Stage(number) => self.stage(piece, &self.kernel.stages[*number]),
            Unit::Fused { .. } => product::lower(self, piece),
            Unit::OnMatrix { .. } => matrix::lower(self, piece),
        }
    }

    fn stage(&mut self, piece: &Piece, stage: &Stage) -> Result<(), GpuError> {
        match stage {
            Stage::Prod { .. } => product::lower(self, piece),
            Stage::Map { width, code } => map::lower(self, piece, *width, code),
            Stage::Row { op, sources, dsts } => row::lower(self, *op, sources, dsts),
            Stage::Seg { .. } => fold::lower(self, stage),
            Stage::SegGrad { .. } => fold::lower_gradient(self, stage),
            Stage::Lookup { param, index, dst } => {
                let store = self.build.plan.stores(self.step)[*param as usize];
                let stored = self.build.layout.store(store);
                let last = self.kernel.params[*param as usize].shape.elements() as u32 / dst.width - 1;
                let look = |lanes: &mut Self, start: u32, width: u32, to: Spot| {
                    let mut record = Record::new(&[width, stored.at + start, last]);
                    record.all(&lanes.spot(*index)).all(&to).push(stored.kind).push(dst.width);
                    lanes.segment(Program::Fixed(LOOKUP), &record, width)
                };
                let Some(results) = &piece.results else {
                    let to = self.spot(*dst);
                    return look(self, 0, dst.width, to);
                };
                for &result in results {
                    let View { start, width, .. } = self.kernel.results[result as usize];
                    let to = self.place(result);
                    look(self, start, width, to)?;
                }
                Ok(())
            }
        }
    }

    /// Results that live elsewhere go where they are wanted, all in one segment.
    fn moved_results(&mut self) -> Result<(), GpuError> {
        self.level = self.lowered.moved_level;
        let moved = |&number: &u32| {
            let view = self.kernel.results[number as usize];
            Move::straight(view.width, self.spot(view), self.place(number))
        };
        let moves: Vec<Move> = self.lowered.moved.iter().map(moved).collect();
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

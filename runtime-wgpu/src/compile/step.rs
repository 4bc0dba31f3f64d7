//! Steps: where the registers of a kernel live, and its stages one after the other.
//!
//! A port lives where its operand is, so every stage reads operands through the row table itself and
//! nothing is gathered before. A register that is a result, whole, lives in the result's rows; all other
//! temporaries live in scratch rows, one matrix a register, which the next step uses again. Results that
//! live elsewhere (a port, a constant, part of a register) are moved at the end, in one more dispatch.

use super::layout::Want;
use super::record::{Record, Spot, TABLED};
use super::{Build, MOST_THREADS, fold, map, row};
use crate::error::GpuError;
use crate::module::Program;
use autobatch_ir::plan::{Kernel, Operand, Part, Place, ProdInit, RegKind, Stage, Step, View};
use autobatch_shaders::{LOOKUP, MOVE, PROD_FEW, PROD_MANY};

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
    /// Scratch words that registers take, all lanes together.
    kept: u64,
}

/// Adds the dispatches of a step.
pub(super) fn lower<'a>(build: &mut Build<'a>, step: &'a Step) -> Result<(), GpuError> {
    let kernel = build.plan.kernel(step);
    let (homes, each) = homes(build, step, kernel);
    let widest = kernel.regs.iter().map(|reg| reg.ty.shape.elements() as u64).max().unwrap_or(1).max(1);
    // Whole steps, unless the scratch rows or the threads of a dispatch would be too many.
    let by_scratch = build.scratch_budget.checked_div(each).unwrap_or(u64::MAX);
    let most = by_scratch.min(MOST_THREADS / widest).clamp(1, u64::from(u32::MAX)) as u32;
    let mut first = 0;
    while first < step.rows {
        let count = most.min(step.rows - first);
        let kept = each * u64::from(count);
        let mut lanes = Lanes { build, step, kernel, homes: homes.clone(), first, count, kept };
        lanes.build.scratch = lanes.build.scratch.max(kept);
        for stage in &kernel.stages {
            lanes.stage(stage)?;
        }
        lanes.moved_results()?;
        first += count;
    }
    Ok(())
}

/// Where registers live, and the scratch words of a lane.
fn homes(build: &Build<'_>, step: &Step, kernel: &Kernel) -> (Vec<Home>, u64) {
    let mut scratch = 0u64;
    let mut homes = Vec::with_capacity(kernel.regs.len());
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
                    scratch += reg.ty.shape.elements() as u64;
                    home
                }
            },
        });
    }
    (homes, scratch)
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
                let base = u64::from(self.build.layout.scratch()) + before * u64::from(self.count);
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
        let at = u64::from(self.build.layout.scratch()) + self.kept;
        self.build.scratch = self.build.scratch.max(self.kept + words);
        u32::try_from(at + words).map(|_| at as u32).map_err(|_| GpuError::TooLarge {
            what: "the rows of the plan",
            needed: (at + words) * 4,
            limit: u64::from(u32::MAX) * 4,
        })
    }

    /// A dispatch with so many threads a lane.
    pub(super) fn dispatch(&mut self, program: Program, record: &Record, each: u32) -> Result<(), GpuError> {
        let threads = u64::from(self.count) * u64::from(each);
        self.build.dispatch(program, record, (self.first, threads), 1)
    }

    fn stage(&mut self, stage: &Stage) -> Result<(), GpuError> {
        match stage {
            Stage::Prod { dst, rows, init, parts } => self.product(*dst, *rows, *init, parts),
            Stage::Map { width, code } => map::lower(self, *width, code),
            Stage::Row { op, sources, dsts } => row::lower(self, *op, sources, dsts),
            Stage::Seg { .. } => fold::lower(self, stage),
            Stage::SegGrad { .. } => fold::lower_gradient(self, stage),
            Stage::Lookup { param, index, dst } => {
                let store = self.build.plan.stores(self.step)[*param as usize];
                let last = self.kernel.params[*param as usize].shape.elements() as u32 / dst.width - 1;
                let mut record = Record::new(&[dst.width, self.build.layout.store(store), last]);
                record.all(&self.spot(*index)).all(&self.spot(*dst));
                self.dispatch(Program::Fixed(LOOKUP), &record, dst.width)
            }
        }
    }

    fn product(&mut self, dst: View, rows: u32, init: ProdInit, parts: &[Part]) -> Result<(), GpuError> {
        let columns = dst.width / rows;
        let base = |param: u32| self.build.layout.store(self.build.plan.stores(self.step)[param as usize]);
        let mut record = Record::new(&[dst.width, columns, parts.len() as u32]);
        match init {
            ProdInit::Zero => record.all(&[0; 5]),
            ProdInit::Bias(param) => record.all(&[1, base(param) + parts[0].col, 0, 0, 0]),
            ProdInit::View(view) => record.push(2).all(&self.spot(view)),
        };
        record.all(&self.spot(dst));
        for part in parts {
            let stored = self.kernel.params[part.param as usize].shape.width() as u32;
            let (from, step, next) = match part.transposed {
                true => (part.col * stored + part.row, 1, stored),
                false => (part.row * stored + part.col, stored, 1),
            };
            let width = part.source.width / rows;
            record.all(&self.spot(part.source)).all(&[width, base(part.param) + from, step, next]);
        }
        let of_all = u64::from(self.count) * u64::from(rows);
        if of_all < FEW {
            self.dispatch(Program::Fixed(PROD_FEW), &record, dst.width)?;
        } else {
            let program = Program::Fixed(PROD_MANY);
            self.build.dispatch(program, &record, (self.first, of_all), u64::from(columns))?;
        }
        let depth: u64 = parts.iter().map(|part| u64::from(part.source.width / rows)).sum();
        self.build.last_is_work(of_all * u64::from(columns) * depth);
        Ok(())
    }

    /// Results that live elsewhere go where they are wanted, all in one dispatch.
    fn moved_results(&mut self) -> Result<(), GpuError> {
        let mut moves = Vec::new();
        for (number, &view) in self.kernel.results.iter().enumerate() {
            let home = self.homes[view.reg as usize];
            if home == Home::Result(number as u32) || matches!(home, Home::Edges(_)) {
                continue;
            }
            moves.push(Move::straight(view.width, self.spot(view), self.place(number as u32)));
        }
        self.moves(&moves)
    }

    /// Moves of words, all in one dispatch.
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
            _ => self.dispatch(Program::Fixed(MOVE), &record, each),
        }
    }
}

/// Rows from which on a product is played in tiles.
const FEW: u64 = 16;

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

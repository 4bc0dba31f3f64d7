//! Steps: the locations of registers in memory, and the segments of the units.
//!
//! A port is stored where its operand is, so stages read operands through the row table. A register that is a whole
//! result is stored in the rows of the result. Other temporaries that reach memory are stored in scratch rows, which
//! the next wave reuses. One more dispatch moves the results that are stored elsewhere. If only results read a row of a
//! table, each result looks its part up.

use super::kernels::{Lowered, LoweredUnit, RegisterLocation};
use super::layout::WordSource;
use super::map::Variant;
use super::record::{GATHERED, Record, RowAddress, SHARED};
use super::units::Unit;
use super::wave::Threads;
use super::{Build, MAX_THREADS, fold, map, product, row};
use crate::error::GpuError;
use crate::module::Program;
use autobatch_ir::numeric::label_loss::STRIPE;
use autobatch_ir::plan::{
    Address, GroupRange, Kernel, ParamPort, Place, RegId, Stage, Step, StepOperand, View,
};
use autobatch_shaders::{LABEL_LOSS, LOOKUP, MOVE};

/// The stripe of labels in `label_loss.wgsl`.
const _: () = assert!(STRIPE == 256);

/// A step's kernel on a range of its lanes.
pub(super) struct Lanes<'b, 'a> {
    pub(super) build: &'b mut Build<'a>,
    pub(super) step: &'a Step,
    pub(super) kernel: &'a Kernel,
    pub(super) lowered: &'b Lowered,
    pub(super) first: u32,
    pub(super) count: u32,
    /// The first scratch word of these lanes.
    scratch: u64,
    /// The level of the unit that is being added.
    pub(super) level: u32,
    /// The lists in groups that are written, with their position.
    shared: Vec<(Address, u32)>,
}

/// Adds the units of a step to the wave.
pub(super) fn lower<'a>(build: &mut Build<'a>, step: &'a Step) -> Result<(), GpuError> {
    let kernel = build.plan.kernel(step);
    let lowered = build.lowered(step.kernel);
    // A step is split by lanes if it needs too many scratch words, or too many threads for a dispatch.
    let by_scratch = build.scratch_budget.checked_div(lowered.scratch).unwrap_or(u64::MAX);
    let max = by_scratch.min(MAX_THREADS / lowered.widest).clamp(1, u64::from(u32::MAX)) as u32;
    let mut first = 0;
    while first < step.rows {
        let count = max.min(step.rows - first);
        let words = lowered.scratch * u64::from(count);
        // Lanes do not depend on the wave, so the wave can be split.
        let full = build.wave.scratch + words > build.scratch_budget;
        if !build.wave.is_empty() && full {
            build.end_wave()?;
        }
        let scratch = build.wave.scratch;
        build.wave.scratch += words;
        let shared = Vec::new();
        let mut lanes =
            Lanes { build, step, kernel, lowered: &lowered, first, count, scratch, level: 0, shared };
        for unit in &lowered.units {
            lanes.unit(unit)?;
        }
        lanes.move_results()?;
        first += count;
    }
    Ok(())
}

impl Lanes<'_, '_> {
    pub(super) fn address(&self, view: View) -> RowAddress {
        let at = |[base, row, stride, width]: RowAddress| [base.wrapping_add(view.start), row, stride, width];
        let layout = &self.build.layout;
        match self.lowered.locations[view.reg.index()] {
            RegisterLocation::Port => {
                at(layout.operand(self.build.plan.operands(self.step)[view.reg.index()]))
            }
            RegisterLocation::Const(bits) => at([layout.run(WordSource::Const(bits)), 0, 0, 0]),
            RegisterLocation::Param(param) => {
                let store = self.build.plan.stores(self.step)[param.index()];
                at([layout.run(WordSource::Store(store)), 0, 0, 0])
            }
            RegisterLocation::Result(result) => at(self.place(result)),
            RegisterLocation::Scratch(before) => {
                let base = u64::from(layout.scratch()) + self.scratch + before * u64::from(self.count);
                let width = self.kernel.whole(view.reg).width;
                at([base as u32, 0u32.wrapping_sub(self.first), 1, width])
            }
            // Only results read these (rule P11), through `edges` and `place`.
            RegisterLocation::Edges(_) | RegisterLocation::LookupOnly => [0; 4],
        }
    }

    fn place(&self, result: u32) -> RowAddress {
        let layout = &self.build.layout;
        match self.build.plan.places(self.step)[result as usize] {
            Place::Rows { field, start } => {
                let (base, width) = layout.field(field);
                [base, start, 1, width]
            }
            Place::Table { field, at } => {
                let (base, width) = layout.field(field);
                [base, at, GATHERED, width]
            }
            Place::Edges { .. } => [0; 4],
        }
    }

    /// The first word of the edges of a register, and the position of their offsets in the tables.
    pub(super) fn edges(&self, reg: Option<RegId>) -> Option<(u32, u32)> {
        let RegisterLocation::Edges(Some(result)) = self.lowered.locations[reg?.index()] else {
            return None;
        };
        match self.build.plan.places(self.step)[result as usize] {
            Place::Edges { field, start, offsets } => {
                let (base, width) = self.build.layout.field(field);
                Some((base + start * width, offsets))
            }
            Place::Rows { .. } | Place::Table { .. } => None,
        }
    }

    pub(super) fn operand(&self, port: RegId) -> StepOperand {
        self.build.plan.operands(self.step)[port.index()]
    }

    /// The first, third and fourth word of the lists of a port, as `lists.wgsl` reads them.
    pub(super) fn lists(&mut self, port: RegId) -> Result<[u32; 3], GpuError> {
        let address = self.operand(port).address;
        if let Some((offsets, items)) = address.lists() {
            return Ok([GATHERED, offsets, items]);
        }
        if let Some((_, at)) = self.shared.iter().find(|(known, _)| *known == address) {
            return Ok([SHARED, *at, 0]);
        }
        let (mut words, mut before) = (Vec::with_capacity(4 * self.count as usize), 0u32);
        for (range, len) in self.parts(address) {
            let (first, in_tables) = match range {
                GroupRange::Run { start } => (start, 0),
                GroupRange::Table { at } => (at, 1),
            };
            words.extend([first, len, before, in_tables]);
            before = before.wrapping_add(len);
        }
        // A lane finds its words by its number in the step.
        let at = self.build.add_words(&words)?.wrapping_sub(self.first.wrapping_mul(4));
        self.shared.push((address, at));
        Ok([SHARED, at, 0])
    }

    /// The total length of the lists of a port.
    pub(super) fn list_items(&self, port: RegId) -> u64 {
        let address = self.operand(port).address;
        match address.lists() {
            Some((offsets, _)) => {
                let at = |lane: u32| u64::from(self.build.plan.tables[(offsets + lane) as usize]);
                at(self.first + self.count) - at(self.first)
            }
            None => self.parts(address).map(|(_, len)| u64::from(len)).sum(),
        }
    }

    /// The numbers that each lane reads of the range of its group, and how many.
    fn parts(&self, address: Address) -> impl Iterator<Item = (GroupRange, u32)> {
        let lanes = self.first..self.first + self.count;
        address.groups(&self.build.plan.groups).flat_map(move |(begin, group)| {
            let own = begin.max(lanes.start)..group.end.min(lanes.end);
            own.map(move |lane| group.part(begin, lane))
        })
    }

    /// Reserves scratch words behind those of the registers. Returns the first.
    pub(super) fn more_scratch(&mut self, words: u64) -> Result<u32, GpuError> {
        let at = u64::from(self.build.layout.scratch()) + self.build.wave.scratch;
        self.build.wave.scratch += words;
        let end = u32::try_from(at + words);
        end.map(|_| at as u32).map_err(|_| GpuError::beyond_addresses("the rows of the plan", at + words))
    }

    /// The number of a unit's program in a variant. `generate` writes its code unless the program is known.
    pub(super) fn generated(
        &mut self,
        unit: &LoweredUnit,
        variant: Option<Variant>,
        generate: impl FnOnce() -> Program,
    ) -> u32 {
        let (kernel, at) = (self.step.kernel.index(), unit.number as usize);
        if let Some((known, number)) = self.build.kernels[kernel].last[at]
            && known == variant
        {
            return number;
        }
        let program = self.build.cache.generated((self.lowered.number, unit.number, variant), generate);
        let number = self.build.number_of(program);
        self.build.kernels[kernel].last[at] = Some((variant, number));
        number
    }

    /// The threads of a segment with `each` threads per lane.
    pub(super) fn threads(&self, each: u32) -> Threads {
        let count = u64::from(self.count) * u64::from(each);
        Threads { first_lane: self.first, count, columns: 1, lanes: self.count }
    }

    /// Adds a segment with `each` threads per lane.
    pub(super) fn segment(&mut self, program: Program, record: &Record, each: u32) -> Result<(), GpuError> {
        let threads = self.threads(each);
        self.build.segment(program, record, self.level, threads)
    }

    fn unit(&mut self, unit: &LoweredUnit) -> Result<(), GpuError> {
        self.level = unit.level;
        let Unit::Stage(number) = unit.unit else { return product::lower(self, unit) };
        let stage = &self.kernel.stages[number];
        self.check_indices(stage)?;
        match stage {
            Stage::Prod { .. } => product::lower(self, unit),
            Stage::Map { width, code } => map::lower(self, unit, *width, code),
            Stage::Row { op, sources, dsts } => row::lower(self, *op, sources, dsts),
            Stage::Seg { .. } => fold::lower(self, stage),
            Stage::SegGrad { .. } => fold::lower_gradient(self, stage),
            Stage::MeanGrad { list, dy, dst } => fold::lower_mean_gradient(self, *list, *dy, *dst),
            Stage::AttendGrad { .. } => fold::lower_attention_gradient(self, stage),
            Stage::AttendPull { .. } => fold::lower_pull(self, stage),
            Stage::Lookup { param, index, dst } => self.lookup(unit, *param, *index, *dst),
            Stage::LabelLoss { param, x, label, dst, log_sum, slope } => {
                self.label_loss(*param, [*x, *label, *dst], [*log_sum, *slope])
            }
        }
    }

    /// Adds the segment of the loss of a label.
    fn label_loss(
        &mut self,
        param: ParamPort,
        [x, label, dst]: [View; 3],
        dsts: [Option<View>; 2],
    ) -> Result<(), GpuError> {
        let stored = self.build.stored(self.step, param);
        let labels = self.kernel.params[param.index()].shape.rows() as u32;
        // A lane finds its words by its number in the step.
        let logits = self.more_scratch(STRIPE as u64 * u64::from(self.count))?;
        let logits = logits.wrapping_sub(self.first.wrapping_mul(STRIPE as u32));
        let mut record = Record::new(&[1, x.width, labels, stored.at, stored.kind, logits]);
        for view in [x, label, dst] {
            record.all(&self.address(view));
        }
        fold::wanted(self, &mut record, dsts);
        self.segment(Program::Fixed(LABEL_LOSS), &record, 1)
    }

    /// Adds a lookup: into its register, or into each result that takes its row.
    fn lookup(
        &mut self,
        unit: &LoweredUnit,
        param: ParamPort,
        index: View,
        dst: View,
    ) -> Result<(), GpuError> {
        let stored = self.build.stored(self.step, param);
        let last = self.kernel.params[param.index()].shape.elements() as u32 / dst.width - 1;
        let look_up = |lanes: &mut Self, start: u32, width: u32, to: RowAddress| {
            let mut record = Record::new(&[width, stored.at + start, last]);
            record.all(&lanes.address(index)).all(&to).push(stored.kind).push(dst.width);
            lanes.segment(Program::Fixed(LOOKUP), &record, width)
        };
        let Some(results) = &unit.results else {
            let to = self.address(dst);
            return look_up(self, 0, dst.width, to);
        };
        for &result in results {
            let View { start, width, .. } = self.kernel.results[result as usize];
            let to = self.place(result);
            look_up(self, start, width, to)?;
        }
        Ok(())
    }

    /// Moves results that are stored elsewhere to their places, in one segment.
    fn move_results(&mut self) -> Result<(), GpuError> {
        self.level = self.lowered.moved_level;
        let moved = |&number: &u32| {
            let view = self.kernel.results[number as usize];
            Move::straight(view.width, self.address(view), self.place(number))
        };
        let moves: Vec<Move> = self.lowered.moved.iter().map(moved).collect();
        self.moves(&moves)
    }

    /// Adds moves of words, in one segment.
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

/// A move of words, element by element of a box with four axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) extents: [u32; 4],
    pub(super) from_steps: [u32; 4],
    pub(super) to_steps: [u32; 4],
    pub(super) from_offset: u32,
    pub(super) to_offset: u32,
    pub(super) from: RowAddress,
    pub(super) to: RowAddress,
}

impl Move {
    /// A move of `width` contiguous words.
    pub(super) fn straight(width: u32, from: RowAddress, to: RowAddress) -> Self {
        let (extents, steps) = ([1, 1, 1, width], [0, 0, 0, 1]);
        Self { extents, from_steps: steps, to_steps: steps, from_offset: 0, to_offset: 0, from, to }
    }
}

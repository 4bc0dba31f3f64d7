//! Products on matrix units: terms are gathered as halves, squares multiplied, and the sums taken by the tail; three
//! dispatches, of which the weights' terms are no part: they are made with the parameters that kernels take whole.
//! Which products are follows from their kernel alone (`worth.rs`) and never from how many rows it has, so that a row's
//! bits do not depend on its batch. Plans for training make none: small gradients vanish among halves, those of values
//! as well as those of parameters.

use super::kernels::{Lowered, Piece};
use super::product::{Product, groups, head, start, text, weight};
use super::record::Record;
use super::step::Lanes;
use super::units::Unit;
use super::{Build, Target};
use crate::error::GpuError;
use crate::module::{Blocks, PADDED, Program, Squares, Sums};
use autobatch_ir::plan::{Kernel, Mode, Plan, Step, StoreKind};
use autobatch_shaders::{TERMS, WEIGHT_TERMS};
use std::collections::{HashMap, HashSet};

/// Words of terms, two halves each, and of sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Of terms.
    pub terms: u64,
    /// Of sums.
    pub sums: u64,
}

impl Room {
    /// Both together.
    pub(super) const fn with(self, other: Self) -> Self {
        Self { terms: self.terms + other.terms, sums: self.sums + other.sums }
    }

    /// Whether either is more.
    pub(super) const fn is_more_than(self, words: u64) -> bool {
        self.terms > words || self.sums > words
    }
}

/// What lanes of a kernel take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lane {
    each: Room,
    /// What rows that fill up blocks take, at most.
    filling: Room,
}

impl Lane {
    /// Lanes that keep within so many words, which filling counts to.
    pub(super) fn lanes(self, words: u64) -> u64 {
        let most = |filling: u64, each: u64| match each {
            0 => u64::MAX,
            _ => words.saturating_sub(filling) / each,
        };
        most(self.filling.terms, self.each.terms).min(most(self.filling.sums, self.each.sums))
    }

    /// What so many lanes take.
    pub(super) fn of(self, lanes: u32) -> Room {
        let all = |filling: u64, each: u64| filling + each * u64::from(lanes);
        Room { terms: all(self.filling.terms, self.each.terms), sums: all(self.filling.sums, self.each.sums) }
    }
}

/// What of a compilation is about matrix units.
#[derive(Debug)]
pub(super) struct Matrix {
    /// What products are made of, if they are made there.
    squares: Option<Squares>,
    /// Where the terms of a weight begin, in words, by its record without that.
    weights: HashMap<Record, u32>,
    /// Words of all weights' terms.
    of_weights: u64,
    /// Words that the greediest wave takes.
    most: Room,
    /// Words of a binding.
    binding: u64,
}

impl Matrix {
    pub(super) fn new(plan: &Plan, target: Target) -> Self {
        let is_gradient = |kind: &StoreKind| matches!(kind, StoreKind::Grad(_));
        // Gradients of values alone have no store.
        let learns = plan.mode == Mode::Train || plan.stores.iter().any(|store| is_gradient(&store.kind));
        Self {
            squares: target.matrix.filter(|_| !learns),
            weights: HashMap::new(),
            of_weights: 0,
            most: Room::default(),
            binding: target.binding / 4,
        }
    }

    /// Whether products are made there.
    pub(super) const fn multiplies(&self) -> bool {
        self.squares.is_some()
    }

    /// Words of terms or sums that a wave may take: those allowed to it that are in the binding beside the weights'.
    pub(super) const fn budget(&self, allowed: u64) -> u64 {
        let free = self.binding.saturating_sub(self.of_weights);
        if free < allowed { free } else { allowed }
    }

    /// Words of terms and sums in all.
    pub(super) fn room(&self) -> Room {
        self.most.with(Room { terms: self.of_weights, sums: 0 })
    }

    /// A wave took so many.
    pub(super) fn end_wave(&mut self, room: Room) {
        self.most.terms = self.most.terms.max(room.terms);
        self.most.sums = self.most.sums.max(room.sums);
    }

    /// Takes words for a wave that has taken some; gives where they begin.
    fn take(&self, wave: &mut Room, more: Room) -> Result<Room, GpuError> {
        let at = wave.with(Room { terms: self.of_weights, sums: 0 });
        *wave = wave.with(more);
        let end = at.with(more);
        match end.is_more_than(self.binding) {
            false => Ok(at),
            true => Err(GpuError::TooLarge {
                what: "the terms of a product",
                needed: end.terms.max(end.sums) * 4,
                limit: self.binding * 4,
            }),
        }
    }
}

/// Terms of a piece and of a row, and columns of all groups, as they are padded.
fn extents(product: &Product<'_>, units: Squares) -> (u32, u32, u32) {
    let columns = product.columns() * product.fused.groups.len() as u32;
    let piece = (product.depth() as u32).next_multiple_of(PADDED);
    (piece, piece * units.pieces(), columns.next_multiple_of(Blocks::largest(units.size).wide()))
}

/// What lanes of a kernel take.
pub(super) fn room(build: &Build<'_>, kernel: &Kernel, lowered: &Lowered) -> Lane {
    let mut lane = Lane::default();
    let Some(of) = build.matrix.squares else { return lane };
    for Piece { unit, products, .. } in &lowered.pieces {
        if !matches!(unit, Unit::OnMatrix { .. }) {
            continue;
        }
        for product in &Product::all(kernel, products) {
            let (_, depth, columns) = extents(product, of);
            let row = Room { terms: u64::from(depth / 2), sums: u64::from(columns) };
            let times = |n: u32| Room { terms: row.terms * u64::from(n), sums: row.sums * u64::from(n) };
            lane.each = lane.each.with(times(product.rows));
            lane.filling = lane.filling.with(times(Blocks::largest(of.size).high() - 1));
        }
    }
    lane
}

/// The record of a weight's terms, but for where they begin.
fn weight_record(build: &Build<'_>, step: &Step, product: &Product<'_>, of: Squares) -> Record {
    let (piece, depth, columns) = extents(product, of);
    let (each, groups) = (product.columns(), product.fused.groups.len() as u32);
    let parts = product.parts.len() as u32;
    let words = depth.saturating_mul(columns / 2);
    let mut record = Record::new(&[words, columns / 2, 0, each, each * groups, piece, groups, parts]);
    product.groups().for_each(|group| {
        record.push(group);
    });
    let mut first = 0;
    for part in product.parts {
        let width = part.source.width / product.rows;
        record.all(&[first, width]).all(&weight(build, step, part).0);
        first += width;
    }
    record
}

/// Adds what makes the terms of the weights of all steps from one on, once each.
pub(super) fn weights(build: &mut Build<'_>, first: usize) -> Result<(), GpuError> {
    let Some(of) = build.matrix.squares else { return Ok(()) };
    let plan = build.plan;
    let mut seen = HashSet::new();
    for step in plan.steps[first..].iter().filter(|step| seen.insert((step.kernel, plan.stores(step)))) {
        let kernel = plan.kernel(step);
        for Piece { unit, products, .. } in &build.lowered(step.kernel).pieces {
            if !matches!(unit, Unit::OnMatrix { .. }) {
                continue;
            }
            for product in &Product::all(kernel, products) {
                let key = weight_record(build, step, product, of);
                if build.matrix.weights.contains_key(&key) {
                    continue;
                }
                let words = u64::from(key.words()[0]);
                let at =
                    build.matrix.take(&mut Room::default(), Room { terms: words, sums: 0 })?.terms as u32;
                build.matrix.of_weights += words;
                let mut record = key.clone();
                record.set(2, at);
                build.matrix.weights.insert(key, at);
                build.standing.extend_from_slice(record.words());
                build.segment(Program::Fixed(WEIGHT_TERMS), &record, 0, (0, words), 1)?;
            }
        }
    }
    build.end_wave()
}

/// Adds products on matrix units, and what takes their sums.
pub(super) fn lower(lanes: &mut Lanes<'_, '_>, piece: &Piece) -> Result<(), GpuError> {
    let Some(of) = lanes.build.matrix.squares else { return Ok(()) };
    let fused = piece.products.as_slice();
    let products = Product::all(lanes.kernel, fused);
    let Some((each, rows)) = products.first().map(|first| (first.columns(), first.rows)) else {
        return Ok(());
    };
    let mut record = head(fused, [rows * each, each, rows]);
    lanes.fill(&piece.recipe, &mut record);
    let (first, level) = (lanes.first, lanes.level);
    for (number, product) in products.iter().enumerate() {
        let (piece, depth, columns) = extents(product, of);
        let all_rows = u64::from(lanes.count) * u64::from(product.rows);
        let blocks = match lanes.build.strict {
            true => Blocks::largest(of.size),
            false => Blocks::of(of.size, all_rows),
        };
        let rows = all_rows.next_multiple_of(blocks.high().into());
        let more = Room { terms: rows * u64::from(depth / 2), sums: rows * u64::from(columns) };
        let build = &mut *lanes.build;
        let at = build.matrix.take(&mut build.wave.matrix, more)?;
        let key = weight_record(build, lanes.step, product, of);
        let weight_at = build.matrix.weights.get(&key).copied().unwrap_or_default();

        let each = depth / 2 * product.rows;
        let mut gather = Record::new(&[each, depth / 2, at.terms as u32, product.parts.len() as u32, piece]);
        let mut begin = 0;
        for part in product.parts {
            let width = part.source.width / product.rows;
            gather.all(&lanes.spot(part.source)).all(&[width, begin]);
            begin += width;
        }
        let build = &mut *lanes.build;
        let threads = u64::from(lanes.count) * u64::from(each);
        build.segment(Program::Fixed(TERMS), &gather, level, (first, threads), 1)?;
        let squares = [rows as u32, depth, 2 * at.terms as u32, 2 * weight_at, columns, at.sums as u32];
        let program = Program::Matrix(blocks);
        build.segment(program, &Record::new(&squares), level + 1, (first, rows), columns.into())?;
        build.last_is_work(rows * u64::from(columns) * u64::from(depth));

        record.set(3 + number as u32, record.len());
        start(lanes, product, 0, &mut record);
        record.push(at.sums as u32).push(columns);
    }
    // What reads the results comes behind all three.
    lanes.level = level + 2;
    let threads = u64::from(lanes.count) * u64::from(record.words()[0]);
    let kernel = lanes.kernel;
    let homes = lanes.lowered.homes.as_slice();
    let number = lanes.generated(piece, None, || {
        Program::Sums(Sums { groups: groups(fused), tail: text(kernel, &piece.unit, homes) })
    });
    lanes.build.segment_of(number, &record, lanes.level, (first, threads), 1)
}

//! Parameter-gradient reductions: sums over all rows, in which every thread owns the elements that it adds to.
//! Reductions into disjoint elements are executed together.

use super::record::{GATHERED, Record, RowAddress};
use super::wave::Threads;
use super::{Build, MAX_THREADS};
use crate::error::GpuError;
use crate::module::{Program, WgradTile};
use crate::predict::Card;
use autobatch_ir::plan::{Reduction, ReductionPart, ReductionSum, StepOperand, StoreId, StoreKind};
use autobatch_shaders::{COLSUM, LGRAD, TGRAD};
use std::collections::HashMap;
use std::ops::Range;

/// Threads that share a column of a table's gradient. Each owns the rows with one remainder modulo this number.
const REMAINDERS: u32 = 128;

/// Reductions of a store that are compared with one another. Later ones wait for all before them.
const MAX_COMPARED: usize = 64;

/// Maximum number of segments of a reduction.
const MAX_PARTS: u64 = 1 << 12;

/// The reductions of a store so far.
#[derive(Default)]
struct Earlier<'p> {
    /// The first of them, with the level after each.
    compared: Vec<(&'p Reduction, u32)>,
    /// The level after all of them.
    end: u32,
}

/// Adds the reductions. One that adds to elements of an earlier one gets a later level.
pub(super) fn lower(build: &mut Build<'_>) -> Result<(), GpuError> {
    if !build.plan.shards.is_empty() {
        return Err(GpuError::Shards { count: build.plan.shard_count() });
    }
    let mut of_stores: HashMap<StoreId, Earlier<'_>> = HashMap::new();
    for sum in &build.plan.reductions {
        let earlier = of_stores.entry(sum.store).or_default();
        let mut level = earlier.end;
        if earlier.compared.len() < MAX_COMPARED {
            let overlapping = earlier.compared.iter().filter(|(other, _)| sum.overlaps(build.plan, other));
            level = overlapping.map(|(_, end)| *end).max().unwrap_or(0);
        }
        let end = level + lower_one(build, sum, level)?;
        earlier.end = earlier.end.max(end);
        if earlier.compared.len() < MAX_COMPARED {
            earlier.compared.push((sum, end));
        }
    }
    Ok(())
}

/// Rows of a part of a reduction: a range of its lanes.
#[derive(Clone)]
struct Rows<'p> {
    part: &'p ReductionPart,
    lanes: Range<u32>,
}

impl Rows<'_> {
    fn count(&self) -> u64 {
        u64::from(self.part.each) * self.lanes.len() as u64
    }

    /// The address of an operand from the first of these lanes on.
    fn address(&self, build: &Build<'_>, operand: StepOperand) -> RowAddress {
        let [base, row, stride, width] = build.layout.operand(operand);
        let step = if stride == GATHERED { 1 } else { stride };
        [base, row.wrapping_add(self.lanes.start.wrapping_mul(step)), stride, width]
    }
}

/// Adds the segments of a reduction, from a level on, and returns how many levels they take: one, unless the reduction would
/// keep the device busy for too long. Then each segment takes a part of the rows and continues the sums of the one before.
fn lower_one(build: &mut Build<'_>, sum: &Reduction, level: u32) -> Result<u32, GpuError> {
    let all: Vec<Rows<'_>> = sum.parts.iter().map(|part| Rows { part, lanes: 0..part.lanes }).collect();
    let Some(whole) = segment(build, sum, &all) else { return Ok(1) };
    let cost = build.cost_of(&whole.program, &whole.record, whole.threads);
    let parts = build.parts_of(Card::SMALL.busy_seconds(&cost));
    if parts <= 1 {
        build.segment(whole.program, &whole.record, level, whole.threads)?;
        return Ok(1);
    }
    let divided = divided(&all, parts.min(MAX_PARTS));
    for (number, rows) in (0..).zip(&divided) {
        let Some(part) = segment(build, sum, rows) else { break };
        build.segment(part.program, &part.record, level + number, part.threads)?;
    }
    Ok(divided.len().max(1) as u32)
}

/// Divides rows into about `count` equal parts. The rows of a lane stay together.
fn divided<'p>(all: &[Rows<'p>], count: u64) -> Vec<Vec<Rows<'p>>> {
    let share = all.iter().map(Rows::count).sum::<u64>().div_ceil(count.max(1)).max(1);
    let (mut parts, mut current, mut taken) = (Vec::new(), Vec::new(), 0);
    for rows in all {
        let (each, mut lanes) = (u64::from(rows.part.each).max(1), rows.lanes.clone());
        while !lanes.is_empty() {
            let fitting = (share - taken).div_ceil(each).min(lanes.len() as u64) as u32;
            let end = lanes.start + fitting;
            current.push(Rows { part: rows.part, lanes: lanes.start..end });
            taken += u64::from(fitting) * each;
            lanes.start = end;
            if taken >= share {
                parts.push(std::mem::take(&mut current));
                taken = 0;
            }
        }
    }
    parts.extend((!current.is_empty()).then_some(current));
    parts
}

/// A segment of a reduction.
struct Summed {
    program: Program,
    record: Record,
    threads: Threads,
}

/// The segment that adds these rows, or `None` if the plan has no gradient of the store.
fn segment(build: &Build<'_>, sum: &Reduction, rows: &[Rows<'_>]) -> Option<Summed> {
    let (at, elements) = build.layout.gradient(sum.store)?;
    let shape = build.plan.stores[sum.store.index()].ty.shape;
    let (at, columns) = (at as u32, shape.width() as u32);
    let parts = rows.len() as u32;
    let (program, mut record, threads) = match sum.sum {
        ReductionSum::Wgrad { row, col, k, n } => {
            let (depth, width) = (u64::from(k), u64::from(n));
            let tile = WgradTile::of(depth, width);
            // Tiles count rows and columns of the block, other programs count elements.
            let threads = match tile {
                WgradTile::Element => Threads::of(depth * width),
                WgradTile::Two | WgradTile::Four => Threads { columns: width, ..Threads::of(depth) },
            };
            let record = Record::new(&[k * n, n, at + row * columns + col, columns, parts]);
            (Program::Wgrad(tile), record, threads)
        }
        ReductionSum::Colsum => {
            let record = Record::new(&[elements as u32, at, parts]);
            (Program::Fixed(COLSUM), record, Threads::of(elements))
        }
        ReductionSum::Tgrad => {
            // Wide tables use fewer, so that threads can be counted.
            let max = (MAX_THREADS / u64::from(columns)).clamp(1, u64::from(REMAINDERS)) as u32;
            let remainders = max.min(shape.rows() as u32);
            let last = shape.rows() as u32 - 1;
            let record = Record::new(&[columns * remainders, columns, remainders, at, last, parts]);
            (Program::Fixed(TGRAD), record, Threads::of(u64::from(columns) * u64::from(remainders)))
        }
        ReductionSum::Lgrad => {
            let StoreKind::Grad(of) = build.plan.stores[sum.store.index()].kind else { return None };
            let (labels, stored) = (shape.rows() as u32, build.layout.store(of));
            let record = Record::new(&[columns, labels, at, stored.at, stored.kind, parts]);
            (Program::Fixed(LGRAD), record, Threads::of(u64::from(labels)))
        }
    };
    for rows in rows {
        record.push(rows.lanes.len() as u32).push(rows.part.each);
        if let Some(x) = rows.part.x {
            record.all(&rows.address(build, x));
        }
        record.all(&rows.address(build, rows.part.dy));
    }
    Some(Summed { program, record, threads })
}

#[cfg(test)]
mod tests;

//! Parameter-gradient reductions: sums over all rows, in which every thread owns the elements that it adds to.
//! Reductions into disjoint elements are executed together.

use super::record::Record;
use super::wave::Threads;
use super::{Build, MAX_THREADS};
use crate::error::GpuError;
use crate::module::{Program, WgradTile};
use autobatch_ir::plan::{Reduction, ReductionSum, StoreId};
use autobatch_shaders::{COLSUM, TGRAD};
use std::collections::HashMap;

/// Threads that share a column of a table's gradient. Each owns the rows with one remainder modulo this number.
const REMAINDERS: u32 = 64;

/// Reductions of a store that are compared with one another. Later ones wait for all before them.
const MAX_COMPARED: usize = 64;

/// The reductions of a store so far.
#[derive(Default)]
struct Earlier<'p> {
    /// The first of them, with their levels.
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
            level = overlapping.map(|(_, level)| level + 1).max().unwrap_or(0);
            earlier.compared.push((sum, level));
        }
        earlier.end = earlier.end.max(level + 1);
        lower_one(build, sum, level)?;
    }
    Ok(())
}

/// Adds the segment of a reduction.
fn lower_one(build: &mut Build<'_>, sum: &Reduction, level: u32) -> Result<(), GpuError> {
    let Some((at, elements)) = build.layout.gradient(sum.store) else { return Ok(()) };
    let shape = build.plan.stores[sum.store.index()].ty.shape;
    let (at, columns) = (at as u32, shape.width() as u32);
    let parts = sum.parts.len() as u32;
    let (program, mut record, each) = match sum.sum {
        ReductionSum::Wgrad { row, col, k, n } => (
            Program::Wgrad(WgradTile::of(k.into(), n.into())),
            Record::new(&[k * n, n, at + row * columns + col, columns, parts]),
            u64::from(k) * u64::from(n),
        ),
        ReductionSum::Colsum => {
            (Program::Fixed(COLSUM), Record::new(&[elements as u32, at, parts]), elements)
        }
        ReductionSum::Tgrad => {
            // Wide tables use fewer, so that threads can be counted.
            let max = (MAX_THREADS / u64::from(columns)).clamp(1, u64::from(REMAINDERS)) as u32;
            let remainders = max.min(shape.rows() as u32);
            let last = shape.rows() as u32 - 1;
            let record = Record::new(&[columns * remainders, columns, remainders, at, last, parts]);
            (Program::Fixed(TGRAD), record, u64::from(columns) * u64::from(remainders))
        }
    };
    let rows: u64 = sum.parts.iter().map(|part| u64::from(part.lanes) * u64::from(part.each)).sum();
    for part in &sum.parts {
        record.push(part.lanes).push(part.each);
        if let Some(x) = part.x {
            record.all(&build.layout.operand(x));
        }
        record.all(&build.layout.operand(part.dy));
    }
    // Tiles count rows and columns of the block, other programs count elements.
    let threads = match (&program, sum.sum) {
        (Program::Wgrad(WgradTile::Two | WgradTile::Four), ReductionSum::Wgrad { k, n, .. }) => {
            Threads { first_lane: 0, count: k.into(), columns: n.into() }
        }
        _ => Threads::of(each),
    };
    build.segment(program, &record, level, threads)?;
    build.set_last_work(each * rows);
    Ok(())
}

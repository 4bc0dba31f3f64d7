//! Reductions: sums over all rows, in which every thread owns what it adds to. Those that meet nowhere are
//! executed together.

use super::record::Record;
use super::{Build, MAX_THREADS};
use crate::error::GpuError;
use crate::module::{Patch, Program};
use autobatch_ir::plan::{Reduction, ReductionSum, StoreId};
use autobatch_shaders::{COLSUM, TGRAD};
use std::collections::HashMap;

/// Threads that one column of a table's gradient is shared by: each owns the rows of one rest.
const RESTS: u32 = 64;

/// So many reductions of a store are compared with one another; one more waits for all before it.
const MOST_COMPARED: usize = 64;

/// The reductions of a store so far.
#[derive(Default)]
struct Before<'p> {
    /// The first of them, and their levels.
    compared: Vec<(&'p Reduction, u32)>,
    /// The level behind all of them.
    end: u32,
}

/// Adds the reductions, those behind others that add to the same elements.
pub(super) fn lower(build: &mut Build<'_>) -> Result<(), GpuError> {
    let mut of_stores: HashMap<StoreId, Before<'_>> = HashMap::new();
    for sum in &build.plan.reductions {
        let before = of_stores.entry(sum.store).or_default();
        let mut level = before.end;
        if before.compared.len() < MOST_COMPARED {
            let met = before.compared.iter().filter(|(other, _)| meet(sum, other));
            level = met.map(|(_, level)| level + 1).max().unwrap_or(0);
            before.compared.push((sum, level));
        }
        before.end = before.end.max(level + 1);
        lower_one(build, sum, level)?;
    }
    Ok(())
}

/// Whether two reductions of a store add to one element.
fn meet(a: &Reduction, b: &Reduction) -> bool {
    let apart = |(a, a_len): (u32, u32), (b, b_len): (u32, u32)| a + a_len <= b || b + b_len <= a;
    match (a.sum, b.sum) {
        (ReductionSum::Wgrad { row, col, k, n }, ReductionSum::Wgrad { row: r2, col: c2, k: k2, n: n2 }) => {
            !apart((row, k), (r2, k2)) && !apart((col, n), (c2, n2))
        }
        _ => true,
    }
}

/// Adds the segment of a final.
fn lower_one(build: &mut Build<'_>, sum: &Reduction, level: u32) -> Result<(), GpuError> {
    let Some((at, elements)) = build.layout.gradient(sum.store) else { return Ok(()) };
    let shape = build.plan.stores[sum.store.index()].ty.shape;
    let (at, columns) = (at as u32, shape.width() as u32);
    let parts = sum.parts.len() as u32;
    let (program, mut record, each) = match sum.sum {
        ReductionSum::Wgrad { row, col, k, n } => (
            Program::Wgrad(Patch::of(k.into(), n.into())),
            Record::new(&[k * n, n, at + row * columns + col, columns, parts]),
            u64::from(k) * u64::from(n),
        ),
        ReductionSum::Colsum => {
            (Program::Fixed(COLSUM), Record::new(&[elements as u32, at, parts]), elements)
        }
        ReductionSum::Tgrad => {
            // Of wide tables fewer, so that threads stay countable.
            let most = (MAX_THREADS / u64::from(columns)).clamp(1, u64::from(RESTS)) as u32;
            let rests = most.min(shape.rows() as u32);
            let last = shape.rows() as u32 - 1;
            let record = Record::new(&[columns * rests, columns, rests, at, last, parts]);
            (Program::Fixed(TGRAD), record, u64::from(columns) * u64::from(rests))
        }
    };
    let rows: u64 = sum.parts.iter().map(|part| u64::from(part.lanes) * u64::from(part.each)).sum();
    for part in &sum.parts {
        record.push(part.lanes).push(part.each);
        if let Some(x) = part.x {
            record.all(&build.operand(x));
        }
        record.all(&build.operand(part.dy));
    }
    // Tiles count rows and columns of the block, others elements.
    let (threads, across) = match (&program, sum.sum) {
        (Program::Wgrad(Patch::Two | Patch::Four), ReductionSum::Wgrad { k, n, .. }) => (k.into(), n.into()),
        _ => (each, 1),
    };
    build.segment(program, &record, level, (0, threads), across)?;
    build.last_is_work(each * rows);
    Ok(())
}

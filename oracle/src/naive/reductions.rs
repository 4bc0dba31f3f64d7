//! The naive executor of reductions, one row of the sum after the other.

use super::{Run, RunError};
use autobatch_ir::numeric::label_loss::{self, FACTORS};
use autobatch_ir::numeric::{scalar, tree};
use autobatch_ir::plan::{Reduction, ReductionPart, ReductionSum, StepOperand, StoreId, StoreKind};
use std::collections::BTreeSet;
use std::ops::Range;

/// The gradients that a plan's reductions make, by store; empty for other stores.
pub(super) fn execute<S: AsRef<[f32]>>(run: &Run<'_, S>) -> Result<Vec<Vec<f32>>, RunError> {
    let mut sparse = Vec::new();
    run.plan.find_sparse_gradients(&mut sparse);
    let stores = run.plan.stores.iter().enumerate();
    stores
        .map(|(number, store)| match store.kind {
            StoreKind::Grad(_) => gradient(run, StoreId(number as u32), sparse[number]),
            StoreKind::Param(_) | StoreKind::State(_) => Ok(Vec::new()),
        })
        .collect()
}

/// The gradient in a store: the sums of all shards, added in their tree. A sparse gradient is added row by row, over the shards
/// that add to the row.
fn gradient<S: AsRef<[f32]>>(
    run: &Run<'_, S>,
    store: StoreId,
    is_sparse: bool,
) -> Result<Vec<f32>, RunError> {
    let shape = run.plan.stores[store.index()].ty.shape;
    let width = if is_sparse { shape.width() } else { shape.elements() };
    let mut shards = Vec::with_capacity(run.plan.shard_count());
    for shard in 0..run.plan.shard_count() {
        let mut sum = Vec::new();
        sum.try_reserve_exact(shape.elements()).map_err(|_| RunError::Memory)?;
        sum.resize(shape.elements(), 0.0);
        for own in run.plan.reductions.iter().filter(|sum| sum.store == store) {
            add(run, own, shard, &mut sum);
        }
        let rows = if is_sparse { rows_of(run, store, shard) } else { BTreeSet::from([0]) };
        shards.push((sum, rows));
    }
    let mut gradient = vec![0.0; shape.elements()];
    for (number, own) in gradient.chunks_exact_mut(width.max(1)).enumerate() {
        let leaf = |shard: usize| {
            let (sum, rows): &(Vec<f32>, BTreeSet<u32>) = &shards[shard];
            rows.contains(&(number as u32)).then(|| sum[number * width..][..width].to_vec())
        };
        if let Some(sum) = in_tree(0..shards.len(), &leaf) {
            own.copy_from_slice(&sum);
        }
    }
    Ok(gradient)
}

/// Adds the leaves of a node that are there, in the order of the tree.
fn in_tree(node: Range<usize>, leaf: &impl Fn(usize) -> Option<Vec<f32>>) -> Option<Vec<f32>> {
    if node.len() == 1 {
        return leaf(node.start);
    }
    let middle = tree::middle(&node);
    match (in_tree(node.start..middle, leaf), in_tree(middle..node.end, leaf)) {
        (Some(mut left), Some(right)) => {
            add_row(&mut left, &right);
            Some(left)
        }
        (left, right) => left.or(right),
    }
}

/// The rows of a table that a shard adds to.
fn rows_of<S>(run: &Run<'_, S>, store: StoreId, shard: usize) -> BTreeSet<u32> {
    let last = run.plan.stores[store.index()].ty.shape.dims()[0] - 1;
    let parts = run.plan.reductions.iter().filter(|sum| sum.store == store).flat_map(|sum| &sum.parts);
    let row = |part: &ReductionPart, lane| Some(index(run, part.x?, lane).min(last));
    parts.flat_map(|part| part.lanes_of(shard).filter_map(move |lane| row(part, lane))).collect()
}

/// The sparse rows of the gradients of tables that only `tgrad` reductions add to.
pub(super) fn sparse_rows<S>(run: &Run<'_, S>) -> Vec<Option<Vec<u32>>> {
    let plan = run.plan;
    let mut found = Vec::new();
    plan.find_sparse_gradients(&mut found);
    let mut sparse: Vec<Option<Vec<u32>>> = vec![None; plan.stores.len()];
    for (number, rows) in sparse.iter_mut().enumerate().filter(|(number, _)| found[*number]) {
        let shards = (0..plan.shard_count()).map(|shard| rows_of(run, StoreId(number as u32), shard));
        let rows_of_all = shards.reduce(|mut all, own| {
            all.extend(own);
            all
        });
        *rows = rows_of_all.map(|rows| rows.into_iter().collect());
    }
    sparse
}

/// Adds `x * dy` to a row of sums, fused.
fn add_scaled(sums: &mut [f32], x: f32, dy: &[f32]) {
    sums.iter_mut().zip(dy).for_each(|(sum, &dy)| *sum = scalar::fma(x, dy, *sum));
}

/// Adds the rows of a shard.
fn add<S: AsRef<[f32]>>(run: &Run<'_, S>, sum: &Reduction, shard: usize, gradient: &mut [f32]) {
    let columns = run.plan.stores[sum.store.index()].ty.shape.width();
    for part in &sum.parts {
        for lane in part.lanes_of(shard) {
            let dy = floats(run, part.dy, lane);
            for (number, dy) in dy.chunks_exact(dy.len() / part.each as usize).enumerate() {
                match (sum.sum, part.x) {
                    (ReductionSum::Wgrad { row, col, k, .. }, Some(x)) => {
                        let x = &floats(run, x, lane)[number * k as usize..][..k as usize];
                        let rows = gradient.chunks_exact_mut(columns).skip(row as usize);
                        rows.zip(x).for_each(|(sums, &x)| add_scaled(&mut sums[col as usize..], x, dy));
                    }
                    (ReductionSum::Lgrad, Some(x)) => {
                        let factors = <[f32; FACTORS]>::try_from(dy).expect("rule P28 holds");
                        let StoreKind::Grad(param) = run.plan.stores[sum.store.index()].kind else {
                            continue;
                        };
                        let rows = run.stores[param.index()].as_ref().chunks_exact(columns);
                        let (x, label) = (floats(run, x, lane), label_loss::label_of(factors, rows.len()));
                        for (v, (sums, row)) in gradient.chunks_exact_mut(columns).zip(rows).enumerate() {
                            let logit = label_loss::logit(x, row);
                            add_scaled(sums, label_loss::gradient(logit, factors, v == label), x);
                        }
                    }
                    (ReductionSum::Tgrad, Some(x)) => {
                        let last = gradient.len() / columns - 1;
                        let row = (index(run, x, lane) as usize).min(last);
                        add_row(&mut gradient[row * columns..], dy);
                    }
                    _ => add_row(gradient, dy),
                }
            }
        }
    }
}

fn add_row(sums: &mut [f32], dy: &[f32]) {
    for (sum, &dy) in sums.iter_mut().zip(dy) {
        *sum = scalar::add(*sum, dy);
    }
}

fn words<'a, S>(run: &'a Run<'_, S>, operand: StepOperand, lane: u32) -> &'a [u32] {
    let (field, row) = run.plan.operand_row(operand, lane).expect("reductions take rows (rule P28)");
    run.fields[field.index()].row(row)
}

fn floats<'a, S>(run: &'a Run<'_, S>, operand: StepOperand, lane: u32) -> &'a [f32] {
    bytemuck::cast_slice(words(run, operand, lane))
}

fn index<S>(run: &Run<'_, S>, operand: StepOperand, lane: u32) -> u32 {
    match run.plan.bound_word(operand, lane) {
        Some(word) => run.words[word as usize],
        None => words(run, operand, lane)[0],
    }
}

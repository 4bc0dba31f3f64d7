//! The naive executor of reductions, one row of the sum after the other.

use super::{Run, RunError};
use autobatch_ir::numeric::scalar;
use autobatch_ir::plan::{Operand, Reduction, ReductionSum, StoreKind};

/// The gradients that a plan's reductions make, by store; empty for other stores.
pub(super) fn execute<S>(run: &Run<'_, S>) -> Result<Vec<Vec<f32>>, RunError> {
    let mut gradients: Vec<Vec<f32>> = Vec::with_capacity(run.plan.stores.len());
    for store in &run.plan.stores {
        let elements = match store.kind {
            StoreKind::Grad(_) => store.ty.shape.elements(),
            StoreKind::Param(_) | StoreKind::State(_) => 0,
        };
        let mut gradient = Vec::new();
        gradient.try_reserve_exact(elements).map_err(|_| RunError::Memory)?;
        gradient.resize(elements, 0.0);
        gradients.push(gradient);
    }
    for sum in &run.plan.reductions {
        add(run, sum, &mut gradients[sum.store.index()]);
    }
    Ok(gradients)
}

/// The sparse rows of the gradients of tables that only `tgrad` reductions add to.
pub(super) fn sparse_rows<S>(run: &Run<'_, S>) -> Vec<Option<Vec<u32>>> {
    let plan = run.plan;
    let mut found = Vec::new();
    plan.find_sparse_gradients(&mut found);
    let mut sparse: Vec<Option<Vec<u32>>> = vec![None; plan.stores.len()];
    for (number, rows) in sparse.iter_mut().enumerate().filter(|(number, _)| found[*number]) {
        let own = plan.reductions.iter().filter(|sum| sum.store.index() == number);
        let last = plan.stores[number].ty.shape.dims()[0] - 1;
        let parts = own.flat_map(|sum| &sum.parts);
        let indices = parts.flat_map(|part| {
            (0..part.lanes).filter_map(move |lane| Some(index(run, part.x?, lane).min(last)))
        });
        let indices: std::collections::BTreeSet<u32> = indices.collect();
        *rows = Some(indices.into_iter().collect());
    }
    sparse
}

/// Adds `x * dy` to a row of sums, fused.
fn add_scaled(sums: &mut [f32], x: f32, dy: &[f32]) {
    sums.iter_mut().zip(dy).for_each(|(sum, &dy)| *sum = scalar::fma(x, dy, *sum));
}

fn add<S>(run: &Run<'_, S>, sum: &Reduction, gradient: &mut [f32]) {
    let columns = run.plan.stores[sum.store.index()].ty.shape.width();
    for part in &sum.parts {
        for lane in 0..part.lanes {
            let dy = floats(run, part.dy, lane);
            for (number, dy) in dy.chunks_exact(dy.len() / part.each as usize).enumerate() {
                match (sum.sum, part.x) {
                    (ReductionSum::Wgrad { row, col, k, .. }, Some(x)) => {
                        let x = &floats(run, x, lane)[number * k as usize..][..k as usize];
                        let rows = gradient.chunks_exact_mut(columns).skip(row as usize);
                        rows.zip(x).for_each(|(sums, &x)| add_scaled(&mut sums[col as usize..], x, dy));
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

fn words<'a, S>(run: &'a Run<'_, S>, operand: Operand, lane: u32) -> &'a [u32] {
    let (field, row) = run.plan.operand_row(operand, lane).expect("reductions take rows (rule P28)");
    run.fields[field.index()].row(row)
}

fn floats<'a, S>(run: &'a Run<'_, S>, operand: Operand, lane: u32) -> &'a [f32] {
    bytemuck::cast_slice(words(run, operand, lane))
}

fn index<S>(run: &Run<'_, S>, operand: Operand, lane: u32) -> u32 {
    match run.plan.bound_word(operand, lane) {
        Some(word) => run.words[word as usize],
        None => words(run, operand, lane)[0],
    }
}

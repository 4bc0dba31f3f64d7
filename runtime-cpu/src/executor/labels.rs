//! Gradients of labels' rows: reductions that read a parameter, because they compute logits again.

use super::RunError;
use super::reductions::{Hands, SPLIT_WORK, Sum, Target, runs_of};
use crate::kernels::{KernelError, LabelGradient};
use autobatch_ir::plan::{Plan, Reduction, ReductionSum, StoreId, StoreKind, Stores};
use std::ops::Range;

/// For each sum over labels its store, and the labels' rows.
pub(super) fn label_rows<'a>(
    plan: &Plan,
    stores: &'a dyn Stores,
) -> Result<Vec<(StoreId, &'a [f32])>, RunError> {
    let of_labels = plan.reductions.iter().filter(|sum| sum.sum == ReductionSum::Lgrad);
    let rows = |sum: &Reduction| match plan.stores[sum.store.index()].kind {
        StoreKind::Grad(of) => Ok((sum.store, stores.sized(plan, of)?)),
        StoreKind::Param(_) | StoreKind::State(_) => unreachable!("sums have gradients (rule P28)"),
    };
    of_labels.map(rows).collect()
}

impl Sum<'_> {
    /// Adds some of the rows to the gradients of the labels' rows. Threads divide the labels.
    pub(super) fn label_rows(
        &self,
        rows: Range<usize>,
        target: Target<'_>,
        accumulate: bool,
        hands: &mut Hands<'_, '_>,
    ) -> Result<(), RunError> {
        let Self { inputs, columns: width, .. } = *self;
        let Hands { crew, scratch } = hands;
        let all = inputs.labels.iter().find(|(gradient, _)| *gradient == self.of.store);
        let all = all.expect("every sum over labels has rows").1;
        let (x, factors) =
            (runs_of(&self.x, 0, rows.clone(), inputs), runs_of(&self.dy, 0, rows.clone(), inputs));
        let labels = self.part[0].clone();
        let parts =
            (rows.len() * labels.len() * width / SPLIT_WORK + 1).min(crew.threads()).min(labels.len());
        let each = labels.len().div_ceil(parts);
        let targets = target.values[target.row * width..][..labels.len() * width].chunks_mut(each * width);
        let mut outcomes: Vec<Result<(), KernelError>> = (0..parts).map(|_| Ok(())).collect();
        let parts = targets.zip(labels.clone().step_by(each)).zip(scratch.iter_mut()).zip(&mut outcomes);
        crew.each_of(parts, |(((out, first), scratch), outcome)| {
            let rows = &all[first * width..][..out.len()];
            let (isa, x, factors) = (inputs.isa, &x, &factors);
            let all = all.len() / width;
            let sum = LabelGradient { isa, rows, width, first, all, x, factors, accumulate };
            *outcome = sum.run(out, scratch);
        });
        Ok(outcomes.into_iter().collect::<Result<(), KernelError>>()?)
    }
}

//! The naive executor of update plans, one element after the other.

use super::lane::{Lane, Operands};
use super::{RunError, error};
use autobatch_ir::numeric::store;
use autobatch_ir::plan::row_ops::{Noise, Scratch};
use autobatch_ir::plan::{
    BindError, KernelId, StoreId, StoreKind, Update, UpdatePlan, UpdateSource, Verified,
};
use autobatch_ir::weights::round;

/// Executes an update plan on all its stores, gradients included, widened to `f32`. `sparse` lists the sparse rows of
/// each gradient store, ascending; every row of a gradient without a list is sparse.
///
/// # Errors
/// If a store, float or sparse row does not fit the plan. Then no store was changed.
pub fn update(
    plan: &Verified<UpdatePlan>,
    stores: &mut [Vec<f32>],
    floats: &[f32],
    sparse: &[Option<Vec<u32>>],
) -> Result<(), RunError> {
    BindError::check_count("floats", plan.floats.into(), floats.len())?;
    error::check_stores(&plan.stores, stores)?;
    for (store, rows) in plan.stores.iter().zip(sparse) {
        let limit = store.ty.shape.dims().first().copied().unwrap_or(1);
        if let Some(&row) = rows.iter().flatten().find(|&&row| row >= limit) {
            return Err(RunError::SparseRows { name: store.name.clone(), row, limit });
        }
    }
    let mut run = Run { plan, floats, scalars: Vec::new(), lane: Lane::default() };
    for update in &plan.updates {
        run.update(update, stores, sparse)?;
    }
    Ok(())
}

struct Run<'a> {
    plan: &'a UpdatePlan,
    floats: &'a [f32],
    scalars: Vec<f32>,
    lane: Lane,
}

impl Run<'_> {
    fn update(
        &mut self,
        update: &Update,
        stores: &mut [Vec<f32>],
        sparse: &[Option<Vec<u32>>],
    ) -> Result<(), RunError> {
        match update {
            Update::Sumsq { stores: of } => {
                let sums = of.iter().map(|of| store::sum_of_squares(&stores[of.index()]));
                self.scalars.push(store::sum_over_stores(sums));
            }
            Update::Scalars { kernel, sources } => {
                self.lane.fit(&self.plan.kernels[kernel.index()])?;
                let results = self.element(*kernel, sources, &[], 0);
                self.scalars.extend(results);
            }
            Update::Apply { kernel, sparse: only, sources, targets } => {
                self.lane.fit(&self.plan.kernels[kernel.index()])?;
                let shape = self.plan.stores[targets[0].index()].ty.shape;
                let rows = only.then(|| sparse_rows(self.plan, sources, sparse)).flatten();
                match rows {
                    None => (0..shape.elements()).for_each(|at| {
                        self.apply(*kernel, sources, targets, stores, at);
                    }),
                    Some(rows) => {
                        let width = shape.elements() / shape.dims()[0] as usize;
                        for at in
                            rows.iter().flat_map(|&row| (0..width).map(move |i| row as usize * width + i))
                        {
                            self.apply(*kernel, sources, targets, stores, at);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn apply(
        &mut self,
        kernel: KernelId,
        sources: &[UpdateSource],
        targets: &[StoreId],
        stores: &mut [Vec<f32>],
        at: usize,
    ) {
        let results = self.element(kernel, sources, stores, at);
        for (&target, result) in targets.iter().zip(results) {
            let element = &mut stores[target.index()][at..=at];
            element[0] = result;
            round(self.plan.stores[target.index()].ty.dtype, element);
        }
    }

    fn element(
        &mut self,
        kernel: KernelId,
        sources: &[UpdateSource],
        stores: &[Vec<f32>],
        at: usize,
    ) -> Vec<f32> {
        let kernel = &self.plan.kernels[kernel.index()];
        for (port, source) in sources.iter().enumerate() {
            let number = match *source {
                UpdateSource::Store(store) => stores[store.index()][at],
                UpdateSource::Scalar(scalar) => self.scalars[scalar as usize],
                UpdateSource::Float(float) => self.floats[float as usize],
            };
            self.lane.set_port(port, &[number.to_bits()]);
        }
        let operands = Operands { kernel, params: &[], noise: Noise::Off };
        self.lane.execute(operands, &mut Scratch::default());
        kernel.results.iter().map(|&view| f32::from_bits(self.lane.view(view)[0])).collect()
    }
}

/// The rows that an update of sparse rows changes; `None` for all rows.
fn sparse_rows<'a>(
    plan: &UpdatePlan,
    sources: &[UpdateSource],
    sparse: &'a [Option<Vec<u32>>],
) -> Option<&'a [u32]> {
    let gradient = sources.iter().find_map(|source| match source {
        UpdateSource::Store(store) => {
            matches!(plan.stores[store.index()].kind, StoreKind::Grad(_)).then_some(store.index())
        }
        UpdateSource::Scalar(_) | UpdateSource::Float(_) => None,
    })?;
    sparse.get(gradient)?.as_deref()
}

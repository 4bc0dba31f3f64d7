//! The executor on a GPU. Values return to the host only on request.

use crate::error::Result;
use crate::mirror::Trained;
use autobatch_ir::Weights;
use autobatch_ir::id::ParamId;
use autobatch_ir::plan::{Footprint, Limits, Mode, Plan, StoreId, StoreKind, Update, UpdatePlan, Verified};
use autobatch_runtime_cpu::{Inputs, RunError};
use autobatch_runtime_wgpu::{
    Executor, Gpu, GpuError, Next, Options, PipelineCacheDir, Selector, Trained as OnDevice,
};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

/// An executor on a GPU.
pub(super) struct GpuExecutor {
    executor: Executor,
    limits: Limits,
    /// The identity of the plan whose footprint was compared with the limits last.
    accepted: Option<u64>,
    /// The parameters that updates changed.
    changed: BTreeSet<u32>,
    /// The error of a read that could not report it.
    fault: OnceLock<GpuError>,
}

impl fmt::Debug for GpuExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.executor.fmt(f)
    }
}

impl GpuExecutor {
    pub(super) fn new(selector: &Selector, limits: Limits) -> Result<Self> {
        let pipelines = PipelineCacheDir::from_env();
        let options = Options { selector: selector.clone(), pipelines, ..Options::default() };
        let executor = Executor::new(options)?;
        Ok(Self { executor, limits, accepted: None, changed: BTreeSet::new(), fault: OnceLock::new() })
    }

    pub(super) fn gpu(&self) -> Option<&Gpu> {
        self.executor.gpu()
    }

    /// Closes a device that could not be read, because its contents are unknown.
    fn check_fault(&mut self) -> Result<()> {
        match self.fault.take() {
            Some(error) => {
                self.executor.close();
                Err(error.into())
            }
            None => Ok(()),
        }
    }

    pub(super) fn execute(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<()> {
        self.execute_and_prepare(plan, weights, inputs, || Poll::Ready(None))
    }

    /// Executes a plan, and prepares the next one while the device works.
    pub(super) fn execute_and_prepare(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
        next: impl FnMut() -> Next,
    ) -> Result<()> {
        // A growing plan gets a reserve of rows from the first run on.
        if plan.mode == Mode::Grow {
            return self.resume(plan, weights, inputs);
        }
        self.check(plan)?;
        Ok(self.executor.execute_and_prepare(plan, weights, inputs, next)?)
    }

    /// Executes the new steps of a longer plan.
    pub(super) fn resume(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<()> {
        self.check(plan)?;
        Ok(self.executor.resume(plan, weights, inputs)?)
    }

    /// Executes a plan up to its pause.
    pub(super) fn start(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<()> {
        self.check(plan)?;
        Ok(self.executor.start(plan, weights, inputs)?)
    }

    /// Executes the rest of the plan that paused last.
    pub(super) fn proceed(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<()> {
        self.check_fault()?;
        Ok(self.executor.proceed(plan, weights, inputs)?)
    }

    /// Checks the plan and the device before a run.
    fn check(&mut self, plan: &Verified<Plan>) -> Result<()> {
        self.check_fault()?;
        if self.limits != Limits::NONE && self.accepted != Some(plan.identity()) {
            Footprint::of(plan).check(self.limits).map_err(|over| RunError::Limit(Box::new(over)))?;
            self.accepted = Some(plan.identity());
        }
        Ok(())
    }

    pub(super) fn output(&self, number: usize) -> &[f32] {
        self.executor.output(number)
    }

    pub(super) fn gradient(&mut self, store: StoreId) -> Result<Option<Vec<f32>>> {
        Ok(self.executor.gradient(store)?)
    }

    pub(super) fn set_accumulate_gradients(&mut self, keep: bool) {
        self.executor.set_accumulate_gradients(keep);
    }

    /// Executes an update plan that changes nothing, and returns its scalars.
    pub(super) fn scalars(
        &mut self,
        plan: &Verified<UpdatePlan>,
        Trained { weights, states }: &mut Trained,
    ) -> Result<Vec<f32>> {
        self.check_fault()?;
        self.executor.update(plan, &mut OnDevice { weights: Arc::make_mut(weights), states }, &[])?;
        Ok(self.executor.scalars()?)
    }

    /// Updates with the gradients on the device. On the host only versions change.
    pub(super) fn update(
        &mut self,
        plan: &Verified<UpdatePlan>,
        Trained { weights, states }: &mut Trained,
        floats: &[f32],
    ) -> Result<()> {
        self.check_fault()?;
        let weights = Arc::make_mut(weights);
        self.executor.update(plan, &mut OnDevice { weights, states }, floats)?;
        for target in plan.updates.iter().flat_map(Update::targets) {
            self.changed.insert(match plan.stores[target.index()].kind {
                StoreKind::Param(_) => target.0,
                StoreKind::State(of) | StoreKind::Grad(of) => of.0,
            });
        }
        Ok(())
    }

    /// Reads back what updates changed. The caller may be unable to report an error, so the next run or update
    /// reports it too.
    pub(super) fn read(&self, trained: &mut Trained) -> Result<()> {
        let read = self.read_all(trained);
        if let Err(error) = &read {
            let _ = self.fault.set(error.clone());
        }
        Ok(read?)
    }

    fn read_all(&self, Trained { weights, states }: &mut Trained) -> std::result::Result<(), GpuError> {
        let weights = Arc::make_mut(weights);
        let params = weights.len();
        for &param in &self.changed {
            for (store, values) in self.executor.updated(StoreId(param))? {
                let fits = match store.index().checked_sub(params) {
                    None => weights.receive(ParamId::new(store.index()), &values).is_ok(),
                    Some(state) => {
                        let state = states.as_mut_slice().get_mut(state);
                        state.is_some_and(|state| state.receive(&values).is_ok())
                    }
                };
                if !fits {
                    let reason = format!("{store} came back with {} elements", values.len());
                    return Err(GpuError::Rejected { reason });
                }
            }
        }
        Ok(())
    }
}

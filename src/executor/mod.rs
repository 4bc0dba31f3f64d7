//! The executor of a session, on any device.

use crate::device::Device;
use crate::error::Result;
use crate::mirror::Trained;
use crate::session::SessionOptions;
use autobatch_ir::Weights;
use autobatch_ir::id::ParamId;
#[cfg(feature = "gpu")]
use autobatch_ir::plan::Limits;
use autobatch_ir::plan::{FieldId, Plan, UpdatePlan, Verified};
use autobatch_runtime_cpu::{Executor, GradientSource, Inputs, Paused, RunError, resolve_threads};
use std::fmt;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

#[cfg(feature = "gpu")]
mod gpu;

/// The rows of a plan at its pause. Those of a GPU stay in its memory.
pub(crate) enum PausedRows {
    Host(Paused),
    #[cfg(feature = "gpu")]
    Gpu,
}

/// An executor on some device.
pub(crate) struct AnyExecutor {
    host: Executor,
    #[cfg(feature = "gpu")]
    gpu: Option<Box<gpu::GpuExecutor>>,
    #[cfg(feature = "gpu")]
    limits: Limits,
}

impl fmt::Debug for AnyExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &self.gpu {
            return gpu.fmt(f);
        }
        self.host.fmt(f)
    }
}

impl AnyExecutor {
    /// Creates the executor that the options ask for. Threads are those of the CPU.
    pub(crate) fn new(options: &SessionOptions) -> Result<Self> {
        let mut host = Executor::new(resolve_threads(options.threads))?;
        host.set_limits(options.limits);
        host.set_interrupt(options.interrupt.clone());
        if let Some(work) = options.shared_work {
            host.set_shared_work(work);
        }
        let mut executor = Self {
            host,
            #[cfg(feature = "gpu")]
            gpu: None,
            #[cfg(feature = "gpu")]
            limits: options.limits,
        };
        executor.move_to(&options.device)?;
        Ok(executor)
    }

    /// Executes on another device from now on.
    pub(crate) fn move_to(&mut self, device: &Device) -> Result<()> {
        match device {
            Device::Cpu => {
                #[cfg(feature = "gpu")]
                {
                    self.gpu = None;
                }
            }
            #[cfg(feature = "gpu")]
            Device::Gpu(selector) => {
                self.gpu = Some(Box::new(gpu::GpuExecutor::new(selector, self.limits)?));
            }
        }
        Ok(())
    }

    /// Executes a plan.
    pub(crate) fn execute(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<()> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.execute(plan, weights, inputs);
        }
        Ok(self.host.execute(plan, weights, inputs)?)
    }

    /// Executes a plan on the CPU, and leaves the sums of gradients to [`complete`](Self::complete).
    pub(crate) fn execute_steps(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<()> {
        Ok(self.host.execute_steps(plan, weights, inputs)?)
    }

    /// Completes gradients of a plan that was executed on the CPU.
    pub(crate) fn complete(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        words: &[u32],
        params: Option<&[ParamId]>,
    ) -> Result<()> {
        Ok(self.host.complete(plan, weights, words, params)?)
    }

    /// Executes a plan. A GPU asks for the next plan while the device works, and prepares it.
    pub(crate) fn execute_and_prepare(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
        next: impl FnMut() -> Poll<Option<Arc<Verified<Plan>>>>,
    ) -> Result<()> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.execute_and_prepare(plan, weights, inputs, next);
        }
        let _ = next;
        self.execute(plan, weights, inputs)
    }

    /// Executes a plan on the CPU, and calls `other` at the same time on one of its threads. Returns also the time of the
    /// execution.
    pub(crate) fn execute_beside<S: Send>(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
        other: impl FnOnce() -> S + Send,
    ) -> ((Result<()>, Duration), thread::Result<S>) {
        let start = Instant::now();
        self.host.beside(other, |host| {
            let executed = host.execute(plan, weights, inputs);
            (executed.map_err(Into::into), start.elapsed())
        })
    }

    /// Executes the new steps of a longer plan. A GPU without reserve for the new rows executes all of it.
    pub(crate) fn resume(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<()> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.resume(plan, weights, inputs);
        }
        Ok(self.host.resume(plan, weights, inputs)?)
    }

    /// Executes a plan up to its pause.
    pub(crate) fn start(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<PausedRows> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.start(plan, weights, inputs).map(|()| PausedRows::Gpu);
        }
        Ok(PausedRows::Host(self.host.start(plan, weights, inputs)?))
    }

    /// Executes the rest of a plan that paused on this device.
    pub(crate) fn proceed(
        &mut self,
        plan: &Verified<Plan>,
        rows: PausedRows,
        weights: &Weights,
        inputs: Inputs<'_>,
    ) -> Result<()> {
        match rows {
            #[cfg(feature = "gpu")]
            PausedRows::Gpu => match &mut self.gpu {
                Some(gpu) => gpu.proceed(plan, weights, inputs),
                None => Err(RunError::NoPause.into()),
            },
            PausedRows::Host(_) if self.is_elsewhere() => Err(RunError::NoPause.into()),
            PausedRows::Host(rows) => Ok(self.host.proceed(plan, rows, weights, inputs)?),
        }
    }

    /// Returns the elements of an output of a plan that paused last.
    pub(crate) fn paused_output<'a>(&'a self, rows: &'a PausedRows, plan: &Plan, number: usize) -> &'a [f32] {
        match rows {
            #[cfg(feature = "gpu")]
            PausedRows::Gpu => self.output(plan, number),
            PausedRows::Host(rows) => rows.output(plan, number),
        }
    }

    /// Returns the elements of an output of the last executed plan.
    pub(crate) fn output<'a>(&'a self, plan: &Plan, number: usize) -> &'a [f32] {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &self.gpu {
            return gpu.output(number);
        }
        self.host.output(plan, number)
    }

    /// Returns a row of a field of the last executed plan; `None` if the memory of a GPU holds it.
    pub(crate) fn row<'a>(&'a self, plan: &Plan, field: FieldId, row: u32) -> Option<&'a [f32]> {
        (!self.is_elsewhere()).then(|| self.host.row(plan, field, row))
    }

    /// Reads the gradient of a parameter that the last run of this plan made; `None` if it made none.
    pub(crate) fn gradient(&mut self, plan: &Plan, param: ParamId) -> Result<Option<Vec<f32>>> {
        let Some(store) = plan.gradient_of(param) else { return Ok(None) };
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.gradient(store);
        }
        Ok(self.host.gradient(store).map(<[f32]>::to_vec))
    }

    /// Returns the gradient of a parameter that the last run on the CPU made, with its sparse rows if they are listed.
    pub(crate) fn host_gradient(&self, param: ParamId) -> (Option<&[f32]>, Option<&[u32]>) {
        (self.host.gradient_of(param), self.host.sparse_rows(param))
    }

    /// The norm of the gradients of some parameters, each with the width of its rows, or the first parameter whose gradient
    /// is not finite. `None` are the gradients of the last run on the CPU.
    pub(crate) fn gradient_norm(
        &self,
        gradients: Option<&dyn GradientSource>,
        params: impl Iterator<Item = (ParamId, usize)> + Clone,
    ) -> std::result::Result<f64, ParamId> {
        self.host.gradient_norm(gradients, params)
    }

    /// The sum of the squares of the gradients of some parameters on the host, with the bits of an update plan.
    pub(crate) fn sum_of_squares(&mut self, gradients: &dyn GradientSource, params: &[ParamId]) -> f32 {
        self.host.sum_of_squares(gradients, params)
    }

    /// Executes an update plan that changes nothing on the device that holds the gradients of the last run, and returns its
    /// scalars; `None` if that is the CPU.
    pub(crate) fn device_scalars(
        &mut self,
        plan: &Verified<UpdatePlan>,
        trained: &mut Trained,
    ) -> Result<Option<Vec<f32>>> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.scalars(plan, trained).map(Some);
        }
        let _ = (plan, trained);
        Ok(None)
    }

    /// Executes an update plan on the CPU with given gradients.
    pub(crate) fn update_with(
        &mut self,
        plan: &Verified<UpdatePlan>,
        gradients: &(dyn GradientSource + Sync),
        trained: &mut Trained,
        floats: &[f32],
    ) -> Result<()> {
        let Trained { weights, states } = trained;
        Ok(self.host.update_with(plan, gradients, Arc::make_mut(weights), states, floats)?)
    }

    /// Sets whether the next run adds its gradients to those of the last run.
    pub(crate) fn set_accumulate_gradients(&mut self, keep: bool) {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            gpu.set_accumulate_gradients(keep);
        }
        self.host.set_accumulate_gradients(keep);
    }

    /// Sets whether the CPU executor stops at the first NaN or infinity.
    pub(crate) fn set_watch(&mut self, watch: bool) {
        self.host.set_watch(watch);
    }

    /// Executes an update plan with the gradients of the last execution. Returns whether the new values are on
    /// a device and not on the host.
    pub(crate) fn update(
        &mut self,
        plan: &Verified<UpdatePlan>,
        trained: &mut Trained,
        floats: &[f32],
    ) -> Result<bool> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            gpu.update(plan, trained, floats)?;
            return Ok(true);
        }
        let Trained { weights, states } = trained;
        self.host.update(plan, Arc::make_mut(weights), states, floats)?;
        Ok(false)
    }

    /// Reads back the values that a device holds.
    pub(crate) fn read(&self, trained: &mut Trained) -> Result<()> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &self.gpu {
            return gpu.read(trained);
        }
        let _ = trained;
        Ok(())
    }

    /// Returns whether another device than the CPU executes the plans.
    pub(crate) fn is_elsewhere(&self) -> bool {
        #[cfg(feature = "gpu")]
        if self.gpu.is_some() {
            return true;
        }
        false
    }

    /// Returns whether a device was lost.
    pub(crate) fn is_lost(&self) -> bool {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &self.gpu {
            return gpu.gpu().is_none();
        }
        false
    }

    /// Returns the GPU that executes the plans.
    #[cfg(feature = "gpu")]
    pub(crate) fn gpu(&self) -> Option<&autobatch_runtime_wgpu::Gpu> {
        self.gpu.as_ref().and_then(|gpu| gpu.gpu())
    }
}

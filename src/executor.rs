//! The executor of a session, whichever device it is on.

use crate::device::Device;
use crate::error::Result;
use crate::mirror::Trained;
use crate::session::SessionOptions;
use autobatch_ir::Weights;
use autobatch_ir::plan::{Plan, UpdatePlan, Verified};
use autobatch_runtime_cpu::{Bound, Executor, threads_meant};
use std::fmt;
use std::sync::Arc;
use std::task::Poll;

#[cfg(feature = "gpu")]
mod gpu;

/// An executor on some device.
pub(crate) struct AnyExecutor {
    host: Executor,
    #[cfg(feature = "gpu")]
    gpu: Option<Box<gpu::GpuExecutor>>,
    #[cfg(feature = "gpu")]
    memory_limit: Option<u64>,
    #[cfg(feature = "gpu")]
    terms: autobatch_runtime_wgpu::Terms,
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
    /// An executor as options want it; threads are the processor's.
    pub(crate) fn new(options: &SessionOptions) -> Result<Self> {
        let mut host = Executor::new(threads_meant(options.threads))?;
        host.set_memory_limit(options.memory_limit);
        let mut executor = Self {
            host,
            #[cfg(feature = "gpu")]
            gpu: None,
            #[cfg(feature = "gpu")]
            memory_limit: options.memory_limit,
            #[cfg(feature = "gpu")]
            terms: options.terms,
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
                self.gpu = Some(Box::new(gpu::GpuExecutor::new(selector, self.memory_limit, self.terms)?));
            }
        }
        Ok(())
    }

    /// Executes a plan.
    pub(crate) fn execute(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        bound: Bound<'_>,
    ) -> Result<()> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.execute(plan, weights, bound);
        }
        Ok(self.host.execute(plan, weights, bound)?)
    }

    /// Executes a plan; a GPU asks meanwhile which one follows, and makes ready for it.
    pub(crate) fn execute_and_prepare(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        bound: Bound<'_>,
        next: impl FnMut() -> Poll<Option<Arc<Verified<Plan>>>>,
    ) -> Result<()> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.execute_and_prepare(plan, weights, bound, next);
        }
        let _ = next;
        self.execute(plan, weights, bound)
    }

    /// Executes what a plan gained since it was executed last. A GPU executes all of it where rows have no room left.
    pub(crate) fn resume(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        bound: Bound<'_>,
    ) -> Result<()> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            return gpu.resume(plan, weights, bound);
        }
        Ok(self.host.resume(plan, weights, bound)?)
    }

    /// The elements of an output of the plan that was executed last.
    pub(crate) fn output<'a>(&'a self, plan: &Plan, number: usize) -> &'a [f32] {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &self.gpu {
            return gpu.output(number);
        }
        self.host.output(plan, number)
    }

    /// Whether the gradients of the next run are added to those of the last.
    pub(crate) fn set_accumulate_gradients(&mut self, keep: bool) {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &mut self.gpu {
            gpu.set_accumulate_gradients(keep);
        }
        self.host.set_accumulate_gradients(keep);
    }

    /// Whether the processor's executor stops where NaN or an infinity arises.
    pub(crate) fn set_watch(&mut self, watch: bool) {
        self.host.set_watch(watch);
    }

    /// Executes an update plan on the gradients that were executed last; says whether the new values are on a
    /// device and not here.
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

    /// Fills in the values that a device holds.
    pub(crate) fn read(&self, trained: &mut Trained) -> Result<()> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &self.gpu {
            return gpu.read(trained);
        }
        let _ = trained;
        Ok(())
    }

    /// Whether plans are executed elsewhere than on the processor.
    pub(crate) fn is_elsewhere(&self) -> bool {
        #[cfg(feature = "gpu")]
        if self.gpu.is_some() {
            return true;
        }
        false
    }

    /// Whether there was a device and it is gone.
    pub(crate) fn is_lost(&self) -> bool {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = &self.gpu {
            return gpu.gpu().is_none();
        }
        false
    }

    /// The device that is executed on.
    #[cfg(feature = "gpu")]
    pub(crate) fn gpu(&self) -> Option<&autobatch_runtime_wgpu::Gpu> {
        self.gpu.as_ref().and_then(|gpu| gpu.gpu())
    }
}

//! An executor on a device, for programs that execute plans without a session.

use crate::error::BenchError;
use crate::report::KernelShare;
use crate::step::{Measured, Phase};
use autobatch::Device;
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Limits, Plan, UpdatePlan, Verified};
use autobatch_ir::{States, Weights};
use autobatch_runtime_cpu::{Counters, Executor, Inputs, resolve_threads};
use std::fmt;

/// An executor on the CPU or on a GPU. Noise is off.
pub enum Machine {
    /// On the CPU.
    Cpu(Box<Executor>),
    /// On a GPU.
    #[cfg(feature = "gpu")]
    Gpu(Box<autobatch::runtime_wgpu::Executor>),
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Machine").field(&self.description()).finish()
    }
}

impl Machine {
    /// Creates an executor on a device; 0 threads means one per core. The limits are those of the CPU.
    ///
    /// # Errors
    /// The device cannot be opened, or there are too many threads.
    pub fn new(device: &Device, threads: usize, limits: Limits) -> autobatch::Result<Self> {
        match device {
            Device::Cpu => {
                let mut executor = Executor::new(resolve_threads(threads))?;
                executor.set_limits(limits);
                Ok(Self::Cpu(Box::new(executor)))
            }
            #[cfg(feature = "gpu")]
            Device::Gpu(selector) => {
                use autobatch::runtime_wgpu::{Executor, Options};
                let options = Options { selector: selector.clone(), ..Options::default() };
                Ok(Self::Gpu(Box::new(Executor::new(options)?)))
            }
        }
    }

    /// The instruction set, or the GPU.
    #[must_use]
    pub fn description(&self) -> String {
        match self {
            Self::Cpu(executor) => executor.isa().to_string(),
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => match executor.gpu().map(|gpu| gpu.facts()) {
                Some(facts) => format!("{}, {}", facts.name, facts.backend),
                None => "a GPU that was lost".to_owned(),
            },
        }
    }

    /// The executor of the CPU, which alone counts the time of kernels in a normal execution.
    pub fn cpu(&mut self) -> Option<&mut Executor> {
        match self {
            Self::Cpu(executor) => Some(executor),
            #[cfg(feature = "gpu")]
            Self::Gpu(_) => None,
        }
    }

    /// Whether this is the CPU, whose results define the correct bits.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        matches!(self, Self::Cpu(_))
    }

    /// The counters of the last run, if the CPU counts runs.
    #[must_use]
    pub fn counters(&self) -> Option<&Counters> {
        match self {
            Self::Cpu(executor) => executor.counters(),
            #[cfg(feature = "gpu")]
            Self::Gpu(_) => None,
        }
    }

    /// Executes a plan with the bindings of a graph.
    ///
    /// # Errors
    /// The first input that does not fit, or a fault of the device.
    pub fn execute(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        data: &GraphData,
    ) -> autobatch::Result<()> {
        match self {
            Self::Cpu(executor) => executor.execute(plan, weights, inputs(data))?,
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => executor.execute(plan, weights, inputs(data))?,
        }
        Ok(())
    }

    /// Executes an update plan with the gradients of the last execution. A GPU only begins it: the next execution waits
    /// for its end.
    pub(crate) fn update(
        &mut self,
        plan: &Verified<UpdatePlan>,
        weights: &mut Weights,
        states: &mut States,
        floats: &[f32],
    ) -> Result<(), BenchError> {
        match self {
            Self::Cpu(executor) => executor.update(plan, weights, states, floats)?,
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => {
                let mut trained = autobatch::runtime_wgpu::Trained { weights, states };
                executor.update(plan, &mut trained, floats)?;
            }
        }
        Ok(())
    }

    /// The elements of an output of the last plan.
    #[must_use]
    pub fn output(&self, plan: &Plan, number: usize) -> &[f32] {
        match self {
            Self::Cpu(executor) => executor.output(plan, number),
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => executor.output(number),
        }
    }

    /// All outputs of the last plan, one after another, words by their bits.
    #[must_use]
    pub fn outputs(&self, plan: &Plan) -> Vec<f32> {
        (0..plan.outputs.len()).flat_map(|number| self.output(plan, number)).copied().collect()
    }

    /// Adds the phases of the last execution to a measurement.
    pub(crate) fn add_phases(&self, plan: &Plan, spent: &mut Measured) {
        match self {
            Self::Cpu(executor) => {
                let Some(counters) = executor.counters() else { return };
                let [forward, reverse] = counters.directions(plan);
                spent.add(Phase::Pack, counters.pack);
                spent.add(Phase::Forward, forward);
                spent.add(Phase::Reverse, reverse);
                spent.add(Phase::Reductions, counters.reductions);
            }
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => {
                let times = executor.times();
                spent.add(Phase::Compile, times.prepare);
                spent.add(Phase::Upload, times.upload);
                spent.add(Phase::Encode, times.encode + times.prerecord);
                spent.add(Phase::Wait, times.wait);
            }
        }
    }

    /// The times of the kernels of a plan: of its last execution on the CPU, of another one on a GPU.
    pub(crate) fn kernels(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        data: &GraphData,
    ) -> Result<Vec<KernelShare>, BenchError> {
        match self {
            Self::Cpu(executor) => {
                let _ = (weights, data);
                let counts = executor.counters().map(|counters| counters.by_kernel(plan));
                Ok(counts.into_iter().flatten().map(KernelShare::from).collect())
            }
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => {
                let times = executor.profile(plan, weights, inputs(data))?.unwrap_or_default();
                Ok(by_template(&times))
            }
        }
    }
}

fn inputs(data: &GraphData) -> Inputs<'_> {
    Inputs { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off }
}

/// The device times of dispatches, summed by template.
#[cfg(feature = "gpu")]
fn by_template(times: &[autobatch::runtime_wgpu::DispatchTime]) -> Vec<KernelShare> {
    let mut kernels: Vec<(KernelShare, u64)> = Vec::new();
    for dispatch in times {
        let at = kernels.iter().position(|(kernel, _)| kernel.name == dispatch.template);
        let at = at.unwrap_or_else(|| {
            kernels.push((KernelShare::nothing(dispatch.template), 0));
            kernels.len() - 1
        });
        let (kernel, work) = &mut kernels[at];
        kernel.steps += 1;
        kernel.rows += dispatch.groups;
        kernel.seconds += dispatch.time.as_secs_f64();
        *work += dispatch.cost.work;
    }
    let rated = kernels.into_iter().map(|(mut kernel, work)| {
        kernel.gflops = 2e-9 * work as f64 / kernel.seconds.max(1e-12);
        kernel
    });
    rated.collect()
}

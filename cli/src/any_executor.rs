//! An executor on the CPU or on a GPU, for verbs that execute a plan without a session.

use crate::failure::Failure;
use autobatch::ir::graph::GraphData;
use autobatch::ir::plan::row_ops::Noise;
use autobatch::ir::plan::{Plan, Verified};
use autobatch::prelude::*;
use autobatch::runtime_cpu::{Counters, Executor, Inputs, resolve_threads};

/// An executor on the CPU or on a GPU.
pub(crate) enum AnyExecutor {
    /// With its number of threads.
    Cpu(Box<Executor>, usize),
    #[cfg(feature = "gpu")]
    Gpu(Box<autobatch::runtime_wgpu::Executor>),
}

impl AnyExecutor {
    /// Creates an executor on a device; 0 threads means one per core.
    pub(crate) fn new(device: &Device, threads: usize) -> Result<Self, Failure> {
        match device {
            Device::Cpu => {
                let threads = resolve_threads(threads);
                Ok(Self::Cpu(Box::new(Executor::new(threads).map_err(autobatch::Error::from)?), threads))
            }
            #[cfg(feature = "gpu")]
            Device::Gpu(selector) => {
                use autobatch::runtime_wgpu::Options;
                let options = Options { selector: selector.clone(), ..Default::default() };
                let executor =
                    autobatch::runtime_wgpu::Executor::new(options).map_err(autobatch::Error::from)?;
                Ok(Self::Gpu(Box::new(executor)))
            }
        }
    }

    /// A description of the device.
    pub(crate) fn description(&self) -> String {
        match self {
            Self::Cpu(executor, threads) => {
                format!("CPU  {}  {threads} of {} threads", executor.isa(), resolve_threads(0))
            }
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => match executor.gpu().map(|gpu| gpu.facts()) {
                Some(facts) => format!("{}  {}  {}", facts.name, facts.kind, facts.backend),
                None => "a GPU that was lost".to_owned(),
            },
        }
    }

    /// Whether this is the CPU, whose results define the correct bits.
    pub(crate) fn is_cpu(&self) -> bool {
        matches!(self, Self::Cpu(..))
    }

    /// The executor of the CPU, which alone watches for faults and counts the time of kernels.
    pub(crate) fn cpu(&mut self) -> Option<&mut Executor> {
        match self {
            Self::Cpu(executor, _) => Some(executor),
            #[cfg(feature = "gpu")]
            Self::Gpu(_) => None,
        }
    }

    /// The counters of the last run, if runs are counted.
    pub(crate) fn counters(&self) -> Option<&Counters> {
        match self {
            Self::Cpu(executor, _) => executor.counters(),
            #[cfg(feature = "gpu")]
            Self::Gpu(_) => None,
        }
    }

    /// Executes a plan with the bindings of a graph and without noise.
    pub(crate) fn execute(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        graph: &GraphData,
    ) -> autobatch::Result<()> {
        let (words, floats, noise) = (&graph.bindings.words, &graph.bindings.floats, Noise::Off);
        match self {
            Self::Cpu(executor, _) => executor.execute(plan, weights, Inputs { words, floats, noise })?,
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => {
                executor.execute(plan, weights, autobatch::runtime_wgpu::Inputs { words, floats, noise })?;
            }
        }
        Ok(())
    }

    /// The elements of an output of the last plan, words by their bits.
    pub(crate) fn output(&self, plan: &Plan, number: usize) -> &[f32] {
        match self {
            Self::Cpu(executor, _) => executor.output(plan, number),
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => executor.output(number),
        }
    }

    /// All outputs of the last plan, one after another.
    pub(crate) fn outputs(&self, plan: &Plan) -> Vec<f32> {
        (0..plan.outputs.len()).flat_map(|number| self.output(plan, number)).copied().collect()
    }
}

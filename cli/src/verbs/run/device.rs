//! The executor of `run`, on the CPU or on a GPU.

use crate::failure::Failure;
use autobatch::ir::graph::GraphData;
use autobatch::ir::plan::row_ops::Noise;
use autobatch::ir::plan::{Plan, Verified};
use autobatch::prelude::*;
use autobatch::runtime_cpu::{Bound, Executor, resolve_threads};

/// An executor on the CPU or on a GPU.
pub(super) enum AnyExecutor {
    /// With its number of threads.
    Cpu(Box<Executor>, usize),
    #[cfg(feature = "gpu")]
    Gpu(Box<autobatch::runtime_wgpu::Executor>),
}

impl AnyExecutor {
    /// Creates an executor on a device; 0 threads means one per core.
    pub(super) fn new(device: &Device, threads: usize) -> Result<Self, Failure> {
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
    pub(super) fn description(&self) -> String {
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
    pub(super) fn is_cpu(&self) -> bool {
        matches!(self, Self::Cpu(..))
    }

    /// Executes a plan and returns the concatenated outputs.
    pub(super) fn execute(
        &mut self,
        plan: &Verified<Plan>,
        weights: &Weights,
        graph: &GraphData,
    ) -> Result<Vec<f32>, Failure> {
        let (words, floats, noise) = (&graph.bindings.words, &graph.bindings.floats, Noise::Off);
        let outputs = 0..plan.outputs.len();
        Ok(match self {
            Self::Cpu(executor, _) => {
                executor
                    .execute(plan, weights, Bound { words, floats, noise })
                    .map_err(autobatch::Error::from)?;
                outputs.flat_map(|number| executor.output(plan, number)).copied().collect()
            }
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => {
                let bound = autobatch::runtime_wgpu::Bound { words, floats, noise };
                executor.execute(plan, weights, bound).map_err(autobatch::Error::from)?;
                outputs.flat_map(|number| executor.output(number)).copied().collect()
            }
        })
    }
}

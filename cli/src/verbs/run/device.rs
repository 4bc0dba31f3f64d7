//! The executor of `run`, on the CPU or on a GPU.

use crate::failure::Failure;
use autobatch::ir::graph::GraphData;
use autobatch::ir::plan::row_ops::Noise;
use autobatch::ir::plan::{Plan, Verified};
use autobatch::prelude::*;
use autobatch::runtime_cpu::{Bound, Executor, threads_meant};

/// An executor on some device.
pub(super) enum AnyExecutor {
    /// Of so many threads.
    Cpu(Box<Executor>, usize),
    #[cfg(feature = "gpu")]
    Gpu(Box<autobatch::runtime_wgpu::Executor>),
}

impl AnyExecutor {
    /// An executor on a device; 0 threads are one a core.
    pub(super) fn new(device: &Device, threads: usize) -> Result<Self, Failure> {
        match device {
            Device::Cpu => {
                let threads = threads_meant(threads);
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

    /// What it executes on, in words.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Cpu(executor, threads) => {
                format!("CPU  {}  {threads} of {} threads", executor.isa(), threads_meant(0))
            }
            #[cfg(feature = "gpu")]
            Self::Gpu(executor) => match executor.gpu().map(|gpu| gpu.facts()) {
                Some(facts) => format!("{}  {}  {}", facts.name, facts.kind, facts.backend),
                None => "a GPU that was lost".to_owned(),
            },
        }
    }

    /// Whether results are those of the CPU by definition.
    pub(super) fn is_cpu(&self) -> bool {
        matches!(self, Self::Cpu(..))
    }

    /// Executes a plan; its outputs, one behind the other.
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

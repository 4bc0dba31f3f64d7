//! The player of a session, whichever device it is on.

use crate::device::Device;
use crate::error::Result;
use autobatch_ir::Weights;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_runtime_cpu::Bound;
use std::fmt;

/// A player on some device.
pub(crate) enum AnyPlayer {
    Cpu(Box<autobatch_runtime_cpu::Player>),
    #[cfg(feature = "gpu")]
    Gpu(Box<autobatch_runtime_wgpu::Player>),
}

impl fmt::Debug for AnyPlayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(player) => player.fmt(f),
            #[cfg(feature = "gpu")]
            Self::Gpu(player) => player.fmt(f),
        }
    }
}

impl AnyPlayer {
    /// A player on a device; threads are the CPU's.
    pub(crate) fn new(device: &Device, threads: usize) -> Result<Self> {
        match device {
            Device::Cpu => Ok(Self::Cpu(Box::new(autobatch_runtime_cpu::Player::new(threads)?))),
            #[cfg(feature = "gpu")]
            Device::Gpu(selector) => {
                let options = autobatch_runtime_wgpu::Options {
                    selector: selector.clone(),
                    ..autobatch_runtime_wgpu::Options::default()
                };
                Ok(Self::Gpu(Box::new(autobatch_runtime_wgpu::Player::new(options)?)))
            }
        }
    }

    /// Plays a plan.
    pub(crate) fn play(&mut self, plan: &Verified<Plan>, weights: &Weights, bound: Bound<'_>) -> Result<()> {
        match self {
            Self::Cpu(player) => Ok(player.play(plan, weights, bound)?),
            #[cfg(feature = "gpu")]
            Self::Gpu(player) => {
                let Bound { words, floats, noise } = bound;
                let bound = autobatch_runtime_wgpu::Bound { words, floats, noise };
                Ok(player.play(plan, weights, bound)?)
            }
        }
    }

    /// The elements of an output of the plan that was played last.
    pub(crate) fn output<'a>(&'a self, plan: &Plan, number: usize) -> &'a [f32] {
        match self {
            Self::Cpu(player) => player.output(plan, number),
            #[cfg(feature = "gpu")]
            Self::Gpu(player) => player.output(number),
        }
    }
}

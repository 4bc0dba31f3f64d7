//! The devices that can execute plans.

use std::fmt;
use std::str::FromStr;

/// A device, as options and command lines name it: `cpu`, and with the feature `gpu` also `gpu`, `gpu:0`
/// and `gpu:part-of-a-name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// The CPU of this machine.
    #[default]
    Cpu,
    /// A GPU.
    #[cfg(feature = "gpu")]
    Gpu(autobatch_runtime_wgpu::Selector),
}

impl Device {
    /// Returns the fastest device of this machine, by a measurement. If this build has the feature `gpu` and
    /// the machine has a discrete or integrated GPU, the first GPU and the CPU execute the same small model,
    /// once per process. Software adapters are slower than the CPU executor and are not measured.
    #[must_use]
    pub fn best() -> Self {
        Self::best_and_why().0
    }

    /// Returns [`best`](Self::best) and the reason in one line.
    #[must_use]
    pub fn best_and_why() -> (Self, String) {
        #[cfg(feature = "gpu")]
        {
            static BEST: std::sync::OnceLock<(Device, String)> = std::sync::OnceLock::new();
            BEST.get_or_init(crate::measure::best).clone()
        }
        #[cfg(not(feature = "gpu"))]
        {
            (Self::Cpu, "this build executes on the cpu alone".to_owned())
        }
    }
}

/// A word that names no device.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownDevice {
    found: String,
}

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(word: &str) -> Result<Self, UnknownDevice> {
        if word == "cpu" {
            return Ok(Self::Cpu);
        }
        #[cfg(feature = "gpu")]
        if let Ok(selector) = word.parse() {
            return Ok(Self::Gpu(selector));
        }
        Err(UnknownDevice { found: word.to_owned() })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            #[cfg(feature = "gpu")]
            Self::Gpu(selector) => selector.fmt(f),
        }
    }
}

impl fmt::Display for UnknownDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = if cfg!(feature = "gpu") {
            "cpu, gpu, gpu:0, gpu:part-of-a-name"
        } else {
            "cpu (build with the feature `gpu` for more)"
        };
        write!(f, "no device is called {:?}; this build executes plans on: {known}", self.found)
    }
}

impl std::error::Error for UnknownDevice {}

autobatch_ir::debug_as_display!(UnknownDevice);

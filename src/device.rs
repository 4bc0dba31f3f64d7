//! Where plans are executed.

use std::fmt;
use std::str::FromStr;

/// A device, as options and command lines name it: `cpu`, and with the feature `gpu` also `gpu`, `gpu:0`
/// and `gpu:part-of-a-name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// The processor that the program runs on.
    #[default]
    Cpu,
    /// A GPU.
    #[cfg(feature = "gpu")]
    Gpu(autobatch_runtime_wgpu::Selector),
}

impl Device {
    /// The fastest device of this machine, by a measurement: if this build executes on GPUs and there is a
    /// discrete or integrated one, the first of them and the CPU execute the same small model, once for the
    /// process, and the faster is the best. Software adapters are slower than the CPU executor and are not
    /// measured.
    #[must_use]
    pub fn best() -> Self {
        Self::best_and_why().0
    }

    /// [`best`](Self::best), and the reason in a line.
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

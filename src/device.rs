//! Where plans are played.

use std::fmt;
use std::str::FromStr;

/// A device, as options and command lines name it: `cpu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Device {
    /// The processor that the program runs on.
    #[default]
    Cpu,
}

impl Device {
    /// The fastest device of this machine that this build plays plans on.
    #[must_use]
    pub const fn best() -> Self {
        Self::Cpu
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
        match word {
            "cpu" => Ok(Self::Cpu),
            _ => Err(UnknownDevice { found: word.to_owned() }),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
        }
    }
}

impl fmt::Display for UnknownDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no device is called {:?}; this build plays plans on: cpu", self.found)
    }
}

impl std::error::Error for UnknownDevice {}

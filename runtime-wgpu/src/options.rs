//! Options of a device: which adapter, how it rounds, which limits apply.

use crate::adapter::Selector;
use std::path::PathBuf;
use std::time::Duration;

/// The rounding of products, quotients and square roots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// As the device rounds. With fused multiply-add and correctly rounded division, products and elementwise functions
    /// have the bits of the CPU. Otherwise, as on software Vulkan, they are within bounds.
    #[default]
    Native,
    /// As the language defines, by error-free transformations where the device rounds twice. This is twenty times
    /// slower and meant for checks. Denormals stay as the device handles them.
    Exact,
}

/// Limits below those of the device, for tests and for sharing the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of one binding.
    pub binding: Option<u64>,
    /// Storage bindings of a module.
    pub bindings: Option<u32>,
    /// Bytes of scratch rows. Steps that need more are split by lanes.
    pub scratch: Option<u64>,
    /// Bytes of rows and parameters together.
    pub memory: Option<u64>,
    /// The time of a dispatch, predicted for a small integrated GPU. Steps that take longer are divided by lanes.
    pub dispatch_time: Option<Duration>,
    /// Loop iterations of a thread. Plans that need more are rejected.
    pub iterations: Option<u64>,
}

/// The cache of compiled pipelines across processes, if the adapter supports one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PipelineCacheDir {
    /// Nowhere. Most drivers keep a cache of their own as well.
    #[default]
    Disabled,
    /// In the folder `autobatch` of the user's cache directory.
    User,
    /// In this folder.
    Folder(PathBuf),
}

impl PipelineCacheDir {
    /// The setting of `AUTOBATCH_PIPELINES`: `off`, or a folder. Without it, the user's cache directory.
    #[must_use]
    pub fn from_env() -> Self {
        match std::env::var_os("AUTOBATCH_PIPELINES") {
            None => Self::User,
            Some(word) if word == "off" || word.is_empty() => Self::Disabled,
            Some(folder) => Self::Folder(folder.into()),
        }
    }
}

/// Options of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The adapter.
    pub selector: Selector,
    /// Its rounding.
    pub arithmetic: Arithmetic,
    /// Limits below those of the device.
    pub budget: Budget,
    /// Seconds that a run may take before [`GpuError::Timeout`](crate::GpuError::Timeout).
    pub timeout: u64,
    /// True if all products use the same tile, whatever their number of rows. All tiles compute the same chains, but a
    /// driver's compiler may round the code after them differently.
    pub strict: bool,
    /// The cache of compiled pipelines.
    pub pipelines: PipelineCacheDir,
    /// True if threads use subgroup operations, if the adapter has them. The bits are the same.
    pub subgroups: bool,
    /// True if the arguments of dispatches are immediates, if the adapter has them. Otherwise each dispatch binds them,
    /// which takes more host time. The bits are the same.
    pub immediates: bool,
    /// True if wgpu adds a counter to every loop, which makes a loop without end stop. The loops of the templates all end,
    /// and the counters keep compilers from unrolling them. The bits are the same.
    pub counted_loops: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            selector: Selector::Best,
            arithmetic: Arithmetic::Native,
            budget: Budget::default(),
            timeout: 120,
            strict: false,
            pipelines: PipelineCacheDir::Disabled,
            subgroups: true,
            immediates: true,
            counted_loops: false,
        }
    }
}

//! How a device is opened: which one, how it iterations, what it may take.

use crate::adapter::Selector;
use std::path::PathBuf;

/// How products, quotients and roots are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// As the device does. Where it fuses a multiply-add and divides with one rounding, products and
    /// elementwise functions have the bits of the CPU; where it does not (software Vulkan does not), they
    /// are within bounds.
    #[default]
    Native,
    /// As the definition says, by error-free transformations where the device rounds twice: twenty times
    /// slower, and for checks. Denormals stay as the device has them.
    Exact,
}

/// Bounds below those of the device, for tests and for sharing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of one binding.
    pub binding: Option<u64>,
    /// Storage bindings a module may have.
    pub bindings: Option<u32>,
    /// Bytes of rows that stages leave for one another; steps that need more are executed in pieces.
    pub scratch: Option<u64>,
    /// Bytes of rows and parameters together.
    pub memory: Option<u64>,
    /// LoopLimit of the loops of a thread; plans that need more are refused.
    pub iterations: Option<u64>,
}

/// Where what the driver makes of pipelines is kept from process to process, if the adapter has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PipelineCacheDir {
    /// Disabled. Most drivers keep a cache of their own as well.
    #[default]
    Disabled,
    /// In the folder `autobatch` of the user's caches.
    User,
    /// In this folder.
    Folder(PathBuf),
}

impl PipelineCacheDir {
    /// As `AUTOBATCH_PIPELINES` says: `off`, or a folder. Without it, among the user's caches.
    #[must_use]
    pub fn from_env() -> Self {
        match std::env::var_os("AUTOBATCH_PIPELINES") {
            None => Self::User,
            Some(word) if word == "off" || word.is_empty() => Self::Disabled,
            Some(folder) => Self::Folder(folder.into()),
        }
    }
}

/// How a device is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which adapter.
    pub selector: Selector,
    /// How it iterations.
    pub arithmetic: Arithmetic,
    /// Bounds below those of the device.
    pub budget: Budget,
    /// How many seconds a run may take before [`GpuError::Timeout`].
    pub timeout: u64,
    /// Whether all products are cut alike, whatever their rows. Tiles of different shapes compute the same
    /// chains, but a driver's compiler is free to round what follows them differently in each.
    pub strict: bool,
    /// Where pipelines are kept.
    pub pipelines: PipelineCacheDir,
    /// Whether threads of a subgroup may read from one another, where the adapter has it. Bits are the same.
    pub subgroups: bool,
    /// Whether the numbers of a dispatch go among the commands, where the adapter has it; else they are bound
    /// anew for each dispatch, which takes the host longer. Bits are the same.
    pub immediates: bool,
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
        }
    }
}

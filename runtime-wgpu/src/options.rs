//! How a device is opened: which one, how it rounds, what it may take.

use crate::adapter::Selector;
use crate::error::GpuError;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

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

/// With how many digits the numbers of products are multiplied. Fewer take effect where the device has matrix units that
/// add products of halves to floats, in plans that are not for training, because gradients would vanish among halves, and for
/// products that are worth the two dispatches more: those whose cell goes on with their sums, element by element, or has several
/// of them side by side. Elsewhere products are made of whole numbers. Sums are floats in any case, a row's bits do not depend on its batch,
/// and what is not finite makes no finite sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Terms {
    /// All of them: 24 bits.
    #[default]
    Whole,
    /// As the sum of two halves: some 21 bits, for three times the work of halves. Of numbers below 2^-4 fewer: what is
    /// less than 2^-25 is lost. Beyond 65,504 fewer as well; beyond 131,008 they count as that.
    Pairs,
    /// Rounded to a half: 11 bits, of numbers below 2^-14 fewer; beyond 65,504 they count as that.
    Halves,
}

impl Terms {
    /// As `AUTOBATCH_TERMS` says: `whole`, `pairs` or `halves`. Without it, or if it is empty, whole.
    ///
    /// # Errors
    /// If it says something else.
    pub fn from_env() -> Result<Self, GpuError> {
        match std::env::var_os("AUTOBATCH_TERMS") {
            None => Ok(Self::Whole),
            Some(word) if word.is_empty() => Ok(Self::Whole),
            Some(word) => word.to_string_lossy().parse(),
        }
    }
}

impl FromStr for Terms {
    type Err = GpuError;

    fn from_str(word: &str) -> Result<Self, GpuError> {
        let known = [Self::Whole, Self::Pairs, Self::Halves];
        let found = known.into_iter().find(|terms| terms.to_string() == word);
        found.ok_or_else(|| GpuError::Terms { found: word.to_owned() })
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "whole",
            Self::Pairs => "pairs",
            Self::Halves => "halves",
        })
    }
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
    /// Rounds of the loops of a thread; plans that need more are refused.
    pub rounds: Option<u64>,
}

/// Where what the driver makes of pipelines is kept from process to process, if the adapter has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Nowhere. Most drivers keep a cache of their own as well.
    #[default]
    Nowhere,
    /// In the folder `autobatch` of the user's caches.
    OfUser,
    /// In this folder.
    Folder(PathBuf),
}

impl Kept {
    /// As `AUTOBATCH_PIPELINES` says: `off`, or a folder. Without it, among the user's caches.
    #[must_use]
    pub fn from_env() -> Self {
        match std::env::var_os("AUTOBATCH_PIPELINES") {
            None => Self::OfUser,
            Some(word) if word == "off" || word.is_empty() => Self::Nowhere,
            Some(folder) => Self::Folder(folder.into()),
        }
    }
}

/// How a device is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which adapter.
    pub selector: Selector,
    /// How it rounds.
    pub arithmetic: Arithmetic,
    /// Bounds below those of the device.
    pub budget: Budget,
    /// How many seconds a run may take before [`GpuError::Silent`].
    pub patience: u64,
    /// Whether all products are cut alike, whatever their rows. Tiles of different shapes compute the same
    /// chains, but a driver's compiler is free to round what follows them differently in each.
    pub strict: bool,
    /// Where pipelines are kept.
    pub pipelines: Kept,
    /// Whether threads of a subgroup may read from one another, where the adapter has it. Bits are the same.
    pub subgroups: bool,
    /// Whether the numbers of a dispatch go among the commands, where the adapter has it; else they are bound
    /// anew for each dispatch, which takes the host longer. Bits are the same.
    pub immediates: bool,
    /// With how many digits products are made.
    pub terms: Terms,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            selector: Selector::Best,
            arithmetic: Arithmetic::Native,
            budget: Budget::default(),
            patience: 120,
            strict: false,
            pipelines: Kept::Nowhere,
            subgroups: true,
            immediates: true,
            terms: Terms::Whole,
        }
    }
}

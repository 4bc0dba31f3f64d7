//! Errors of [`import`](super::import).

use super::LayoutError;
use autobatch_ir::weights::WeightsError;
use std::fmt;

/// The reason why a state dict was refused. The weights are unchanged.
#[derive(Clone, PartialEq, Eq)]
pub enum ImportError {
    /// The arrays of a module do not fit each other.
    Layout {
        /// The module in PyTorch.
        module: String,
        /// The reason.
        error: LayoutError,
    },
    /// An array does not fit its parameter.
    Weights {
        /// The module in PyTorch.
        module: String,
        /// The reason.
        error: WeightsError,
    },
    /// An entry of the names matches no module of the state dict, or no layer here.
    Unmatched {
        /// The module in PyTorch.
        from: String,
        /// The layer here.
        to: String,
        /// Whether the state dict has the module; then it is the layer that is missing.
        has_module: bool,
    },
    /// The numbered layers of a module differ from those here.
    Numbers {
        /// The module in PyTorch.
        module: String,
        /// Its numbers with arrays.
        found: Vec<usize>,
        /// The numbers of the layers here.
        expected: Vec<usize>,
    },
    /// A module has some arrays of its kind and lacks others.
    Incomplete {
        /// The module in PyTorch.
        module: String,
        /// The missing array.
        array: String,
    },
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout { module, error } => write!(f, "module {module:?} of the state dict: {error}"),
            Self::Weights { module, error } => write!(
                f,
                "module {module:?} of the state dict: {error}; declare the layer with the sizes of the module"
            ),
            Self::Unmatched { from, to, has_module: false } => write!(
                f,
                "the state dict has no module {from:?}, which the names map to {to:?}; give a name that it has"
            ),
            Self::Unmatched { from, to, has_module: true } => write!(
                f,
                "no array of module {from:?} belongs to a parameter of {to:?}; give the name of a declared layer"
            ),
            Self::Numbers { module, found, expected } => write!(
                f,
                "module {module:?} of the state dict has arrays in its layers {found:?}, and the layers here are {expected:?}; declare as many layers, or map each one by its name"
            ),
            Self::Incomplete { module, array } => {
                write!(f, "module {module:?} of the state dict lacks {array}; save the whole state dict")
            }
        }
    }
}

impl std::error::Error for ImportError {}

autobatch_ir::debug_as_display!(ImportError);

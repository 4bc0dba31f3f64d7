//! Errors of checkpoints and weights files.

use crate::train::checkpoint::STATE;
use autobatch_ir::files::{read_remedy, write_remedy};
use autobatch_ir::printable::brief;
use autobatch_nn::pytorch::ImportError;
use std::fmt;
use std::path::PathBuf;

/// The reason why a weights file or a checkpoint could not be written or read.
#[non_exhaustive]
pub enum CheckpointError {
    /// The content of a file was refused.
    File {
        /// Its path.
        path: PathBuf,
        /// The reason.
        error: Box<CheckpointError>,
    },
    /// The file could not be read or written.
    Io {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
        /// Whether it was read, not written.
        is_read: bool,
    },
    /// The device that holds the parameters could not be read.
    Device(
        /// The reason.
        String,
    ),
    /// The file is no safetensors file, is cut off, or its content has changed.
    Damaged(
        /// The damage.
        String,
    ),
    /// The file holds arrays but is no checkpoint.
    NoCheckpoint,
    /// The format has an unknown version.
    Version {
        /// The version of the file.
        found: u32,
        /// The supported version.
        known: u32,
    },
    /// The checkpoint comes from another optimiser.
    OtherOptimizer {
        /// The optimiser of the trainer.
        expected: String,
        /// The optimiser of the file.
        found: String,
    },
    /// The checkpoint froze other parameters.
    OtherFrozen {
        /// Parameters that only the trainer freezes.
        here: Vec<String>,
        /// Parameters that only the checkpoint froze.
        there: Vec<String>,
    },
    /// The ranks of a group could not write or read a checkpoint together.
    Ranks(
        /// The reason.
        String,
    ),
    /// Another rank read another checkpoint, or none.
    OtherRank {
        /// The number of the rank.
        rank: usize,
        /// The checkpoint of that rank.
        found: String,
        /// The checkpoint of this rank.
        own: String,
    },
    /// Names, shapes and notes exceed the header of a file.
    Unwritten(
        /// The reason.
        String,
    ),
    /// An array is missing: the checkpoint belongs to another model, or froze other parameters.
    Missing {
        /// Its name.
        name: String,
    },
    /// An array belongs to no parameter.
    Unknown {
        /// Its name.
        name: String,
    },
    /// An array holds no floats.
    Numbers {
        /// Its name.
        name: String,
        /// The type of its elements, in the words of safetensors.
        found: String,
    },
    /// The arrays of a state dict do not fit the layers.
    PyTorch(ImportError),
    /// A parameter has another shape.
    Shape {
        /// Its name.
        name: String,
        /// The shape in the module.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
}

impl CheckpointError {
    pub(crate) fn damaged(error: impl fmt::Display) -> Self {
        Self::Damaged(error.to_string())
    }

    pub(crate) fn unwritten(error: impl fmt::Display) -> Self {
        Self::Unwritten(error.to_string())
    }

    /// Returns the fault without the name of the file.
    #[must_use]
    pub fn fault(&self) -> &Self {
        match self {
            Self::File { error, .. } => error.fault(),
            fault => fault,
        }
    }
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Io { path, error, is_read } => {
                let remedy = if *is_read { read_remedy(error) } else { write_remedy(error) };
                write!(f, "{}: {error}; {remedy}", path.display())
            }
            Self::Device(why) => write!(f, "cannot read the parameters from the device: {why}"),
            Self::Ranks(why) => write!(f, "the ranks could not write or read a checkpoint together: {why}"),
            Self::OtherRank { rank, found, own } => {
                write!(f, "rank {rank} read {found}; this rank read {own}; give all ranks the same file")
            }
            Self::Damaged(what) => {
                write!(
                    f,
                    "the file is damaged or is no safetensors file: {what}; copy it again, or name a file that write_weights or Trainer::save wrote"
                )
            }
            Self::NoCheckpoint => {
                f.write_str("expected a checkpoint, found arrays only; read them with train::read_weights")
            }
            Self::Version { found, known } => {
                write!(
                    f,
                    "expected version {known} of checkpoints, found {found}; use the program that wrote it"
                )
            }
            Self::OtherOptimizer { expected, found } => {
                write!(
                    f,
                    "expected a checkpoint of {expected}, found one of {}; use the same optimiser",
                    brief(found)
                )
            }
            Self::OtherFrozen { here, there } => {
                f.write_str("the checkpoint froze other parameters:")?;
                for (names, frozen) in [(here, "here alone"), (there, "there alone")] {
                    if let Some(first) = names.first() {
                        let more = names.len() - 1;
                        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                        write!(f, " @{}{more} {frozen};", brief(first))?;
                    }
                }
                f.write_str(" freeze the same parameters and load again, or read only the parameters with train::read_weights")
            }
            Self::Unwritten(why) => write!(
                f,
                "the header of a safetensors file cannot hold the names, shapes and notes ({why}); write shorter notes, or keep long ones in a file of their own"
            ),
            Self::Missing { name } if name.starts_with(STATE) => write!(
                f,
                "expected an array {}, the file has none: the optimiser has other options, or other parameters were frozen",
                brief(name)
            ),
            Self::Unknown { name } if name.starts_with(STATE) => write!(
                f,
                "the file holds {}, which this optimiser does not use: it has other options, or other parameters were frozen",
                brief(name)
            ),
            Self::Missing { name } => write!(
                f,
                "expected an array {}, the file has none: it belongs to another model, or other parameters were frozen",
                brief(name)
            ),
            Self::Unknown { name } => {
                write!(
                    f,
                    "the file holds {}, but the module has no such parameter: the file belongs to another model",
                    brief(name)
                )
            }
            Self::Numbers { name, found } => {
                write!(f, "{}: expected F32, F16, BF16 or F64, found {found}; write floats", brief(name))
            }
            Self::PyTorch(error) => error.fmt(f),
            Self::Shape { name, expected, found } => {
                write!(
                    f,
                    "{}: expected the shape {expected:?}, found {found:?}; build the model with the same sizes",
                    brief(name)
                )
            }
        }
    }
}

impl std::error::Error for CheckpointError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } => Some(error),
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

autobatch_ir::debug_as_display!(CheckpointError);

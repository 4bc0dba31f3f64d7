//! The errors of opening a model.

use super::entries::{ENTRIES, Entry, entry_or_letter};
use crate::data::DataError;
use autobatch::ir::EmitError;
use std::fmt;
use std::path::PathBuf;

/// The reason why a model cannot be opened.
pub enum OpenError {
    /// No entry has the name.
    Unknown(
        /// The name.
        String,
    ),
    /// A size is out of range, or the model has no such size.
    Size {
        /// The name of the size.
        what: &'static str,
        /// The allowed values.
        expected: String,
        /// The requested value.
        found: usize,
    },
    /// The entry cannot read instances from a file.
    NoFile(
        /// The name of the entry.
        &'static str,
    ),
    /// A lesson was asked to read a JSON file of the comparative benchmarks, whose labels are random.
    NoLesson(
        /// The file.
        PathBuf,
    ),
    /// A part of a corpus is empty.
    NoInstances {
        /// The corpus.
        path: PathBuf,
        /// The purpose of the part.
        to: &'static str,
    },
    /// The JSON file of instances could not be read.
    Data(DataError),
    /// The corpus could not be read.
    Corpus {
        /// The entry of the model.
        entry: &'static Entry,
        /// The reason.
        error: DataError,
    },
    /// The model cannot read an instance.
    Instance {
        /// The origin of the instance.
        source: String,
        /// The number of the instance, from 1.
        number: usize,
        /// The reason.
        reason: String,
    },
    /// The description of a trained model is malformed.
    Specification(
        /// The reason.
        String,
    ),
    /// The emitter rejects the model.
    Emit(EmitError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let names = ENTRIES.map(|entry| entry.name);
                write!(f, "unknown model `{name}`: expected one of {}", names.join(", "))?;
                match entry_or_letter(name) {
                    Ok(entry) => write!(f, "; did you mean {}?", entry.name),
                    Err(_) => Ok(()),
                }
            }
            Self::Size { what, expected, found } => write!(f, "{what} must be {expected}, found {found}"),
            Self::NoFile(name) => {
                write!(
                    f,
                    "model `{name}` has no JSON form of instances; name the folder of its corpus or generate instances"
                )
            }
            Self::NoLesson(file) => write!(
                f,
                "{}: instances of the comparative benchmarks have random labels, so there is nothing to learn; name the folder of a corpus",
                file.display()
            ),
            Self::NoInstances { path, to } => {
                write!(
                    f,
                    "{}: expected at least one instance to {to}, found none; name another corpus",
                    path.display()
                )
            }
            Self::Data(error) | Self::Corpus { error, .. } => error.fmt(f),
            Self::Instance { source, number, reason } => write!(f, "{source}: instance {number}: {reason}"),
            Self::Specification(reason) => {
                write!(f, "the description of the trained model is malformed: {reason}")
            }
            Self::Emit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

autobatch::ir::debug_as_display!(OpenError);

impl From<DataError> for OpenError {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<EmitError> for OpenError {
    fn from(error: EmitError) -> Self {
        Self::Emit(error)
    }
}

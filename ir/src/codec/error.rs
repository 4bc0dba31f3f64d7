//! Errors of loading files.

use super::Kind;
use crate::files::read_remedy;
use crate::graph;
use crate::plan::{self, OTHER_VERSION_HELP};
use crate::printable::printable;
use thiserror::Error;

/// Why bytes were not loaded.
#[expect(missing_docs, reason = "the message of each error names its fields")]
#[derive(Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The content of a file was rejected.
    #[error("{path}: {error}")]
    File {
        path: String,
        #[source]
        error: Box<LoadError>,
    },
    /// The file could not be opened or read.
    #[error("{} cannot be read: {error}; {}", printable(path), read_remedy(error))]
    Io {
        path: String,
        #[source]
        error: std::io::Error,
    },
    /// The bytes do not start with the magic of this format.
    #[error("this is not a binary file of autobatch: the first bytes differ; is it a text file?")]
    Foreign,
    /// The file has another kind than expected.
    #[error("expected a {expected}{}", other_kind(*.expected, *.found))]
    Kind { expected: Kind, found: Option<Kind> },
    /// The format version is unknown.
    #[error(
        "the file has format version {found}, this autobatch reads {known}: {}",
        other_version(*.kind, found > known)
    )]
    Version { kind: Kind, found: u32, known: u32 },
    /// The length of the file differs from its header.
    #[error("the file {}", other_length(*.expected, *.found))]
    Length { expected: u64, found: u64 },
    /// The hash of the payload differs from the header.
    #[error("the file is damaged: its checksum differs; copy it again")]
    Checksum,
    /// The payload does not have the format of its kind.
    #[error("the file is malformed: {0}; autobatch did not write it, save it again")]
    Malformed(String),
    /// The content breaks rules of graphs.
    #[error("{0}")]
    Verify(#[from] graph::VerifyErrors),
    /// The content breaks rules of plans.
    #[error("{0}")]
    VerifyPlan(#[from] plan::VerifyErrors),
}

impl LoadError {
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::Malformed(message.into())
    }
}

fn other_kind(expected: Kind, found: Option<Kind>) -> String {
    let Some(found) = found else { return ", found an unknown kind of file; update autobatch".to_owned() };
    let (expected, extension) = (expected.extension(), found.extension());
    format!(" (.{expected}), found a {found} (.{extension}); name a file of the expected kind")
}

const fn other_version(kind: Kind, newer: bool) -> &'static str {
    match kind {
        _ if newer => "update autobatch",
        Kind::Plan | Kind::Update => OTHER_VERSION_HELP,
        Kind::Graph | Kind::Module => "write the file again with this autobatch",
    }
}

fn other_length(expected: u64, found: u64) -> String {
    match found < expected {
        true if found == 0 => format!("is empty: expected {expected} bytes or more; copy it again"),
        true => format!("is truncated: expected {expected} bytes, found {found}; copy it again"),
        false => format!("has trailing bytes: expected {expected} bytes, found {found}"),
    }
}

crate::debug_as_display!(LoadError);

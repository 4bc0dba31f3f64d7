//! Binary files: one envelope for all kinds, and the only place that knows their bytes.
//!
//! ```text
//! magic 8 | kind u32 | version u32 | payload length u64 | payload hash u64 | payload
//! ```
//! All numbers are little endian. The payload is `bincode` of a flat record whose fields are byte
//! blobs, read in place: words end to end, no recursion, no element without a size, no count that
//! memory is taken for before as many bytes were seen. So a forged file costs a small multiple of
//! its size. The hash finds damage, it is no ground for trust: whatever is read is verified, and
//! what can be derived (producers, the structural hash) is derived anew.

mod graphs;
mod kernels;
mod modules;
mod plans;
mod tables;
#[cfg(test)]
mod tests;
mod updates;

use crate::graph::VerifyErrors;
use crate::hash::hash_bytes;
use bincode::config::{Configuration, Fixint, LittleEndian, standard};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

const MAGIC: [u8; 8] = *b"\x89abatch\n";
const HEADER: usize = 32;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A graph with its module, `.abg`.
    Graph,
    /// A plan, `.abp`.
    Plan,
    /// A module, `.abm`.
    Module,
    /// An update plan, `.abu`.
    Update,
}

impl Kind {
    /// Every kind, by its number in files.
    pub const ALL: [Self; 4] = [Self::Graph, Self::Plan, Self::Module, Self::Update];

    /// The newest version of the kind's format that is known here.
    #[must_use]
    pub const fn version(self) -> u32 {
        match self {
            Self::Graph | Self::Module => 1,
            Self::Plan | Self::Update => crate::plan::VERSION,
        }
    }

    /// The usual ending of file names.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Graph => "abg",
            Self::Plan => "abp",
            Self::Module => "abm",
            Self::Update => "abu",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Graph => "graph",
            Self::Plan => "plan",
            Self::Module => "module",
            Self::Update => "update plan",
        })
    }
}

/// Why bytes were not read.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// What was read of a file was refused.
    File {
        /// Its path.
        path: String,
        /// Why.
        error: Box<LoadError>,
    },
    /// The file could not be opened or read.
    Io {
        /// Its path.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The bytes do not begin as a file of ours.
    Foreign,
    /// Another kind of file than asked for.
    Kind {
        /// What was asked for.
        wanted: Kind,
        /// What it is; `None` for a kind unknown here.
        found: Option<Kind>,
    },
    /// A version of the format that is not known here.
    Version {
        /// What the file holds.
        kind: Kind,
        /// The file's.
        found: u32,
        /// The newest known.
        known: u32,
    },
    /// The file has not the length that its header says.
    Length {
        /// Bytes that the header promises.
        wanted: u64,
        /// Bytes there are.
        found: u64,
    },
    /// The payload is not what was written.
    Checksum,
    /// The payload cannot be taken apart.
    Malformed(String),
    /// The content breaks rules of graphs.
    Verify(VerifyErrors),
    /// The content breaks rules of plans.
    VerifyPlan(crate::plan::VerifyErrors),
}

impl LoadError {
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::Malformed(message.into())
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } => write!(f, "{path}: {error}"),
            Self::Io { path, error } => write!(f, "{path} cannot be read: {error}; check the path"),
            Self::Foreign => {
                f.write_str("this is no binary file of autobatch: the first bytes differ; is it a text file?")
            }
            Self::Kind { wanted, found: Some(found) } => {
                write!(f, "expected a {wanted} (.{}), found a {found}", wanted.extension())?;
                write!(f, " (.{}): give the right file", found.extension())
            }
            Self::Kind { wanted, found: None } => {
                write!(f, "expected a {wanted}, found a kind of file unknown here: update autobatch")
            }
            Self::Version { kind: _, found, known } if found > known => {
                write!(f, "the file has format version {found}, this autobatch reads {known}: update it")
            }
            Self::Version { kind, found, known } => {
                let remedy = match kind {
                    Kind::Plan | Kind::Update => crate::plan::OTHER_VERSION_HELP,
                    Kind::Graph | Kind::Module => "save it anew",
                };
                write!(f, "the file has format version {found}, this autobatch reads {known}: {remedy}")
            }
            Self::Length { wanted, found } if found < wanted => {
                write!(f, "the file is cut off: expected {wanted} bytes, found {found}; copy it again")
            }
            Self::Length { wanted, found } => {
                write!(f, "the file goes on after its end: expected {wanted} bytes, found {found}")
            }
            Self::Checksum => f.write_str("the file is damaged: its checksum differs; copy it again"),
            Self::Malformed(message) => {
                write!(f, "the file is malformed: {message}; it was not written by autobatch, save it anew")
            }
            Self::Verify(errors) => errors.fmt(f),
            Self::VerifyPlan(errors) => errors.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { error, .. } => Some(error),
            Self::Io { error, .. } => Some(error),
            Self::Verify(errors) => Some(errors),
            Self::VerifyPlan(errors) => Some(errors),
            _ => None,
        }
    }
}

impl From<VerifyErrors> for LoadError {
    fn from(errors: VerifyErrors) -> Self {
        Self::Verify(errors)
    }
}

impl From<crate::plan::VerifyErrors> for LoadError {
    fn from(errors: crate::plan::VerifyErrors) -> Self {
        Self::VerifyPlan(errors)
    }
}

const FORMAT: Configuration<LittleEndian, Fixint> = standard().with_fixed_int_encoding();

/// A record in its envelope.
pub(crate) fn seal<T: Serialize>(kind: Kind, record: &T, size_hint: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + size_hint);
    bytes.resize(HEADER, 0);
    bincode::serde::encode_into_std_write(record, &mut bytes, FORMAT)
        .expect("records hold blobs only and a vector takes all of them");
    let (header, payload) = bytes.split_at_mut(HEADER);
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&(kind as u32).to_le_bytes());
    header[12..16].copy_from_slice(&kind.version().to_le_bytes());
    header[16..24].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    header[24..32].copy_from_slice(&hash_bytes(payload).to_le_bytes());
    bytes
}

/// The record in an envelope, borrowing from it.
///
/// # Errors
/// If the envelope is not sound or the payload is no such record.
pub(crate) fn open<'a, T: Deserialize<'a>>(kind: Kind, bytes: &'a [u8]) -> Result<T, LoadError> {
    let payload = unwrap(kind, bytes)?;
    let (record, used) = decode(payload).map_err(|error| LoadError::malformed(error.to_string()))?;
    if used != payload.len() {
        let message = format!("{} bytes follow the record", payload.len() - used);
        return Err(LoadError::malformed(message));
    }
    Ok(record)
}

fn unwrap(kind: Kind, bytes: &[u8]) -> Result<&[u8], LoadError> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] || bytes.is_empty() {
        return Err(LoadError::Foreign);
    }
    let Some((header, payload)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(LoadError::Length { wanted: HEADER as u64, found: bytes.len() as u64 });
    };
    let number = |at: usize, len: usize| {
        header[at..at + len].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let found = Kind::ALL.into_iter().find(|kind| *kind as u64 == number(8, 4));
    if found != Some(kind) {
        return Err(LoadError::Kind { wanted: kind, found });
    }
    let version = number(12, 4) as u32;
    if version != kind.version() {
        return Err(LoadError::Version { kind, found: version, known: kind.version() });
    }
    let wanted = number(16, 8);
    if wanted != payload.len() as u64 {
        let header = HEADER as u64;
        let wanted = wanted.saturating_add(header);
        return Err(LoadError::Length { wanted, found: bytes.len() as u64 });
    }
    if number(24, 8) != hash_bytes(payload) {
        return Err(LoadError::Checksum);
    }
    Ok(payload)
}

/// Blobs are borrowed, so decoding takes no memory; the limit, which must be a constant, is the
/// second wall: the next power of 16 above the size of the payload.
fn decode<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<(T, usize), bincode::error::DecodeError> {
    use bincode::serde::borrow_decode_from_slice as read;
    match payload.len() {
        0..0x1000 => read(payload, FORMAT.with_limit::<0x1000>()),
        0x1000..0x1_0000 => read(payload, FORMAT.with_limit::<0x1_0000>()),
        0x1_0000..0x10_0000 => read(payload, FORMAT.with_limit::<0x10_0000>()),
        0x10_0000..0x100_0000 => read(payload, FORMAT.with_limit::<0x100_0000>()),
        0x100_0000..0x1000_0000 => read(payload, FORMAT.with_limit::<0x1000_0000>()),
        _ => read(payload, FORMAT.with_limit::<{ isize::MAX as usize }>()),
    }
}

/// What a file's bytes are read as; errors name the file.
pub(crate) fn read_file<T>(
    path: &Path,
    read: impl FnOnce(&[u8]) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    let named = || path.display().to_string();
    let bytes = crate::files::read(path).map_err(|error| LoadError::Io { path: named(), error })?;
    read(&bytes).map_err(|error| LoadError::File { path: named(), error: Box::new(error) })
}

/// Bytes that are read in place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Blob<'a>(Cow<'a, [u8]>);

impl Serialize for Blob<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Blob<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de [u8]>::deserialize(deserializer).map(|bytes| Self(Cow::Borrowed(bytes)))
    }
}

impl<'a> Blob<'a> {
    /// Plain data whose every member is made of 32-bit words.
    fn plain<T: bytemuck::NoUninit>(items: &'a [T]) -> Self {
        const { assert!(size_of::<T>().is_multiple_of(4)) };
        let bytes: &[u8] = bytemuck::cast_slice(items);
        if cfg!(target_endian = "little") {
            return Self(Cow::Borrowed(bytes));
        }
        let swapped = bytes.as_chunks::<4>().0.iter();
        Self(Cow::Owned(swapped.flat_map(|word| u32::from_ne_bytes(*word).to_le_bytes()).collect()))
    }

    fn words(words: &[u32]) -> Self {
        Self(Cow::Owned(words.iter().flat_map(|word| word.to_le_bytes()).collect()))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// A reader of the words, named for messages.
    fn reader(&'a self, what: &'static str) -> Result<Words<'a>, LoadError> {
        match self.0.as_chunks::<4>() {
            (words, []) => Ok(Words { words, what }),
            _ => Err(LoadError::malformed(format!("{what} are no whole number of words"))),
        }
    }
}

/// Words that are still to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    words: &'a [[u8; 4]],
    what: &'static str,
}

impl<'a> Words<'a> {
    fn len(&self) -> usize {
        self.words.len()
    }

    fn next(&mut self) -> Result<u32, LoadError> {
        let [word] = self.array()?;
        Ok(word)
    }

    fn array<const N: usize>(&mut self) -> Result<[u32; N], LoadError> {
        let Some((head, rest)) = self.words.split_first_chunk::<N>() else { return Err(self.ended()) };
        self.words = rest;
        Ok(head.map(u32::from_le_bytes))
    }

    /// The next `count` words, all of which are there.
    fn take(&mut self, count: u32) -> Result<Words<'a>, LoadError> {
        match self.words.split_at_checked(count as usize) {
            Some((words, rest)) => {
                self.words = rest;
                Ok(Words { words, what: self.what })
            }
            None => Err(self.ended()),
        }
    }

    /// All of them, each as a member of something; `None` refuses a word.
    fn members<T>(self, member: impl Fn(u32) -> Option<T>) -> Result<Vec<T>, LoadError> {
        let mut members = Vec::with_capacity(self.words.len());
        for word in self.words {
            let word = u32::from_le_bytes(*word);
            members.push(member(word).ok_or_else(|| self.refused(word))?);
        }
        Ok(members)
    }

    /// How many records of `size` words there are.
    fn records(&self, size: usize) -> Result<usize, LoadError> {
        if self.len().is_multiple_of(size) {
            return Ok(self.len() / size);
        }
        Err(LoadError::malformed(format!("{} are no whole number of records", self.what)))
    }

    fn end(&self) -> Result<(), LoadError> {
        if self.words.is_empty() {
            return Ok(());
        }
        Err(LoadError::malformed(format!("{} of the {} are left over", self.len(), self.what)))
    }

    #[cold]
    fn ended(&self) -> LoadError {
        LoadError::malformed(format!("the {} end too early", self.what))
    }

    #[cold]
    fn refused(&self, word: u32) -> LoadError {
        LoadError::malformed(format!("{word:#x} does not belong into the {}", self.what))
    }
}

/// Names that are still to be read: one text, cut by lengths stored elsewhere. Each letter is used
/// once, so that no name can be multiplied by naming it often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    fn new(blob: &'a Blob<'_>) -> Result<Self, LoadError> {
        std::str::from_utf8(&blob.0).map(Self).map_err(|_| LoadError::malformed("names must be utf-8"))
    }

    fn take(&mut self, len: u32) -> Result<String, LoadError> {
        let Some((name, rest)) = self.0.split_at_checked(len as usize) else {
            return Err(LoadError::malformed("a name ends outside the text"));
        };
        self.0 = rest;
        Ok(name.to_owned())
    }

    fn end(self) -> Result<(), LoadError> {
        if self.0.is_empty() { Ok(()) } else { Err(LoadError::malformed("text is left over")) }
    }
}

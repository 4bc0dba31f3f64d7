//! Binary files: one envelope for all kinds. Only this module knows the byte format.
//!
//! ```text
//! magic 8 | kind u32 | version u32 | payload length u64 | payload hash u64 | payload
//! ```
//! All numbers are little endian. The payload is the `bincode` encoding of a flat record whose
//! fields are byte blobs, read without copying. A blob contains words: no recursion, no element of
//! size zero, and memory is allocated only for counts that the blob's length confirms. So a forged
//! file costs a small multiple of its size. The hash detects damage but establishes no trust: the
//! loader verifies everything it reads, and recomputes derived data (producers, the structural hash).

mod error;
mod graphs;
mod header;
mod kernels;
mod modules;
mod plans;
mod record;
mod tables;
#[cfg(test)]
mod tests;
mod updates;

pub use error::LoadError;
pub use header::{check_header, is_binary};

use crate::files::Opened;
use crate::hash::hash_bytes;
use bincode::config::{Configuration, Fixint, LittleEndian, standard};
use header::{HEADER, MAGIC};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// The kind of content of a file.
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
    /// Every kind, indexed by its number in files.
    pub const ALL: [Self; 4] = [Self::Graph, Self::Plan, Self::Module, Self::Update];

    /// The newest version of the kind's format.
    #[must_use]
    pub const fn version(self) -> u32 {
        match self {
            Self::Graph | Self::Module => crate::graph::FORMAT_VERSION,
            Self::Plan | Self::Update => crate::plan::VERSION,
        }
    }

    /// The usual file name extension.
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

const FORMAT: Configuration<LittleEndian, Fixint> = standard().with_fixed_int_encoding();

/// Encodes a record and puts it into an envelope.
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

/// Decodes the record in an envelope, borrowing from the bytes.
///
/// # Errors
/// If the envelope is invalid or the payload is not such a record.
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
    let hash = header::check(kind, bytes, bytes.len() as u64)?;
    let payload = &bytes[HEADER..];
    if hash != hash_bytes(payload) {
        return Err(LoadError::Checksum);
    }
    Ok(payload)
}

/// Decodes a payload. Blobs are borrowed, so decoding allocates nothing. The limit is a second
/// safeguard. It must be a constant: the next power of 16 above the payload size.
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

/// Reads and decodes a file of a kind; errors name the file. The header is checked before the rest is read.
pub(crate) fn read_file<T>(
    kind: Kind,
    path: &Path,
    read: impl FnOnce(&[u8]) -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    let named = || path.display().to_string();
    let io = |error| LoadError::Io { path: named(), error };
    let in_file = |error| LoadError::File { path: named(), error: Box::new(error) };
    let file = Opened::open(path).map_err(io)?;
    check_header(kind, &file).map_err(in_file)?;
    let bytes = file.read(u64::MAX).map_err(io)?;
    read(&bytes).map_err(in_file)
}

/// Gives a type with `to_bytes` and `from_bytes` the functions that write and read its files.
macro_rules! binary_file {
    ($kind:expr, $type:ty => $loaded:ty, $extension:literal) => {
        impl $type {
            #[doc = concat!("Writes an `", $extension, "` file.")]
            ///
            /// # Errors
            /// If the file cannot be written.
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
                crate::files::write(path.as_ref(), &self.to_bytes())
            }

            #[doc = concat!("Reads an `", $extension, "` file.")]
            ///
            /// # Errors
            /// As [`from_bytes`](Self::from_bytes), and if the file cannot be read.
            pub fn load(path: impl AsRef<std::path::Path>) -> Result<$loaded, LoadError> {
                crate::codec::read_file($kind, path.as_ref(), Self::from_bytes)
            }
        }
    };
}
use binary_file;

/// Bytes that are read without copying.
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
    /// Items that consist of 32-bit words only.
    fn plain<T: bytemuck::NoUninit>(items: &'a [T]) -> Self {
        const { assert!(size_of::<T>().is_multiple_of(4)) };
        let bytes: &[u8] = bytemuck::cast_slice(items);
        if cfg!(target_endian = "little") {
            return Self(Cow::Borrowed(bytes));
        }
        let swapped = bytes.as_chunks::<4>().0.iter();
        Self(Cow::Owned(swapped.flat_map(|word| u32::from_ne_bytes(*word).to_le_bytes()).collect()))
    }

    fn bytes(bytes: Vec<u8>) -> Self {
        Self(Cow::Owned(bytes))
    }

    fn words(words: &[u32]) -> Self {
        Self(Cow::Owned(words.iter().flat_map(|word| word.to_le_bytes()).collect()))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// A reader of the words; `what` names them in messages.
    fn reader(&'a self, what: &'static str) -> Result<Words<'a>, LoadError> {
        match self.0.as_chunks::<4>() {
            (words, []) => Ok(Words { words, what }),
            _ => Err(LoadError::malformed(format!("the length of the {what} is not a multiple of 4 bytes"))),
        }
    }
}

/// A reader of words.
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

    /// Splits off a reader of the next `count` words.
    fn take(&mut self, count: u32) -> Result<Words<'a>, LoadError> {
        match self.words.split_at_checked(count as usize) {
            Some((words, rest)) => {
                self.words = rest;
                Ok(Words { words, what: self.what })
            }
            None => Err(self.ended()),
        }
    }

    /// Converts each word to an item; `None` rejects a word.
    fn members<T>(self, member: impl Fn(u32) -> Option<T>) -> Result<Vec<T>, LoadError> {
        let mut members = Vec::with_capacity(self.words.len());
        for word in self.words {
            let word = u32::from_le_bytes(*word);
            members.push(member(word).ok_or_else(|| self.refused(word))?);
        }
        Ok(members)
    }

    /// The number of records of `size` words.
    fn records(&self, size: usize) -> Result<usize, LoadError> {
        if self.len().is_multiple_of(size) {
            return Ok(self.len() / size);
        }
        Err(LoadError::malformed(format!("the {} are not a multiple of the record size", self.what)))
    }

    /// Skips words that must be 0.
    fn zeros(&mut self, count: usize) -> Result<(), LoadError> {
        for _ in 0..count {
            match self.next()? {
                0 => {}
                word => return Err(self.refused(word)),
            }
        }
        Ok(())
    }

    fn end(&self) -> Result<(), LoadError> {
        if self.words.is_empty() {
            return Ok(());
        }
        Err(LoadError::malformed(format!("{} of the {} are unused", self.len(), self.what)))
    }

    #[cold]
    fn ended(&self) -> LoadError {
        LoadError::malformed(format!("the {} end too early", self.what))
    }

    #[cold]
    fn refused(&self, word: u32) -> LoadError {
        LoadError::malformed(format!("{word:#x} is not valid in the {}", self.what))
    }
}

/// A reader of names: one text, split by lengths that other blobs store. Each byte is used once, so
/// a forged file cannot multiply a name by repeating its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    fn new(blob: &'a Blob<'_>) -> Result<Self, LoadError> {
        std::str::from_utf8(&blob.0).map(Self).map_err(|_| LoadError::malformed("names must be UTF-8"))
    }

    fn take(&mut self, len: u32) -> Result<String, LoadError> {
        let Some((name, rest)) = self.0.split_at_checked(len as usize) else {
            return Err(LoadError::malformed("a name ends outside the text"));
        };
        self.0 = rest;
        Ok(name.to_owned())
    }

    fn end(self) -> Result<(), LoadError> {
        if self.0.is_empty() { Ok(()) } else { Err(LoadError::malformed("the text has unused bytes")) }
    }
}

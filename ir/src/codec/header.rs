//! The header of binary files: magic, kind, version, and the length and hash of the payload.

use super::{Kind, LoadError};
use crate::files::Opened;

/// The first bytes of every binary file.
pub(super) const MAGIC: [u8; 8] = *b"\x89abatch\n";
/// Bytes of a header.
pub(super) const HEADER: usize = 32;

/// Checks the header of a file of `len` bytes. Returns the hash of its payload.
pub(super) fn check(kind: Kind, head: &[u8], len: u64) -> Result<u64, LoadError> {
    let known = head.len().min(MAGIC.len());
    if head[..known] != MAGIC[..known] {
        return Err(LoadError::Foreign);
    }
    let Some(header) = head.first_chunk::<HEADER>() else {
        return Err(LoadError::Length { expected: HEADER as u64, found: len });
    };
    let number = |at: usize, len: usize| {
        header[at..at + len].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let found = Kind::ALL.into_iter().find(|kind| *kind as u64 == number(8, 4));
    if found != Some(kind) {
        return Err(LoadError::Kind { expected: kind, found });
    }
    let version = number(12, 4) as u32;
    if version != kind.version() {
        return Err(LoadError::Version { kind, found: version, known: kind.version() });
    }
    let expected = number(16, 8).saturating_add(HEADER as u64);
    if expected != len {
        return Err(LoadError::Length { expected, found: len });
    }
    Ok(number(24, 8))
}

/// Checks the header of an open file before the rest is read. Pipes have no length, so their header is checked with the rest.
///
/// # Errors
/// If the file is not a file of the kind.
pub fn check_header(kind: Kind, file: &Opened) -> Result<(), LoadError> {
    match file.length() {
        Some(length) => check(kind, file.head(), length).map(drop),
        None => Ok(()),
    }
}

/// Whether bytes begin as every binary file of this format does.
#[must_use]
pub fn is_binary(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

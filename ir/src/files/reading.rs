//! Reading of files: the first bytes, then the rest within a limit.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The maximum number of bytes read from a pipe or standard input.
pub const MAX_STREAMED: u64 = 1 << 30;
/// The maximum number of bytes read from a device, which may never end.
pub const MAX_FROM_DEVICE: u64 = 1 << 24;
/// The maximum number of bytes read from a regular file.
pub const MAX_FILE: u64 = 1 << 36;
/// How many bytes [`Opened::head`] holds at most.
const HEAD: u64 = 4096;

/// An open file whose first bytes were read. A reader looks at them before it reads the rest, so a large file of another kind
/// costs nothing.
pub struct Opened {
    head: Vec<u8>,
    rest: Box<dyn Read>,
    /// The length of a regular file.
    len: Option<u64>,
    limit: u64,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("len", &self.len).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Opened {
    /// Opens a file, pipe or device and reads its first bytes.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let found = file.metadata()?;
        // Some system files report the length 0 but have content.
        let len = (found.is_file() && found.len() > 0).then_some(found.len());
        let limit = match found.is_file() {
            true => MAX_FILE,
            false if is_device(&found) => MAX_FROM_DEVICE,
            false => MAX_STREAMED,
        };
        Self::of(Box::new(file), len, limit)
    }

    /// Reads the first bytes of standard input, which may be a file, a pipe or a device.
    ///
    /// # Errors
    /// If the system reports one.
    pub fn standard_input() -> Result<Self> {
        Self::of(Box::new(std::io::stdin().lock()), None, MAX_STREAMED)
    }

    fn of(mut rest: Box<dyn Read>, len: Option<u64>, limit: u64) -> Result<Self> {
        let mut head = Vec::new();
        rest.by_ref().take(HEAD).read_to_end(&mut head)?;
        Ok(Self { head, rest, len, limit })
    }

    /// The first bytes: all of a short file, otherwise a few thousand.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The length of a regular file; `None` for pipes and devices.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.len
    }

    /// All bytes, if there are at most `max` and at most as many as the kind of file allows.
    ///
    /// # Errors
    /// If the system reports one, there are more bytes, or there is no memory for them.
    pub fn read(self, max: u64) -> Result<Vec<u8>> {
        let Self { head: mut bytes, rest, len, limit } = self;
        let limit = limit.min(max);
        if len.is_some_and(|len| len > limit) {
            return Err(too_long(limit));
        }
        let more = len.unwrap_or(0).saturating_sub(bytes.len() as u64);
        bytes.try_reserve_exact(usize::try_from(more).unwrap_or(usize::MAX))?;
        rest.take((limit + 1).saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit { Err(too_long(limit)) } else { Ok(bytes) }
    }

    /// The first bytes alone, for a reader that rejects them.
    #[must_use]
    pub fn into_head(self) -> Vec<u8> {
        self.head
    }
}

/// Reads all bytes of a file, or of a pipe or device up to its limit.
///
/// # Errors
/// If the system reports one, or the file exceeds its limit.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    Opened::open(path)?.read(u64::MAX)
}

/// Reads all bytes of a file, pipe or device with at most `max` bytes.
///
/// # Errors
/// As [`read`], and if there are more than `max`.
pub fn read_at_most(path: &Path, max: u64) -> Result<Vec<u8>> {
    Opened::open(path)?.read(max)
}

/// As [`read_at_most`], as text.
///
/// # Errors
/// As [`read_at_most`], and if the bytes are not UTF-8.
pub fn read_text_at_most(path: &Path, max: u64) -> Result<String> {
    String::from_utf8(read_at_most(path, max)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

/// Reads all bytes of standard input, which may be a file, a pipe or a device.
///
/// # Errors
/// As [`read`].
pub fn read_standard_input() -> Result<Vec<u8>> {
    Opened::standard_input()?.read(u64::MAX)
}

fn too_long(limit: u64) -> Error {
    let message = format!(
        "only the first {limit} bytes are read, and there are more; name the right file, or save the pipe's output to a file"
    );
    Error::new(ErrorKind::FileTooLarge, message)
}

#[cfg(unix)]
fn is_device(found: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    found.file_type().is_char_device() || found.file_type().is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: &Metadata) -> bool {
    false
}

/// The remedy for an error of reading a file.
#[must_use]
pub fn read_remedy(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => "check the path",
        ErrorKind::IsADirectory => "this is a folder; name a file in it",
        ErrorKind::PermissionDenied => "ask for permission to read it",
        ErrorKind::OutOfMemory => "free memory, or name a smaller file",
        ErrorKind::FileTooLarge => "name a smaller file",
        _ => "check the file and its disk",
    }
}

/// The bytes of a text without the byte-order mark that some editors write first.
#[must_use]
pub fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

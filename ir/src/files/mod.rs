//! Bounded reads and atomic writes of files.
//!
//! Reads: a reader looks at the first bytes before it reads the rest, see [`Opened`]. A regular file has at most [`MAX_FILE`]
//! bytes. A pipe has no length, so the read stops with an error at [`MAX_STREAMED`] bytes, and a device at
//! [`MAX_FROM_DEVICE`] bytes.
//!
//! Writes: the bytes go to a temporary file in the same folder, are synced to disk, and replace the
//! target by an atomic rename; then the folder is synced too. A killed process leaves the target
//! unchanged, and at most a file that ends in `.partial`, which the next write into its folder removes. Symbolic links stay: the file that they
//! lead to is replaced, and keeps its permissions and, where the system permits, its owner. A
//! read-only file is not replaced. Devices, pipes and the target of `/dev/stdout` are never replaced.

mod reading;

pub use reading::{
    MAX_FILE, MAX_FROM_DEVICE, MAX_STREAMED, Opened, read, read_at_most, read_remedy, read_standard_input,
    read_text_at_most, without_mark,
};

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The end of the names of temporary files.
const PARTIAL: &str = ".partial";
/// The maximum length of a chain of symbolic links, as in many operating systems.
const MAX_LINKS: usize = 40;

/// Writes or replaces a file. Devices and pipes receive the bytes directly. An existing file is overwritten in place if
/// its folder is not writable.
///
/// # Errors
/// If the system reports one. The file is then unchanged, unless it was overwritten in place.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let Some(Target { file, found }) = target(path)? else { return std::fs::write(path, bytes) };
    match write_atomically(&file, found.as_ref(), |file| file.write_all(bytes)) {
        Err(WriteError::Temporary(error))
            if found.is_some() && error.kind() == ErrorKind::PermissionDenied =>
        {
            std::fs::write(file, bytes)
        }
        written => written.map_err(WriteError::into_inner),
    }
}

/// Writes or replaces a file atomically, or fails.
///
/// # Errors
/// If the path does not lead to a file, or the system reports an error. The file is then unchanged.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_by(path, |file| file.write_all(bytes))
}

/// Writes or replaces a file atomically with what a function writes, or fails.
///
/// # Errors
/// If the path does not lead to a file, or the system or the function reports an error. The file is then unchanged.
pub fn replace_by(path: &Path, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let Target { file, found } = target(path)?.ok_or_else(not_a_file)?;
    write_atomically(&file, found.as_ref(), write).map_err(WriteError::into_inner)
}

/// Checks that [`write()`] could write to this path. Existing files stay unchanged and no new file remains.
///
/// # Errors
/// If the system reports one.
pub fn writable(path: &Path) -> Result<()> {
    match target(path)? {
        Some(Target { file, found: None }) => {
            File::create_new(&file)?;
            std::fs::remove_file(&file)
        }
        Some(Target { file, found: Some(_) }) => open_for_writing(&file),
        None if std::fs::metadata(path)?.is_dir() => open_for_writing(path),
        // Opening a pipe for the check would count as its writer.
        None => Ok(()),
    }
}

/// Checks that [`replace`] could write to this path, as [`writable`].
///
/// # Errors
/// If the path does not lead to a file, or the system reports an error.
pub fn replaceable(path: &Path) -> Result<()> {
    target(path)?.ok_or_else(not_a_file)?;
    writable(path)
}

fn open_for_writing(file: &Path) -> Result<()> {
    OpenOptions::new().append(true).open(file).map(drop)
}

fn not_a_file() -> Error {
    let message = "this is not a file that can be replaced atomically; name a regular file or a free path";
    Error::new(ErrorKind::InvalidInput, message)
}

/// The regular file that a write creates or replaces.
struct Target {
    /// Its path, with all links resolved.
    file: PathBuf,
    /// Its metadata, if it exists.
    found: Option<Metadata>,
}

/// Follows links to the target of a write; `None` if the path does not lead to a regular file.
fn target(path: &Path) -> Result<Option<Target>> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        // Links in /proc look like links to files, but name open streams.
        let folder = folder_of(&path).canonicalize()?;
        let Some(name) = path.file_name().filter(|_| !folder.starts_with("/proc")) else { return Ok(None) };
        let file = folder.join(name);
        match std::fs::symlink_metadata(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Some(Target { file, found: None }));
            }
            Err(error) => return Err(error),
            Ok(found) if found.is_symlink() => path = folder.join(std::fs::read_link(&file)?),
            Ok(found) => return Ok(found.is_file().then_some(Target { file, found: Some(found) })),
        }
    }
    Err(Error::new(ErrorKind::InvalidInput, "the symbolic links form a cycle or a long chain; name a file"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Why an atomic write failed.
enum WriteError {
    /// The temporary file could not be created.
    Temporary(Error),
    Other(Error),
}

impl WriteError {
    fn into_inner(self) -> Error {
        let (Self::Temporary(error) | Self::Other(error)) = self;
        error
    }
}

/// Creates or replaces `file` with what a function writes.
fn write_atomically(
    file: &Path,
    found: Option<&Metadata>,
    write: impl FnOnce(&mut File) -> Result<()>,
) -> std::result::Result<(), WriteError> {
    if found.is_some() {
        // A rename checks only the permissions of the folder.
        open_for_writing(file).map_err(WriteError::Other)?;
    }
    let (path, mut temporary) = create_temporary(file).map_err(WriteError::Temporary)?;
    let written = write(&mut temporary)
        .and_then(|()| keep(&temporary, found))
        .and_then(|()| std::fs::rename(&path, file));
    if written.is_err() {
        // The first error is the one to report; a file that remains does no harm.
        let _ = std::fs::remove_file(&path);
    }
    written.and_then(|()| sync_folder(file)).map_err(WriteError::Other)
}

/// Creates and locks a temporary file beside `file`, with a name that no other writer uses.
fn create_temporary(file: &Path) -> Result<(PathBuf, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // Leave space for the suffix within the system's limit on names.
    let name: String = name.chars().take(50).collect();
    remove_abandoned(folder_of(file));
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = file.with_file_name(format!(".{name}.{}-{number}{PARTIAL}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            // A killed process with the same id left this file.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            // Another writer may take the file for an abandoned one before it is locked, and remove it.
            Ok(made) if matches!(made.try_lock(), Err(TryLockError::WouldBlock)) || !path.exists() => {}
            Ok(made) => return Ok((path, made)),
        }
    }
}

/// Whether a file has the name of a temporary one: `.NAME.PROCESS-NUMBER.partial`.
fn is_temporary(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let inner = name.strip_prefix('.').and_then(|name| name.strip_suffix(PARTIAL));
    let writer =
        inner.and_then(|inner| inner.rsplit_once('.')).and_then(|(_, writer)| writer.split_once('-'));
    writer.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Removes the temporary files that killed writers left in a folder. Writers hold a lock, which ends with their process. Files
/// that cannot be listed, locked or removed stay, because they do no harm.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(is_temporary)
            && File::open(entry.path()).is_ok_and(|found| found.try_lock().is_ok())
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The remedy for an error of writing a file.
#[must_use]
pub fn write_remedy(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "the folder of this file does not exist; create it or name another one",
        ErrorKind::NotADirectory => "a part of the path is a file; name a folder",
        ErrorKind::IsADirectory => "this is a folder; name a file in it",
        ErrorKind::PermissionDenied => "no permission to write there; name another folder",
        ErrorKind::ReadOnlyFilesystem => "name a folder on a disk that is not read-only",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free space on the disk, or name another one",
        ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f), or name another disk",
        _ => "check the path and its disk",
    }
}

/// Gives a written file the owner and the permissions of the one that it replaces, and syncs it.
fn keep(file: &File, found: Option<&Metadata>) -> Result<()> {
    if let Some(found) = found {
        copy_owner(file, found);
        file.set_permissions(found.permissions())?;
    }
    file.sync_all()
}

/// Only privileged users can change the owner. Other users become the owner of the new file.
#[cfg(unix)]
fn copy_owner(file: &File, found: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let _ = fchown(file, Some(found.uid()), Some(found.gid()));
}

#[cfg(not(unix))]
fn copy_owner(_: &File, _: &Metadata) {}

#[cfg(unix)]
fn sync_folder(file: &Path) -> Result<()> {
    match File::open(folder_of(file)) {
        // The rename succeeded. A folder may be writable but not readable; that is not an error.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}

/// Other systems cannot open folders as files, and journal renames.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests;

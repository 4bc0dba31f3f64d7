//! Reading files to an end that is known, and writing a file so that at every moment there is a whole one.
//!
//! What has no length, such as a pipe, is read as far as [`MOST_STREAMED`], and a device as far as [`MOST_OF_DEVICE`]; of a file
//! all that it has is read.
//!
//! Bytes to write go to a file beside it, are brought to the disk, and take the name by a rename, which
//! is atomic; then the folder is brought to the disk too. Whoever is killed on the way leaves the
//! file as it was, and at most a file that ends in `.partial`. A link stays one: the file that it leads to is replaced, with
//! the permissions and, where the system lets us, the owner that it had; a file that may not be written is not replaced
//! either. What is no file is never replaced: a device, a pipe, or what `/dev/stdout` leads to.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Links that lead to links: so many systems follow.
const MOST_LINKS: usize = 40;

/// So many bytes are read at most of what has no length: a pipe, or standard input.
pub const MOST_STREAMED: u64 = 1 << 30;
/// So many bytes are read at most of a device, which may never end.
pub const MOST_OF_DEVICE: u64 = 1 << 24;

/// All bytes of a file, or of a pipe or device that ends soon enough.
///
/// # Errors
/// What the system says, or that what is there goes on behind the most that is read of its kind.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    read_open(File::open(path)?, u64::MAX)
}

/// All bytes of a file, pipe or device that has no more than these.
///
/// # Errors
/// As [`read`], and if there are more.
pub fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_open(File::open(path)?, most)
}

/// As [`read_at_most`], as text.
///
/// # Errors
/// As [`read_at_most`], and if the bytes are no UTF-8.
pub fn read_text_at_most(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(read_at_most(path, most)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

/// All bytes of standard input, which may be a file, a pipe or a device.
///
/// # Errors
/// As [`read`].
pub fn read_standard_input() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    take(std::io::stdin().lock(), 0, MOST_STREAMED, &mut bytes)?;
    Ok(bytes)
}

fn read_open(file: File, most: u64) -> Result<Vec<u8>> {
    let found = file.metadata()?;
    let mut bytes = Vec::new();
    if found.is_file() && found.len() > most {
        return Err(too_long(most));
    }
    // Some files of the system say that they are empty, and are not.
    let limit = match found.is_file() {
        true => MOST_STREAMED.max(found.len()),
        false if is_device(&found) => MOST_OF_DEVICE,
        false => MOST_STREAMED,
    };
    take(file, found.len(), limit.min(most), &mut bytes)?;
    Ok(bytes)
}

/// Reads to the end, which must come before the limit. About so many bytes are expected.
fn take(from: impl Read, expected: u64, limit: u64, bytes: &mut Vec<u8>) -> Result<()> {
    bytes.try_reserve_exact(usize::try_from(expected).unwrap_or(usize::MAX))?;
    from.take(limit.saturating_add(1)).read_to_end(bytes)?;
    if bytes.len() as u64 > limit { Err(too_long(limit)) } else { Ok(()) }
}

fn too_long(limit: u64) -> Error {
    let message = format!(
        "at most {limit} bytes are read of it, and it goes on; name the right file, or write what a pipe brings to one"
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

/// Writes or replaces a file. Bytes for a device or pipe are passed on to it. In a folder where no file can be made, one
/// that is there is written in place.
///
/// # Errors
/// What the system says. The file is then as it was, unless it was written in place.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let Some(Place { file, found }) = place(path)? else { return std::fs::write(path, bytes) };
    match put(&file, found.as_ref(), bytes) {
        Err(NotPut::NothingBeside(error))
            if found.is_some() && error.kind() == ErrorKind::PermissionDenied =>
        {
            std::fs::write(file, bytes)
        }
        put => put.map_err(NotPut::into_error),
    }
}

/// Writes or replaces a file, and refuses to write anything that would not be whole at every moment.
///
/// # Errors
/// If the path leads to no file, or what the system says. The file is then as it was.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let Place { file, found } = place(path)?.ok_or_else(no_file)?;
    put(&file, found.as_ref(), bytes).map_err(NotPut::into_error)
}

/// Whether [`write()`] would find a place to write to. What is there stays as it is, and nothing is left where nothing was.
///
/// # Errors
/// What the system says.
pub fn writable(path: &Path) -> Result<()> {
    match place(path)? {
        Some(Place { file, found: None }) => {
            File::create_new(&file)?;
            std::fs::remove_file(&file)
        }
        Some(Place { file, found: Some(_) }) => may_be_written(&file),
        None if std::fs::metadata(path)?.is_dir() => may_be_written(path),
        // A pipe would take the attempt for its writer.
        None => Ok(()),
    }
}

/// Whether [`replace`] would find a place to write to, as [`writable`].
///
/// # Errors
/// If the path leads to no file, or what the system says.
pub fn replaceable(path: &Path) -> Result<()> {
    place(path)?.ok_or_else(no_file)?;
    writable(path)
}

fn may_be_written(file: &Path) -> Result<()> {
    OpenOptions::new().append(true).open(file).map(drop)
}

fn no_file() -> Error {
    let message = "this is no file that could be replaced as a whole; name one, or a path that is free";
    Error::new(ErrorKind::InvalidInput, message)
}

/// Where a file is, or is to be.
struct Place {
    /// Its path, which is no link.
    file: PathBuf,
    /// What is there.
    found: Option<Metadata>,
}

/// The place that a path leads to through links; none if no file can be there.
fn place(path: &Path) -> Result<Option<Place>> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        // Links of processes look like files with names, which are those of streams that are open.
        let folder = folder_of(&path).canonicalize()?;
        let Some(name) = path.file_name().filter(|_| !folder.starts_with("/proc")) else { return Ok(None) };
        let file = folder.join(name);
        match std::fs::symlink_metadata(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Some(Place { file, found: None }));
            }
            Err(error) => return Err(error),
            Ok(found) if found.is_symlink() => path = folder.join(std::fs::read_link(&file)?),
            Ok(found) => return Ok(found.is_file().then_some(Place { file, found: Some(found) })),
        }
    }
    Err(Error::new(ErrorKind::InvalidInput, "links lead to links without end; name a file"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Why a file is as it was.
enum NotPut {
    /// No file could be made beside it.
    NothingBeside(Error),
    Other(Error),
}

impl NotPut {
    fn into_error(self) -> Error {
        let (Self::NothingBeside(error) | Self::Other(error)) = self;
        error
    }
}

/// Puts a file with these bytes in its place, where another may be.
fn put(file: &Path, found: Option<&Metadata>, bytes: &[u8]) -> std::result::Result<(), NotPut> {
    if found.is_some() {
        // Renaming asks the folder alone.
        may_be_written(file).map_err(NotPut::Other)?;
    }
    let (path, made) = make_beside(file).map_err(NotPut::NothingBeside)?;
    let put = fill(&made, found, bytes).and_then(|()| std::fs::rename(&path, file));
    if put.is_err() {
        // The first error is the one to report; what is left behind is only a nuisance.
        let _ = std::fs::remove_file(&path);
    }
    put.and_then(|()| sync_folder(file)).map_err(NotPut::Other)
}

/// A new file beside the file, under a name that no other writer uses.
fn make_beside(file: &Path) -> Result<(PathBuf, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // With what is added the name must not be longer than names may be.
    let name: String = name.chars().take(50).collect();
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = file.with_file_name(format!(".{name}.{}-{number}.partial", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            // Of a process that was killed, and had the same number.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|made| (path, made)),
        }
    }
}

fn fill(mut file: &File, found: Option<&Metadata>, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes)?;
    if let Some(found) = found {
        keep_owner(file, found);
        file.set_permissions(found.permissions())?;
    }
    file.sync_all()
}

/// Only privileged users may give files away: others own what they replace from now on.
#[cfg(unix)]
fn keep_owner(file: &File, found: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let _ = fchown(file, Some(found.uid()), Some(found.gid()));
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) {}

#[cfg(unix)]
fn sync_folder(file: &Path) -> Result<()> {
    match File::open(folder_of(file)) {
        // The file has its name; that a folder may be written and not read is no reason to say otherwise.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}

/// Elsewhere folders cannot be opened as files; renames are journalled.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("autobatch-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the system's folder for such files is there");
        folder
    }

    #[test]
    fn links_stay_and_what_is_no_file_is_left_alone() {
        let folder = folder("links");
        let [file, link, ahead] = ["file", "link", "ahead"].map(|name| folder.join(name));
        replace(&file, b"one").unwrap();
        symlink("link", folder.join("twice")).unwrap();
        symlink(&file, &link).unwrap();
        for (write, bytes) in [(replace as fn(&Path, &[u8]) -> Result<()>, b"two"), (write, b"six")] {
            write(&folder.join("twice"), bytes).unwrap();
            assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(std::fs::read(&file).unwrap(), bytes);
        }
        // A link to a file that is yet to be leads there.
        symlink("missing", &ahead).unwrap();
        writable(&ahead).unwrap();
        assert!(!folder.join("missing").exists());
        write(&ahead, b"three").unwrap();
        replaceable(&ahead).unwrap();
        assert!(std::fs::symlink_metadata(&ahead).unwrap().is_symlink());
        assert_eq!(std::fs::read(folder.join("missing")).unwrap(), b"three");
        symlink("round", folder.join("round")).unwrap();
        assert!(write(&folder.join("round"), b"four").unwrap_err().to_string().contains("without end"));
        assert_eq!(replace(&folder, b"four").unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(write(&folder, b"four").is_err() && writable(&folder).is_err());
        let socket = folder.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(replace(&socket, b"five").unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(replaceable(&socket).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(!std::fs::metadata(&socket).unwrap().is_file());
        // Nothing is left beside them.
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 7);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_keeps_its_permissions_and_a_long_name_has_room() {
        let folder = folder("modes");
        let file = folder.join("f".repeat(255));
        write(&file, b"one").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        write(&file, b"two").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read(&file).unwrap(), b"two");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_never_ends_is_read_to_a_limit_and_what_ends_as_a_whole() {
        for endless in ["/dev/zero", "/dev/urandom"].map(Path::new).into_iter().filter(|path| path.exists()) {
            let error = read(endless).expect_err("it has no end");
            assert_eq!(error.kind(), ErrorKind::FileTooLarge);
            assert!(
                error.to_string().contains("at most 16777216 bytes are read of it, and it goes on"),
                "{error}"
            );
        }
        let folder = folder("reads");
        let file = folder.join("file");
        write(&file, b"twelve bytes").unwrap();
        assert_eq!(read(&file).unwrap(), b"twelve bytes");
        assert_eq!(read_text_at_most(&file, 12).unwrap(), "twelve bytes");
        assert_eq!(read_at_most(&file, 11).unwrap_err().kind(), ErrorKind::FileTooLarge);
        let mut bytes = Vec::new();
        assert!(take(&b"stream"[..], 0, 6, &mut bytes).is_ok() && bytes == b"stream");
        assert!(take(&b"stream"[..], 0, 5, &mut Vec::new()).is_err());
        // What has a hole of more than there is room for.
        File::create(&file).unwrap().set_len(1 << 62).ok();
        if std::fs::metadata(&file).unwrap().len() > 1 << 60 {
            assert_eq!(read(&file).unwrap_err().kind(), ErrorKind::OutOfMemory);
        }
        let (pipe, mut end) = std::io::pipe().unwrap();
        let stream = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&pipe)));
        end.write_all(b"through a pipe").unwrap();
        drop(end);
        if stream.exists() {
            assert_eq!(read(&stream).unwrap(), b"through a pipe");
        }
        assert!(read(&folder).is_err() && read(&folder.join("none")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn streams_get_what_is_written_and_refuse_to_be_replaced() {
        let null = Path::new("/dev/null");
        write(null, b"nothing").unwrap();
        assert!(!std::fs::metadata(null).unwrap().is_file());
        assert_eq!(replace(null, b"nothing").unwrap_err().kind(), ErrorKind::InvalidInput);
        if Path::new("/proc/self/fd").is_dir() {
            let folder = folder("streams");
            let open = File::create(folder.join("file")).unwrap();
            let stream = PathBuf::from(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open)));
            write(&stream, b"seven").unwrap();
            // What is open is what was written, and not another file of this name.
            assert_eq!(open.metadata().unwrap().len(), 5);
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}

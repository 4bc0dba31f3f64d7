//! Writing a file so that at every moment there is a whole one.
//!
//! The bytes go to a file beside it, are brought to the disk, and take the name by a rename, which
//! is atomic; then the folder is brought to the disk too. Whoever is killed on the way leaves the
//! file as it was, and at most a file that ends in `.partial`. A link stays one: the file that it leads to is replaced. What is
//! no file, a device or a folder, is never replaced.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes or replaces a file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let path = &replaceable(path)?;
    let beside = partial(path);
    let written = write_through(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // The first error is the one to report; what is left behind is only a nuisance.
        let _ = std::fs::remove_file(&beside);
    }
    written?;
    sync_folder(path)
}

/// The file that a path leads to, through links, if there may be one.
fn replaceable(path: &Path) -> Result<PathBuf> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(path.to_owned()),
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    let file = std::fs::canonicalize(path)?;
    match std::fs::metadata(&file)?.is_file() {
        true => Ok(file),
        false => {
            let message =
                "this is no file that could be replaced as a whole; name one, or a path that is free";
            Err(Error::new(ErrorKind::InvalidInput, message))
        }
    }
}

/// A name beside the file that no other writer uses.
fn partial(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{number}.partial", std::process::id()))
}

fn write_through(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Elsewhere folders cannot be opened as files; renames are journalled.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_stay_and_what_is_no_file_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("autobatch-atomic-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [file, link, nowhere] = ["file", "link", "nowhere"].map(|name| folder.join(name));
        write(&file, b"one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"two").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&file).unwrap(), b"two");
        std::os::unix::fs::symlink(folder.join("missing"), &nowhere).unwrap();
        assert_eq!(write(&nowhere, b"three").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(write(&folder, b"four").unwrap_err().kind(), ErrorKind::InvalidInput);
        let socket = folder.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(write(&socket, b"five").unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(!std::fs::metadata(&socket).unwrap().is_file());
        // Nothing is left beside them.
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 4);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

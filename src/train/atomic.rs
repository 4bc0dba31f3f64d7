//! Writing a file so that at every moment there is a whole one.
//!
//! The bytes go to a file beside it, are brought to the disk, and take the name by a rename, which
//! is atomic; then the folder is brought to the disk too. Whoever is killed on the way leaves the
//! file as it was, and at most a file that ends in `.partial`.

use std::fs::{File, OpenOptions};
use std::io::{Result, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes or replaces a file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = partial(path);
    let written = write_through(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // The first error is the one to report; what is left behind is only a nuisance.
        let _ = std::fs::remove_file(&beside);
    }
    written?;
    sync_folder(path)
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

//! Runs the commands of the pages and of the errands, and compares what they print.
//!
//! A `console` block of a page holds commands, each after `$ `, and their output. An errand is a script in
//! `tests/errands`; its transcript is a snapshot. Both run with the program of this build, in a new folder that holds a
//! copy of `docs/files`. Times and instruction sets differ between runs, so the comparison masks them.

#![cfg(unix)]

mod bundle;
mod errands;
mod guide;
mod install;
mod links;
mod mask;
mod page;
mod picture;
mod shell;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is a folder of the repository")
}

/// All files of a folder with an extension, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("entries of a folder are readable").path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    found.sort();
    found
}

//! The repository's own rules, as functions on text.
//!
//! Each rule takes sources and returns complaints of the form `file:line: problem; remedy`. The suite `tidy`
//! runs the rules on the repository. It also runs them on bad samples, which proves that each rule can find
//! a violation.

mod callers;
mod ids;
mod language;
mod manifests;
mod text;

pub use callers::missing_track_caller;
pub use ids::bare_ids;
pub use language::{Retired, retired_openings, retired_words};
pub(crate) use manifests::cargo_json;
pub use manifests::{Manifest, forbidden_arrows, manifests, undescribed_dependencies};
pub use text::{
    forbidden_attributes, long_files, machine_paths, missing_paths, stray_prints, timed_tests,
    tuple_parameters, unlisted_unsafe, unreadable_errors, without_module_doc,
};

use std::path::{Path, PathBuf};

/// A file of the repository.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path from the root, with forward slashes.
    pub path: String,
    /// The text of the file.
    pub text: String,
}

impl Source {
    /// Makes a file that exists in a test only.
    #[must_use]
    pub fn sample(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Returns whether the file is Rust.
    #[must_use]
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Returns the lines with their numbers, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(number, line)| (number + 1, line))
    }
}

/// Returns the root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("this crate is below the root").to_path_buf()
}

/// Reads every text file of the repository, in the order of paths. Skips hidden folders and build
/// outputs.
///
/// # Panics
/// Panics if a folder cannot be read.
#[must_use]
pub fn sources() -> Vec<Source> {
    const KINDS: [&str; 8] = ["rs", "md", "toml", "wgsl", "yml", "sh", "py", "graph"];
    let root = root();
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).expect("folders of the repository are readable");
        for entry in entries {
            let path = entry.expect("entries of a folder are readable").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
            if path.is_symlink() || name.starts_with('.') || name == "target" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if KINDS.contains(&kind)
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                let path = path.strip_prefix(&root).expect("the path is below the root");
                found.push(Source { path: path.to_string_lossy().replace('\\', "/"), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Formats a complaint about a line.
fn complain(source: &Source, line: usize, what: &str) -> String {
    format!("{}:{line}: {what}", source.path)
}

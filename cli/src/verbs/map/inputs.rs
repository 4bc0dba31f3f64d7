//! The inputs of `map`: files, folders of files, and lists of files.

use crate::failure::Failure;
use crate::verbs::predict::open;
use std::collections::HashMap;
use std::fs::{read_dir, read_to_string};
use std::io::BufRead;
use std::path::Path;

/// A file of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// Its path, or `-` for standard input.
    pub(super) path: String,
    /// The beginning of the names of its shards.
    stem: String,
    /// Its bytes; `None` for a stream.
    pub(super) bytes: Option<u64>,
}

impl Source {
    /// The name of a shard of this file, in the folder.
    pub(super) fn shard(&self, number: usize, extension: &str) -> String {
        format!("{}.{number:05}.{extension}", self.stem)
    }

    /// Opens the file.
    pub(super) fn open(&self) -> Result<Box<dyn BufRead>, Failure> {
        open(&self.path).map_err(|error| self.unreadable(&error))
    }

    pub(super) fn unreadable(&self, error: &std::io::Error) -> Failure {
        Failure::input(format!("{}: {error}", self.shown()))
    }

    /// The name in messages.
    pub(super) fn shown(&self) -> &str {
        if self.path == "-" { "standard input" } else { &self.path }
    }
}

/// The files that the words of `--data` name, in their order: a file, the files of a folder by their names, or with `@` the files
/// that a file lists, one a line.
pub(super) fn sources(words: &[String]) -> Result<Vec<Source>, Failure> {
    let mut paths = Vec::new();
    for word in words {
        match word.strip_prefix('@') {
            Some(list) => paths.extend(listed(list)?),
            None if Path::new(word).is_dir() => paths.extend(files_of(word)?),
            None => paths.push(word.clone()),
        }
    }
    let mut stems: HashMap<String, usize> = HashMap::new();
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        let bytes = match &*path {
            "-" => None,
            _ => {
                let found =
                    std::fs::metadata(&path).map_err(|error| Failure::input(format!("{path}: {error}")))?;
                found.is_file().then_some(found.len())
            }
        };
        let stem = match Path::new(&path).file_stem() {
            Some(stem) if path != "-" => stem.to_string_lossy().into_owned(),
            _ => "stdin".to_owned(),
        };
        // Files of several folders may have one name.
        let seen = stems.entry(stem.clone()).or_insert(0);
        *seen += 1;
        let stem = if *seen == 1 { stem } else { format!("{stem}~{seen}") };
        all.push(Source { path, stem, bytes });
    }
    if all.iter().filter(|source| source.path == "-").count() > 1 {
        return Err(Failure::usage("standard input can be read once; name it once"));
    }
    Ok(all)
}

/// The files that a file lists.
fn listed(list: &str) -> Result<Vec<String>, Failure> {
    let text = read_to_string(list).map_err(|error| Failure::input(format!("{list}: {error}")))?;
    let paths: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    match paths.is_empty() {
        true => Err(Failure::input(format!("{list}: expected one path a line, found none"))),
        false => Ok(paths),
    }
}

/// The files of a folder, by their names. Hidden ones are left out.
fn files_of(folder: &str) -> Result<Vec<String>, Failure> {
    let failed = |error: std::io::Error| Failure::input(format!("{folder}: {error}"));
    let mut paths = Vec::new();
    for entry in read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if entry.path().is_file() && !is_hidden {
            paths.push(entry.path().to_string_lossy().into_owned());
        }
    }
    paths.sort_unstable();
    match paths.is_empty() {
        true => Err(Failure::input(format!("{folder}: expected a file or a folder with files, found none"))),
        false => Ok(paths),
    }
}

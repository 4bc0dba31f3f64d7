//! Tests of the output of every verb.
//!
//! Snapshots contain no timings; the console masks them. The graphs are in `tests/files`: `names` has two
//! sequences of different lengths, `order` has a pair of values for every verdict of `--why`.

mod check;
mod diff;
mod documents;
mod emit;
mod execute;
mod exit_codes;
mod faults;
mod help;
mod hostile;
mod interrupt;
mod json;
mod learn;
mod look;
mod map;
mod matrix;
mod measure;
mod passes;
mod pictures;
mod reduce;
mod trained;
mod why;

use autobatch_cli::{Cli, Console, run};
use clap::Parser;
use std::path::PathBuf;

const NAMES: &str = "tests/files/names.graph";
const ORDER: &str = "tests/files/order.graph";

/// Runs a command line in this process. Returns its output, followed by its error and exit code.
fn transcript(words: &[&str]) -> String {
    let words = std::iter::once("autobatch").chain(words.iter().copied());
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return format!("{error}[exit 2]\n"),
    };
    let mut out = Vec::new();
    let result = run(&cli, &mut Console::masked(&mut out));
    let printed = mask_structures(&String::from_utf8(out).expect("verbs print UTF-8"));
    match result {
        Ok(answer) if answer.code() == 0 => printed,
        Ok(answer) => format!("{printed}[exit {}]\n", answer.code()),
        Err(failure) => format!("{printed}{failure}\n[exit {}]\n", failure.code()),
    }
}

/// Masks short structure hashes such as `3671..20`. Reports do not guarantee a hash function.
fn mask_structures(text: &str) -> String {
    let is_structure = |bytes: &[u8]| {
        let (start, end) = (&bytes[..4], &bytes[6..]);
        start.iter().chain(end).all(u8::is_ascii_hexdigit) && &bytes[4..6] == b".."
    };
    let mut bytes = text.as_bytes().to_vec();
    for at in 0..bytes.len().saturating_sub(7) {
        if is_structure(&bytes[at..at + 8]) {
            bytes[at..at + 8].copy_from_slice(b"****..**");
        }
    }
    String::from_utf8(bytes).expect("the text is ASCII at these bytes")
}

/// The path of a file for one test. Each test uses its own names.
fn scratch(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().expect("the path of the target folder is UTF-8").to_owned()
}

/// Plans a graph into a scratch file and returns its path.
fn planned(graph: &str, name: &str, more: &[&str]) -> String {
    let path = scratch(name);
    let printed = transcript(&[&["plan", graph, "-o", &path], more].concat());
    assert!(printed.contains("wrote "), "{printed}");
    path
}

/// Removes the folder of scratch files from a text.
fn without_folder(text: &str) -> String {
    text.replace(&scratch(""), "")
}

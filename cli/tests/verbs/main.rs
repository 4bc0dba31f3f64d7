//! What each verb says, read as users read it.
//!
//! Snapshots hold structural facts only; timings are masked. The graphs are small and lie in
//! `tests/files`: `names` is two packed sequences, `order` has a value for every verdict of `--why`.

mod check;
mod diff;
mod documents;
mod emit;
mod execute;
mod exit_codes;
mod json;
mod learn;
mod look;
mod measure;
mod passes;
mod pictures;
mod reduce;
mod why;

use autobatch_cli::{Cli, Console, run};
use clap::Parser;
use std::path::PathBuf;

const NAMES: &str = "tests/files/names.graph";
const ORDER: &str = "tests/files/order.graph";

/// What a command line prints, and below it how it ends.
fn says(words: &[&str]) -> String {
    let words = std::iter::once("autobatch").chain(words.iter().copied());
    let cli = Cli::try_parse_from(words).expect("the test's command line is well formed");
    let mut out = Vec::new();
    let result = run(&cli, &mut Console::masked(&mut out));
    let said = without_structures(&String::from_utf8(out).expect("verbs print UTF-8"));
    match result {
        Ok(answer) if answer.code() == 0 => said,
        Ok(answer) => format!("{said}[exit {}]\n", answer.code()),
        Err(failure) => format!("{said}{failure}\n[exit {}]\n", failure.code()),
    }
}

/// The text with every short structure (`3671..20`) masked: how a structure is hashed is nothing that
/// reports promise.
fn without_structures(text: &str) -> String {
    let is_structure = |bytes: &[u8]| {
        let (head, tail) = (&bytes[..4], &bytes[6..]);
        head.iter().chain(tail).all(u8::is_ascii_hexdigit) && &bytes[4..6] == b".."
    };
    let mut bytes = text.as_bytes().to_vec();
    for at in 0..bytes.len().saturating_sub(7) {
        if is_structure(&bytes[at..at + 8]) {
            bytes[at..at + 8].copy_from_slice(b"****..**");
        }
    }
    String::from_utf8(bytes).expect("letters were replaced by stars")
}

/// A file that tests may write; each test has its own name.
fn scratch(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().expect("the build's folder has a UTF-8 name").to_owned()
}

/// A plan of a graph in a scratch file.
fn planned(graph: &str, name: &str, more: &[&str]) -> String {
    let path = scratch(name);
    let said = says(&[&["plan", graph, "-o", &path], more].concat());
    assert!(said.contains("wrote "), "{said}");
    path
}

/// The text without the folder that scratch files lie in.
fn without_folder(text: &str) -> String {
    text.replace(&scratch(""), "")
}

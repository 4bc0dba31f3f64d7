//! The front page: its picture is current, its listing is a part of an example, and its output is that of the example.

use crate::page::blocks;
use crate::root;
use clap::Parser as _;
use std::cell::RefCell;
use std::path::PathBuf;

thread_local! {
    /// The lines that the example printed.
    static PRINTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Collects the output of the example below instead of printing it.
macro_rules! println {
    ($($part:tt)*) => { crate::picture::PRINTED.with_borrow_mut(|lines| lines.push(format!($($part)*))) };
}

#[path = "../../../examples/trees.rs"]
mod example;

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("the repository has a front page")
}

/// A text without indentation and empty lines.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn the_listing_is_a_part_of_the_example_and_shows_its_output() {
    let readme = readme();
    let blocks = blocks(&readme);
    let at = blocks.iter().position(|block| block.kind == "rust").expect("the front page has a listing");
    let source = std::fs::read_to_string(root().join("examples/trees.rs")).expect("the example exists");
    let source = lines(&source).join("\n");
    for part in blocks[at].lines.join("\n").split("\n\n") {
        let part = lines(part).join("\n");
        assert!(source.contains(&part), "examples/trees.rs does not contain\n{part}");
    }
    example::main().expect("the example runs");
    assert_eq!(PRINTED.take(), blocks[at + 1].lines, "the block after the listing");
}

#[test]
fn the_front_page_is_short() {
    let readme = readme();
    let (lines, words) = (readme.lines().count(), readme.split_whitespace().count());
    assert!(lines <= 120 && words <= 800, "{lines} lines, {words} words; at most 120 and 800");
}

#[test]
fn the_picture_is_current() {
    let drawn = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("trees.svg");
    let graph = root().join("docs/files/trees.graph");
    let [graph, output] = [&graph, &drawn].map(|path| path.to_str().expect("paths are UTF-8"));
    let cli = autobatch_cli::Cli::try_parse_from([
        "autobatch",
        "show",
        graph,
        "--picture",
        "instances",
        "-o",
        output,
    ]);
    let mut out = Vec::new();
    let cli = cli.expect("the command line is valid");
    autobatch_cli::run(&cli, &mut autobatch_cli::Console::masked(&mut out)).expect("the graph can be drawn");
    let new = std::fs::read(&drawn).expect("the verb wrote the picture");
    let picture = root().join("docs/src/trees.svg");
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        std::fs::write(&picture, &new).expect("the picture is writable");
    }
    let committed = std::fs::read(&picture).expect("the picture is committed");
    assert!(
        new == committed,
        "run `autobatch show docs/files/trees.graph --picture instances -o docs/src/trees.svg`"
    );
}

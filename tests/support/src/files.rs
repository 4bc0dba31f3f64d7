//! File tests: graphs in text form with a snapshot beside each.

use autobatch_ir::GraphData;
use insta::Settings;
use std::path::Path;

/// Reads a graph that follows the rules, and its text with the directives in comments.
///
/// # Panics
/// If the file is no such graph.
#[must_use]
pub fn read_graph(path: &Path) -> (GraphData, String) {
    let text = std::fs::read_to_string(path).expect("the file is readable");
    let graph = GraphData::from_text(&text).unwrap_or_else(|error| panic!("{}", error.in_file("input")));
    graph.verify().unwrap_or_else(|errors| panic!("{errors}"));
    (graph, text)
}

/// Compares a text with the snapshot beside the input file, which has the name of the file.
///
/// # Panics
/// If the text differs from the snapshot.
pub fn assert_snapshot_beside(path: &Path, shown: &str) {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path(path.parent().expect("a file has a folder"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.remove_snapshot_suffix();
    settings.remove_input_file();
    let name = path.file_stem().and_then(|name| name.to_str()).expect("the name is text");
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

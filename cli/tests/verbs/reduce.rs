//! Tests of `reduce`: the result is the smallest graph on which the command fails.

use crate::{ORDER, scratch, transcript};
use autobatch_cli::files::load_graph;

#[test]
#[cfg(unix)]
fn only_the_cause_of_the_failure_remains() {
    let small = scratch("small.graph");
    let printed = transcript(&["reduce", ORDER, "-o", &small, "--", "sh", "-c", "! grep -q 'slope=0.2' {}"]);
    assert!(printed.starts_with("wrote ") && !printed.contains("[exit"), "{printed}");
    let graph = load_graph(&small).expect("the written graph is valid");
    // The constant, @b, @a, @b, @b and leaky_relu: a chain with one output.
    assert_eq!((graph.instances(), graph.outputs.len()), (1, 1));
    assert_eq!(graph.arena.len(), 6);
    let text = graph.to_text();
    assert!(text.contains("slope=0.2"));
    assert!(
        text.contains("export @a = @a[@w]") && !text.contains("@v"),
        "unused declarations are removed: {text}"
    );
    assert!(!std::path::Path::new(&format!("{small}.candidate.graph")).exists());
}

#[test]
#[cfg(unix)]
fn instances_are_removed() {
    let small = scratch("one.abg");
    transcript(&["reduce", "tests/files/names.graph", "-o", &small, "--", "false"]);
    let graph = load_graph(&small).expect("the written graph is valid");
    assert!(graph.instances() <= 1 && graph.arena.len() <= 2, "{}", graph.to_text());
}

#[test]
#[cfg(unix)]
fn a_command_that_does_not_fail_is_rejected() {
    let printed = transcript(&["reduce", ORDER, "-o", &scratch("never.graph"), "--", "true"]);
    assert!(printed.contains("the command does not fail on tests/files/order.graph"), "{printed}");
    assert!(printed.ends_with("[exit 2]\n"), "{printed}");
}

#[test]
#[cfg(unix)]
fn a_message_selects_the_failure() {
    let small = scratch("with_message.graph");
    let words = ["reduce", ORDER, "-o", &small, "--message", "slope=0.2", "--", "cat", "{}"];
    let printed = transcript(&words);
    assert!(printed.starts_with("wrote ") && !printed.contains("[exit"), "{printed}");
    let graph = load_graph(&small).expect("the written graph is valid");
    assert!(graph.to_text().contains("slope=0.2") && graph.outputs.len() == 1);
    let words = ["reduce", ORDER, "-o", &small, "--message", "zebra", "--", "cat", "{}"];
    assert!(transcript(&words).contains("its output must contain the text of --message"));
}

#[test]
#[cfg(unix)]
fn standard_output_contains_only_the_graph() {
    let printed = transcript(&["reduce", ORDER, "-o", "-", "--", "false"]);
    assert!(printed.starts_with("autobatch graph 2\n") && !printed.contains("wrote"), "{printed}");
}

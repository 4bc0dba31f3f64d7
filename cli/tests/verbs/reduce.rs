//! `reduce`: the smallest graph on which a command still fails.

use crate::{ORDER, says, scratch};
use autobatch_cli::files::load_graph;

#[test]
#[cfg(unix)]
fn only_what_makes_the_command_fail_is_left() {
    let small = scratch("small.graph");
    let said = says(&["reduce", ORDER, "-o", &small, "--", "sh", "-c", "! grep -q 'slope=0.2' {}"]);
    assert!(said.starts_with("wrote ") && !said.contains("[exit"), "{said}");
    let graph = load_graph(&small).expect("what is written is sound");
    // The constant, @b, @a, @b, @b and leaky_relu: a chain with one end.
    assert_eq!((graph.instances(), graph.outputs.len()), (1, 1));
    assert_eq!(graph.arena.len(), 6);
    let text = graph.to_text();
    assert!(text.contains("slope=0.2"));
    assert!(text.contains("export @a = @a[@w]") && !text.contains("@v"), "what nothing uses is gone: {text}");
    assert!(!std::path::Path::new(&format!("{small}.candidate.graph")).exists());
}

#[test]
#[cfg(unix)]
fn instances_are_dropped_first() {
    let small = scratch("one.abg");
    says(&["reduce", "tests/files/names.graph", "-o", &small, "--", "false"]);
    let graph = load_graph(&small).expect("what is written is sound");
    assert!(graph.instances() <= 1 && graph.arena.len() <= 2, "{}", graph.to_text());
}

#[test]
#[cfg(unix)]
fn a_command_that_does_not_fail_is_refused() {
    let said = says(&["reduce", ORDER, "-o", &scratch("never.graph"), "--", "true"]);
    assert!(said.contains("the command does not fail on tests/files/order.graph"), "{said}");
    assert!(said.ends_with("[exit 2]\n"), "{said}");
}

#[test]
#[cfg(unix)]
fn standard_output_takes_the_graph_alone() {
    let said = says(&["reduce", ORDER, "-o", "-", "--", "false"]);
    assert!(said.starts_with("autobatch graph 2\n") && !said.contains("wrote"), "{said}");
}

//! Tests of `check`: proofs of plans and scores of orders.

use crate::{NAMES, ORDER, planned, scratch, transcript, without_folder};

fn order_file(name: &str, text: &str) -> String {
    let path = scratch(name);
    std::fs::write(&path, text).expect("the scratch folder exists");
    path
}

#[test]
fn every_form_of_a_plan_is_proven() {
    for (extension, more) in
        [("plan", &["--policy", "depth"][..]), ("abp", &["--mode", "train"][..]), ("json", &[][..])]
    {
        let plan = planned(ORDER, &format!("proven.{extension}"), more);
        let printed = transcript(&["check", ORDER, &plan]);
        assert!(printed.starts_with("proven: ") && !printed.contains("[exit"), "{printed}");
    }
}

#[test]
fn the_proof_of_a_training_plan_covers_the_reverse() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/files/handwritten");
    let (graph, plan) = (format!("{folder}/tree.graph"), format!("{folder}/tree.plan"));
    let printed = transcript(&["check", &graph, &plan]);
    assert!(printed.starts_with("proven: ") && printed.contains("10 nodes"), "{printed}");
    assert!(
        printed.contains("reverse proven by structure: 2 losses, gradients of 4 parameters and 0 values"),
        "{printed}"
    );
    assert!(
        printed.contains(
            "derivatives tested by example: 3 kernels equal to the reference on at least 6 random lanes"
        ),
        "{printed}"
    );
}

#[test]
fn constants_with_copies_in_several_fields_are_not_a_reverse() {
    let graph = scratch("constants.abg");
    transcript(&["emit", "lattice", "--instances", "4", "-o", &graph]);
    let plan = planned(&graph, "constants.plan", &[]);
    let text = std::fs::read_to_string(&plan).expect("the file was just written");
    assert!(text.matches(" k0 ").count() > 1, "the zeros have copies in several fields:\n{text}");
    let printed = transcript(&["check", &graph, &plan]);
    assert!(printed.starts_with("proven: ") && !printed.contains("reverse"), "{printed}");
}

#[test]
fn a_plan_of_another_graph_is_not_proven() {
    let plan = planned(NAMES, "foreign.plan", &[]);
    let printed = without_folder(&transcript(&["check", ORDER, &plan]));
    assert!(printed.contains("not proven: foreign.plan and tests/files/order.graph disagree"), "{printed}");
    assert!(printed.ends_with("[exit 1]\n"), "{printed}");
}

#[test]
fn disagreements_show_parameters_and_bindings() {
    let plan = planned(ORDER, "foreign_order.plan", &[]);
    let printed = transcript(&["check", NAMES, &plan]);
    assert!(printed.contains("table @letters: f32[26,3]"), "{printed}");
    let graph = scratch("many_words.abg");
    transcript(&["emit", "treelstm", "--instances", "20", "--hidden", "2", "-o", &graph]);
    let words =
        autobatch_cli::files::load_graph(&graph).expect("the file was just written").bindings.words.len();
    let printed = transcript(&["check", &graph, &plan]);
    assert!(
        printed.contains(&format!("bound words: the graph has {words}, the plan was made for 0")),
        "{printed}"
    );
}

#[test]
fn a_modified_plan_is_not_proven() {
    let plan = planned(ORDER, "changed.plan", &[]);
    let text = std::fs::read_to_string(&plan).expect("the file was just written");
    // The plan with another constant keeps all rules but computes other values.
    let changed = text.replace("0.5", "0.25");
    assert_ne!(text, changed, "the plan contains the constant");
    std::fs::write(&plan, changed).expect("the scratch folder exists");
    let printed = transcript(&["check", ORDER, &plan]);
    assert!(printed.contains("not proven") && printed.ends_with("[exit 1]\n"), "{printed}");
}

#[test]
fn an_external_order_is_scored() {
    let text = r#"{"batches": [["%1"], ["%5", "%14"], ["%6", "%15"], ["%2", "%7"], ["n16"], [3], [4, 9], [8], [10], [11], [13]]}"#;
    let order = order_file("order.json", text);
    insta::assert_snapshot!(transcript(&["check", ORDER, "--batches", &order]));
}

#[test]
fn an_order_that_breaks_a_rule_is_not_valid() {
    let order = order_file("early.json", "[[2], [1]]");
    let printed = transcript(&["check", ORDER, "--batches", &order]);
    assert!(printed.starts_with("not valid: rule 2"), "{printed}");
    assert!(printed.ends_with("[exit 1]\n"), "{printed}");
}

#[test]
fn a_malformed_order_is_rejected() {
    let order = order_file("none.json", r#"{"steps": 3}"#);
    let printed = without_folder(&transcript(&["check", ORDER, "--batches", &order]));
    assert!(printed.contains("expected [[0, 1], [2]]") && printed.ends_with("[exit 3]\n"), "{printed}");
    let unknown = order_file("unknown.json", r#"[["%999"]]"#);
    let printed = transcript(&["check", ORDER, "--batches", &unknown]);
    assert!(printed.contains("batch 0 contains %999, but the graph has no such node"), "{printed}");
}

#[test]
fn limits_are_checked_before_a_proof() {
    let plan = planned(ORDER, "limited.plan", &[]);
    // The plan belongs to another graph, which only a proof finds out.
    for verb in ["check", "execute"] {
        let printed = transcript(&[verb, NAMES, &plan, "--memory-limit", "8"]);
        assert!(printed.contains("and the limit is 8 ") && printed.contains("[exit 2]"), "{verb}: {printed}");
        let printed = transcript(&[verb, NAMES, &plan]);
        assert!(!printed.contains("the limit is"), "{verb}: {printed}");
    }
}

//! `check`: proofs of plans and scores of orders.

use crate::{NAMES, ORDER, planned, says, scratch, without_folder};

fn order_file(name: &str, text: &str) -> String {
    let path = scratch(name);
    std::fs::write(&path, text).expect("the scratch folder is there");
    path
}

#[test]
fn a_plan_is_proven_against_its_graph() {
    for (extension, more) in
        [("plan", &["--policy", "depth"][..]), ("abp", &["--mode", "train"][..]), ("json", &[][..])]
    {
        let plan = planned(ORDER, &format!("proven.{extension}"), more);
        let said = says(&["check", ORDER, &plan]);
        assert!(said.starts_with("proven: ") && !said.contains("[exit"), "{said}");
    }
}

#[test]
fn a_plan_for_training_is_proven_and_says_what_was_proven_how() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/files/handwritten");
    let (graph, plan) = (format!("{folder}/tree.graph"), format!("{folder}/tree.plan"));
    let said = says(&["check", &graph, &plan]);
    assert!(said.starts_with("proven: ") && said.contains("10 nodes"), "{said}");
    assert!(
        said.contains("reverse by structure: 2 losses, gradients of 4 parameters and 0 values"),
        "{said}"
    );
    assert!(
        said.contains("derivatives by example: 3 kernels equal to the reference on 6 random lanes or more"),
        "{said}"
    );
}

#[test]
fn constants_in_several_fields_are_no_reverse() {
    let graph = scratch("constants.abg");
    says(&["emit", "lattice", "--instances", "4", "-o", &graph]);
    let plan = planned(&graph, "constants.plan", &[]);
    let text = std::fs::read_to_string(&plan).expect("just written");
    assert!(text.matches(" k0 ").count() > 1, "the zeros stand in several fields:\n{text}");
    let said = says(&["check", &graph, &plan]);
    assert!(said.starts_with("proven: ") && !said.contains("reverse"), "{said}");
}

#[test]
fn a_plan_of_another_graph_is_not_proven() {
    let plan = planned(NAMES, "foreign.plan", &[]);
    let said = without_folder(&says(&["check", ORDER, &plan]));
    assert!(said.contains("not proven: foreign.plan and tests/files/order.graph disagree"), "{said}");
    assert!(said.ends_with("[exit 1]\n"), "{said}");
}

#[test]
fn parameters_and_bound_numbers_of_another_graph_are_spelled() {
    let plan = planned(ORDER, "foreign_order.plan", &[]);
    let said = says(&["check", NAMES, &plan]);
    assert!(said.contains("table @letters: f32[26,3]"), "{said}");
    let graph = scratch("many_words.abg");
    says(&["emit", "trees", "--instances", "20", "--hidden", "2", "-o", &graph]);
    let words = autobatch_cli::files::load_graph(&graph).expect("just written").bindings.words.len();
    let said = says(&["check", &graph, &plan]);
    assert!(said.contains(&format!("bound words: the graph has {words}, the plan was made for 0")), "{said}");
}

#[test]
fn a_changed_plan_is_not_proven() {
    let plan = planned(ORDER, "changed.plan", &[]);
    let text = std::fs::read_to_string(&plan).expect("just written");
    // Another constant keeps every rule of plans and computes something else.
    let changed = text.replace("0.5", "0.25");
    assert_ne!(text, changed, "the plan holds the constant");
    std::fs::write(&plan, changed).expect("the scratch folder is there");
    let said = says(&["check", ORDER, &plan]);
    assert!(said.contains("not proven") && said.ends_with("[exit 1]\n"), "{said}");
}

#[test]
fn somebody_elses_order_is_scored() {
    let text = r#"{"batches": [["%1"], ["%5", "%14"], ["%6", "%15"], ["%2", "%7"], ["n16"], [3], [4, 9], [8], [10], [11], [13]]}"#;
    let order = order_file("order.json", text);
    insta::assert_snapshot!(says(&["check", ORDER, "--batches", &order]));
}

#[test]
fn an_order_that_breaks_a_rule_is_not_valid() {
    let order = order_file("early.json", "[[2], [1]]");
    let said = says(&["check", ORDER, "--batches", &order]);
    assert!(said.starts_with("not valid: rule 2"), "{said}");
    assert!(said.ends_with("[exit 1]\n"), "{said}");
}

#[test]
fn an_order_that_is_no_order_is_refused() {
    let order = order_file("none.json", r#"{"steps": 3}"#);
    let said = without_folder(&says(&["check", ORDER, "--batches", &order]));
    assert!(said.contains("expected [[0, 1], [2]]") && said.ends_with("[exit 3]\n"), "{said}");
    let unknown = order_file("unknown.json", r#"[["%999"]]"#);
    let said = says(&["check", ORDER, "--batches", &unknown]);
    assert!(said.contains("batch 0 names %999, which the graph does not have"), "{said}");
}

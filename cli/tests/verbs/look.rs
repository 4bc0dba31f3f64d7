//! `show`, `plan`, `explain`, `policies`, `diff`, `passes`.

use crate::{NAMES, ORDER, planned, says, scratch, without_folder};

#[test]
fn a_plan_is_shown_with_its_quality_and_its_steps() {
    insta::assert_snapshot!(says(&["plan", ORDER]));
}

#[test]
fn long_runs_of_one_kernel_are_shown_by_their_ends() {
    let graph = scratch("chain.graph");
    says(&["emit", "random", "--instances", "2", "--nodes", "60", "--hidden", "4", "-o", &graph]);
    let short = says(&["plan", &graph]);
    assert!(short.contains("more @cell0 steps"), "{short}");
    let all = says(&["plan", &graph, "--all"]);
    assert!(!all.contains("more @cell0 steps") && all.lines().count() > short.lines().count(), "{all}");
}

#[test]
fn a_graph_is_explained_by_kernel_with_what_was_not_batched() {
    insta::assert_snapshot!(says(&["explain", ORDER]));
}

#[test]
fn a_worse_policy_is_blamed_with_two_values_to_ask_about_and_a_hint() {
    let graph = scratch("lattice.abg");
    says(&["emit", "lattice", "--instances", "4", "--hidden", "4", "-o", &graph]);
    let said = says(&["explain", &graph, "--policy", "depth"]);
    assert!(said.contains("cause: schedule - nodes that are the"), "{said}");
    assert!(said.contains("(--why %"), "{said}");
    assert!(said.contains("hint     --policy beam:16 saves"), "{said}");
}

#[test]
fn the_packed_picture_compares_with_padding() {
    insta::assert_snapshot!(says(&["explain", NAMES, "--lanes", "--labels"]));
}

#[test]
fn a_line_of_source_knows_its_steps_and_the_body_it_stands_in() {
    insta::assert_snapshot!(says(&["explain", NAMES, "--site", "src/names.rs:24"]));
    insta::assert_snapshot!(says(&["explain", NAMES, "--site", "names.rs:11"]));
    insta::assert_snapshot!(says(&["explain", NAMES, "--site", "names.rs:999"]));
}

#[test]
fn operands_read_through_tables_are_listed_with_reasons() {
    insta::assert_snapshot!(says(&["explain", ORDER, "--policy", "none", "--gathers"]));
}

#[test]
fn a_plan_finds_its_graph_beside_it_and_says_so_when_there_is_none() {
    let graph = scratch("beside.graph");
    std::fs::copy(NAMES, &graph).expect("the scratch folder is there");
    let plan = planned(NAMES, "beside.abp", &[]);
    assert!(says(&["explain", &plan, "--why", "%1", "%8"]).contains("same-step"));
    let lonely = planned(NAMES, "lonely.plan", &[]);
    insta::assert_snapshot!(without_folder(&says(&["explain", &lonely, "--why", "%1", "%8"])));
    assert!(says(&["explain", &lonely, "--graph", NAMES, "--why", "%1", "%8"]).contains("same-step"));
    let other = says(&["explain", &lonely, "--graph", ORDER]);
    assert!(other.contains("another structure"), "{other}");
}

#[test]
fn policies_stand_side_by_side_with_the_bound() {
    insta::assert_snapshot!(says(&["policies", ORDER]));
}

#[test]
fn policies_over_several_graphs_have_a_mean_and_a_deviation() {
    insta::assert_snapshot!(says(&["policies", ORDER, NAMES, "--policy", "agenda:remaining"]));
}

#[test]
fn two_plans_differ_in_steps_and_kernels() {
    let (a, b) =
        (planned(ORDER, "diff_depth.plan", &["--policy", "depth"]), planned(ORDER, "diff_auto.plan", &[]));
    insta::assert_snapshot!(without_folder(&says(&["diff", &a, &b])));
    assert!(says(&["diff", &a, &a]).contains("say the same"));
}

#[test]
fn two_graphs_differ_in_nodes() {
    insta::assert_snapshot!(says(&["diff", NAMES, ORDER]));
}

#[test]
fn stages_are_listed_in_their_order() {
    insta::assert_snapshot!(says(&["passes"]));
}

#[test]
fn a_graph_keeps_its_meaning_through_every_form() {
    for extension in ["graph", "abg", "json"] {
        let copy = scratch(&format!("form.{extension}"));
        says(&["show", ORDER, "-o", &copy]);
        let said = says(&["diff", ORDER, &copy]);
        assert!(said.contains("say the same"), "{extension}: {said}");
    }
}

#[test]
fn a_plan_keeps_its_meaning_through_every_form() {
    let plan = planned(ORDER, "forms.plan", &[]);
    for extension in ["plan", "abp", "json"] {
        let copy = scratch(&format!("planform.{extension}"));
        says(&["show", &plan, "-o", &copy]);
        let said = says(&["diff", &plan, &copy]);
        assert!(said.contains("say the same"), "{extension}: {said}");
    }
}

#[test]
fn a_plan_in_a_few_lines() {
    let plan = planned(ORDER, "summary.plan", &[]);
    insta::assert_snapshot!(says(&["show", &plan, "--format", "summary"]));
}

#[test]
fn a_graph_in_a_few_lines() {
    insta::assert_snapshot!(says(&["show", ORDER, "--format", "summary"]));
    let graph = scratch("summary.abg");
    says(&["emit", "lattice", "--instances", "8", "--hidden", "4", "-o", &graph]);
    let said = says(&["show", &graph, "--format", "summary"]);
    let facts: serde_json::Value =
        serde_json::from_str(&says(&["plan", &graph, "--json"])).expect("plan --json prints JSON");
    let counted = format!(" {} signatures", facts["signatures"]);
    assert!(said.lines().count() < 25 && said.contains(&counted), "{facts:#}: {said}");
}

#[test]
fn instances_in_more_steps_stand_above_those_in_fewer() {
    let graph = scratch("lanes.abg");
    says(&["emit", "trees", "--instances", "12", "--hidden", "2", "-o", &graph]);
    let said = says(&["explain", &graph, "--lanes", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&said).expect("--json prints JSON");
    let lines = answer["instances"].as_array().expect("instances are a list");
    let steps: Vec<usize> = lines.iter().filter_map(|line| Some(line["cells"].as_array()?.len())).collect();
    assert!(steps.len() == 12 && steps.is_sorted_by(|a, b| a >= b), "{steps:?}");
}

const MERGED: &str = "tests/files/merged.graph";

#[test]
fn a_graph_is_printed_after_each_pass_and_checked() {
    insta::assert_snapshot!(says(&["plan", MERGED, "--print-after=each", "--verify=prove"]));
}

#[test]
fn a_graph_is_printed_after_passes_that_changed_it_or_after_one() {
    let changed = says(&["plan", MERGED, "--print-after=changed"]);
    assert!(!changed.contains("the same graph as before"), "{changed}");
    insta::assert_snapshot!(says(&["plan", MERGED, "--print-after=cse", "--verify=each"]));
    let unknown = says(&["plan", MERGED, "--print-after=inline"]);
    assert!(unknown.contains("there is no pass \"inline\""), "{unknown}");
}

#[test]
fn passes_stop_where_they_are_told() {
    insta::assert_snapshot!(says(&["plan", MERGED, "--stop-after=1", "--print-after=changed"]));
    let none = says(&["plan", MERGED, "--stop-after=0"]);
    assert!(!none.contains("after "), "no pass ran: {none}");
}

//! Tests of `show`, `plan`, `explain`, `policies`, `diff` and `passes`.

use crate::{NAMES, ORDER, planned, scratch, transcript, without_folder};

#[test]
fn plan_shows_quality_and_steps() {
    insta::assert_snapshot!(transcript(&["plan", ORDER]));
}

#[test]
fn the_middle_of_long_runs_of_one_kernel_is_left_out() {
    let graph = scratch("chain.graph");
    transcript(&["emit", "random", "--instances", "2", "--nodes", "60", "--hidden", "4", "-o", &graph]);
    let short = transcript(&["plan", &graph]);
    assert!(short.contains("more @cell0 steps"), "{short}");
    let all = transcript(&["plan", &graph, "--all"]);
    assert!(!all.contains("more @cell0 steps") && all.lines().count() > short.lines().count(), "{all}");
}

#[test]
fn explain_shows_kernels_and_missed_batching() {
    insta::assert_snapshot!(transcript(&["explain", ORDER]));
}

#[test]
fn explain_names_the_schedule_as_cause_and_gives_a_hint() {
    let graph = scratch("lattice.abg");
    transcript(&["emit", "lattice", "--instances", "4", "--hidden", "4", "-o", &graph]);
    let printed = transcript(&["explain", &graph, "--policy", "depth"]);
    assert!(printed.contains("cause: schedule - jobs that are the"), "{printed}");
    assert!(printed.contains("(--why %"), "{printed}");
    assert!(printed.contains("hint     --policy beam:16 saves"), "{printed}");
}

#[test]
fn lanes_are_compared_with_padding() {
    insta::assert_snapshot!(transcript(&["explain", NAMES, "--lanes", "--labels"]));
}

#[test]
fn a_source_line_shows_its_steps_and_bodies() {
    insta::assert_snapshot!(transcript(&["explain", NAMES, "--site", "src/names.rs:24"]));
    insta::assert_snapshot!(transcript(&["explain", NAMES, "--site", "names.rs:11"]));
    insta::assert_snapshot!(transcript(&["explain", NAMES, "--site", "names.rs:999"]));
}

#[test]
fn gathered_operands_are_listed_with_reasons() {
    insta::assert_snapshot!(transcript(&["explain", ORDER, "--policy", "none", "--gathers"]));
}

#[test]
fn sums_of_gradients_are_no_lists_of_the_model() {
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/files/handwritten/tree.plan");
    let printed = transcript(&["explain", plan, "--gathers"]);
    assert!(
        printed.contains("a gradient sums up the contributions of all readers of its value"),
        "{printed}"
    );
    assert!(!printed.contains("the elements of a list"), "the model has no list: {printed}");
}

#[test]
fn the_graph_is_searched_next_to_the_plan() {
    let graph = scratch("adjacent.graph");
    std::fs::copy(NAMES, &graph).expect("the scratch folder exists");
    let plan = planned(NAMES, "adjacent.abp", &[]);
    assert!(transcript(&["explain", &plan, "--why", "%1", "%8"]).contains("same-step"));
    let lonely = planned(NAMES, "lonely.plan", &[]);
    insta::assert_snapshot!(without_folder(&transcript(&["explain", &lonely, "--why", "%1", "%8"])));
    assert!(transcript(&["explain", &lonely, "--graph", NAMES, "--why", "%1", "%8"]).contains("same-step"));
    let other = transcript(&["explain", &lonely, "--graph", ORDER]);
    assert!(other.contains("another structure"), "{other}");
}

#[test]
fn policies_are_compared_with_the_bound() {
    insta::assert_snapshot!(transcript(&["policies", ORDER]));
}

#[test]
fn policies_over_several_graphs_have_means_and_deviations() {
    insta::assert_snapshot!(transcript(&["policies", ORDER, NAMES, "--policy", "agenda:remaining"]));
}

#[test]
fn plans_differ_in_steps_and_kernels() {
    let (a, b) =
        (planned(ORDER, "diff_depth.plan", &["--policy", "depth"]), planned(ORDER, "diff_auto.plan", &[]));
    insta::assert_snapshot!(without_folder(&transcript(&["diff", &a, &b])));
    assert!(transcript(&["diff", &a, &a]).contains("are equal"));
}

#[test]
fn graphs_differ_in_nodes() {
    insta::assert_snapshot!(transcript(&["diff", NAMES, ORDER]));
}

#[test]
fn passes_and_stages_are_listed_in_order() {
    insta::assert_snapshot!(transcript(&["passes"]));
}

#[test]
fn every_form_of_a_graph_reads_back() {
    for extension in ["graph", "abg", "json"] {
        let copy = scratch(&format!("form.{extension}"));
        transcript(&["show", ORDER, "-o", &copy]);
        let printed = transcript(&["diff", ORDER, &copy]);
        assert!(printed.contains("are equal"), "{extension}: {printed}");
    }
}

#[test]
fn every_form_of_a_plan_reads_back() {
    let plan = planned(ORDER, "forms.plan", &[]);
    for extension in ["plan", "abp", "json"] {
        let copy = scratch(&format!("planform.{extension}"));
        transcript(&["show", &plan, "-o", &copy]);
        let printed = transcript(&["diff", &plan, &copy]);
        assert!(printed.contains("are equal"), "{extension}: {printed}");
    }
}

#[test]
fn the_summary_of_a_plan() {
    let plan = planned(ORDER, "summary.plan", &[]);
    insta::assert_snapshot!(transcript(&["show", &plan, "--format", "summary"]));
}

#[test]
fn the_summary_of_a_graph() {
    insta::assert_snapshot!(transcript(&["show", ORDER, "--format", "summary"]));
    let graph = scratch("summary.abg");
    transcript(&["emit", "lattice", "--instances", "8", "--hidden", "4", "-o", &graph]);
    let printed = transcript(&["show", &graph, "--format", "summary"]);
    let facts: serde_json::Value =
        serde_json::from_str(&transcript(&["plan", &graph, "--json"])).expect("plan --json prints JSON");
    let counted = format!(" {} signatures", facts["signatures"]);
    assert!(printed.lines().count() < 25 && printed.contains(&counted), "{facts:#}: {printed}");
}

#[test]
fn lanes_are_sorted_by_number_of_steps() {
    let graph = scratch("lanes.abg");
    transcript(&["emit", "treelstm", "--instances", "12", "--hidden", "2", "-o", &graph]);
    let printed = transcript(&["explain", &graph, "--lanes", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&printed).expect("--json prints JSON");
    let lines = answer["instances"].as_array().expect("instances are a list");
    let steps: Vec<usize> = lines.iter().filter_map(|line| Some(line["cells"].as_array()?.len())).collect();
    assert!(steps.len() == 12 && steps.is_sorted_by(|a, b| a >= b), "{steps:?}");
}

const MERGED: &str = "tests/files/merged.graph";

#[test]
fn the_graph_is_printed_and_checked_after_each_pass() {
    insta::assert_snapshot!(transcript(&["plan", MERGED, "--print-after=each", "--verify=prove"]));
}

#[test]
fn the_graph_is_printed_after_selected_passes() {
    let changed = transcript(&["plan", MERGED, "--print-after=changed"]);
    assert!(!changed.contains("the graph is unchanged"), "{changed}");
    insta::assert_snapshot!(transcript(&["plan", MERGED, "--print-after=cse", "--verify=each"]));
    let unknown = transcript(&["plan", MERGED, "--print-after=inline"]);
    assert!(unknown.contains("there is no pass \"inline\""), "{unknown}");
}

#[test]
fn stop_after_limits_the_passes() {
    insta::assert_snapshot!(transcript(&["plan", MERGED, "--stop-after=1", "--print-after=changed"]));
    let none = transcript(&["plan", MERGED, "--stop-after=0"]);
    assert!(!none.contains("after "), "no pass ran: {none}");
}

#[test]
fn explain_predicts_the_times_of_dispatches_on_cards() {
    let plan = planned(ORDER, "predicted.plan", &[]);
    let printed = transcript(&["explain", &plan, "--device", "gpu"]);
    if !cfg!(feature = "gpu") {
        assert!(
            printed.contains("build with the feature gpu") && printed.ends_with("[exit 2]\n"),
            "{printed}"
        );
        return;
    }
    for word in ["H100", "M3", "small iGPU", "by kind of kernel", "dispatches in order", "waits"] {
        assert!(printed.contains(word), "{word} is missing in:\n{printed}");
    }
    let document = transcript(&["explain", &plan, "--device", "gpu", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    let dispatches = document["dispatches"].as_array().expect("a list");
    let card = |number: usize| {
        let of =
            |dispatch: &serde_json::Value| dispatch["times"][number]["seconds"].as_f64().expect("a time");
        let all: f64 = dispatches.iter().map(of).sum();
        (all, document["cards"][number]["seconds"].as_f64().expect("a time"))
    };
    for number in 0..3 {
        let (sum, whole) = card(number);
        assert!(sum > 0.0 && sum < whole, "a plan takes its dispatches and a submission: {sum} {whole}");
    }
    assert!(card(0).1 < card(2).1, "a large card is faster than a small one");
}

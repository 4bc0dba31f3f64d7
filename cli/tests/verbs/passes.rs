//! Tests of `plan` with passes: the report, and the file of the rewritten graph.

use crate::{ORDER, scratch, transcript, without_folder};
use serde_json::Value as Json;

const MERGED: &str = "tests/files/merged.graph";

fn json(words: &[&str]) -> Json {
    let printed = transcript(words);
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error} in {printed}"))
}

#[test]
fn the_graph_after_passes_is_written_next_to_the_plan() {
    for (extension, form) in [("plan", "graph"), ("abp", "abg"), ("json", "abg")] {
        let plan = scratch(&format!("rewritten.{extension}"));
        let graph = scratch(&format!("rewritten.passes.{form}"));
        let printed = transcript(&["plan", MERGED, "--verify", "prove", "-o", &plan]);
        assert!(printed.contains(&format!("autobatch check {graph} {plan}")), "{printed}");
        let checked = transcript(&["check", &graph, &plan]);
        assert!(checked.starts_with("proven: "), "{extension}: {checked}");
        let why = transcript(&["explain", &plan, "--why", "%3", "%4"]);
        assert!(why.contains("%3  tanh"), "the plan finds that graph: {why}");
        std::fs::remove_file(&graph).expect("the file was just written");
    }
}

#[test]
fn an_unchanged_graph_is_not_written() {
    let plan = scratch("untouched.plan");
    let printed = without_folder(&transcript(&["plan", MERGED, "--stop-after", "0", "-o", &plan]));
    assert!(printed.contains("autobatch check tests/files/merged.graph untouched.plan"), "{printed}");
    assert!(!std::path::Path::new(&scratch("untouched.passes.graph")).exists());
    assert!(transcript(&["check", MERGED, &plan]).starts_with("proven: "));
}

#[test]
fn the_checked_property_is_reported() {
    let each = transcript(&["plan", MERGED, "--verify", "each"]);
    assert!(
        each.contains("verified after each of 3 passes: the graph keeps the rules of graphs\n"),
        "{each}"
    );
    let prove = transcript(&["plan", MERGED, "--verify", "prove"]);
    assert!(prove.contains("and every remaining value is unchanged"), "{prove}");
    assert!(!transcript(&["plan", MERGED, "--verify", "off"]).contains("verified"));
}

#[test]
fn reports_of_passes_are_part_of_the_json_document() {
    let answer = json(&["plan", MERGED, "--json", "--verify", "each", "--print-after", "changed"]);
    let passes = answer["passes"].as_array().expect("passes are a list");
    let names: Vec<&str> = passes.iter().filter_map(|pass| pass["pass"].as_str()).collect();
    assert_eq!(names, ["fold", "cse", "outline"]);
    assert!(passes[0]["graph"].as_str().is_some_and(|text| text.starts_with("autobatch graph 2")));
    assert_eq!((&passes[2]["changed"], &passes[2]["graph"]), (&Json::Bool(false), &Json::Null));
    assert_eq!(answer["verified"], "the graph keeps the rules of graphs");
    let stopped = json(&["plan", MERGED, "--json", "--stop-after", "1"]);
    assert_eq!(stopped["passes"].as_array().map(Vec::len), Some(1));
    let plan = scratch("rewritten_json.plan");
    let written = json(&["plan", MERGED, "--json", "--verify", "each", "-o", &plan]);
    let graph = scratch("rewritten_json.passes.graph");
    assert_eq!(written["written"], serde_json::json!([graph, plan]));
}

#[test]
fn two_outputs_on_standard_output_are_rejected() {
    let two = transcript(&["plan", ORDER, "--json", "-o", "-"]);
    assert!(two.starts_with("error: -o - and --json both") && two.ends_with("[exit 2]\n"), "{two}");
    let rewritten = transcript(&["plan", ORDER, "--verify", "each", "-o", "-"]);
    assert!(rewritten.starts_with("error: -o - ") && rewritten.ends_with("[exit 2]\n"), "{rewritten}");
}

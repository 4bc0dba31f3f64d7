//! Tests of `execute`.

use crate::{NAMES, ORDER, planned, scratch, transcript};

#[test]
fn new_and_stored_plans_give_the_same_outputs() {
    let new = transcript(&["execute", NAMES, "--seed", "3"]);
    assert!(new.contains("f32["), "{new}");
    let plan = planned(NAMES, "executed.abp", &["--policy", "none"]);
    let stored = transcript(&["execute", NAMES, &plan, "--seed", "3"]);
    let outputs = |printed: &str| -> Vec<String> {
        printed.lines().filter(|line| line.contains("f32[")).map(str::to_owned).collect()
    };
    assert_eq!(outputs(&new), outputs(&stored));
    assert_ne!(outputs(&new), outputs(&transcript(&["execute", NAMES, "--seed", "4"])));
}

#[test]
fn a_plan_of_another_structure_is_rejected() {
    let plan = planned(ORDER, "other.abp", &[]);
    let printed = transcript(&["execute", NAMES, &plan]);
    assert!(
        printed.contains("is a plan of another structure than") && printed.contains("[exit 3]"),
        "{printed}"
    );
}

#[test]
fn a_plan_of_other_cells_is_rejected() {
    let (graph, other) = (scratch("cells.graph"), scratch("other_cells.graph"));
    transcript(&["emit", "treelstm", "--instances", "3", "--hidden", "2", "-o", &graph]);
    let text = std::fs::read_to_string(&graph).expect("the file was just written");
    let at = text.find("tanh(").expect("the cells of trees have a tanh");
    let text = [&text[..at], "sigmoid(", &text[at + "tanh(".len()..]].concat();
    std::fs::write(&other, text).expect("the scratch folder exists");
    let plan = planned(&graph, "cells.abp", &[]);
    assert!(!transcript(&["execute", &graph, &plan]).contains("[exit"));
    let explained = transcript(&["explain", &plan, "--graph", &other]);
    assert!(explained.contains("does not compute") && explained.contains("[exit 3]"), "{explained}");
    // A graph next to the plan is ignored if the plan does not compute it.
    std::fs::copy(&other, scratch("moved.graph")).expect("the file was just written");
    std::fs::copy(&plan, scratch("moved.abp")).expect("the file was just written");
    let explained = transcript(&["explain", &scratch("moved.abp"), "--why", "%1", "%2"]);
    assert!(explained.contains("--why needs the graph") && explained.contains("[exit 2]"), "{explained}");
    let printed = transcript(&["execute", &other, &plan]);
    assert!(
        printed.contains("does not compute") && printed.contains("kernel") && printed.contains("[exit 3]"),
        "{printed}"
    );
}

#[test]
fn outputs_are_written_as_json_and_npy() {
    let (json, npy) = (scratch("out.json"), scratch("out.npy"));
    transcript(&["execute", NAMES, "-o", &json]);
    let text = std::fs::read_to_string(&json).expect("the file was just written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("the file is JSON");
    let outputs = document.as_object().expect("outputs have names");
    let all: Vec<f64> = outputs
        .values()
        .flat_map(|output| output["values"].as_array().expect("a list"))
        .map(|value| value.as_f64().expect("a number"))
        .collect();
    transcript(&["execute", NAMES, "-o", &npy]);
    let bytes = std::fs::read(&npy).expect("the file was just written");
    assert!(bytes.starts_with(b"\x93NUMPY"));
    assert_eq!((bytes.len() - 128) / 4, all.len());
    let printed = transcript(&["execute", NAMES, "-o", "out.svg"]);
    assert!(printed.contains("use .json or .npy") && printed.contains("[exit 2]"), "{printed}");
}

#[test]
fn counters_show_kernels_and_traces_show_steps() {
    let trace = scratch("trace.json");
    let printed = transcript(&["execute", NAMES, "--counters", "--trace", &trace, "--threads", "2"]);
    assert!(
        printed.contains("kernel") && printed.contains("Mflop") && printed.contains("packing weights"),
        "{printed}"
    );
    assert!(printed.contains("@") && !printed.contains("@@"), "{printed}");
    let text = std::fs::read_to_string(&trace).expect("the file was just written");
    let events: serde_json::Value = serde_json::from_str(&text).expect("the file is JSON");
    assert!(!events["traceEvents"].as_array().expect("a list").is_empty());
}

#[test]
fn memory_limits_and_malformed_weights_are_errors() {
    let printed = transcript(&["execute", NAMES, "--memory-limit", "8"]);
    assert!(printed.contains("the limit is 8 B") && printed.contains("[exit 2]"), "{printed}");
    let printed = transcript(&["execute", NAMES, "--weights", "tests/files/names.graph"]);
    assert!(printed.contains("names.graph: ") && printed.contains("[exit 3]"), "{printed}");
}

#[test]
fn values_without_a_json_number_are_strings() {
    let (graph, json) = (scratch("infinite.graph"), scratch("infinite.json"));
    let text = "autobatch graph 2\nmodule \"m\"\n\ngraph\n%0 = input f32[3] (#[-1.0, 0.0, 2.0])\n%1: f32[3] = log(%0)\noutput \"y\" %1\n";
    std::fs::write(&graph, text).expect("the scratch folder exists");
    let printed = transcript(&["execute", &graph, "-o", &json]);
    assert!(printed.contains("wrote "), "{printed}");
    let text = std::fs::read_to_string(&json).expect("the file was just written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("the file is JSON");
    let values = document["y"]["values"].as_array().expect("a list");
    assert_eq!((&values[0], &values[1]), (&"NaN".into(), &"-inf".into()), "{text}");
    assert!(values[2].is_number(), "{text}");
}

#[test]
fn standard_output_contains_one_document() {
    for option in ["-o", "--trace"] {
        let printed = transcript(&["execute", NAMES, option, "-"]);
        serde_json::from_str::<serde_json::Value>(&printed)
            .unwrap_or_else(|error| panic!("{option}: {error} in {printed}"));
    }
}

#[test]
fn a_missing_file_is_named_once_and_memory_limits_have_units() {
    let printed = transcript(&["execute", NAMES, "--weights", "no-such.safetensors"]);
    assert_eq!(printed.matches("no-such.safetensors").count(), 1, "{printed}");
    let printed = transcript(&["execute", NAMES, "--memory-limit", "1GiB"]);
    assert!(printed.contains("f32["), "{printed}");
}

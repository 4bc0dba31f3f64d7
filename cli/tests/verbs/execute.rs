//! `execute`.

use crate::{NAMES, ORDER, planned, says, scratch};

#[test]
fn outputs_are_shown_and_are_the_same_by_a_plan_from_a_file() {
    let now = says(&["execute", NAMES, "--seed", "3"]);
    assert!(now.contains("f32["), "{now}");
    let plan = planned(NAMES, "executed.abp", &["--policy", "none"]);
    let before = says(&["execute", NAMES, &plan, "--seed", "3"]);
    let outputs = |said: &str| -> Vec<String> {
        said.lines().filter(|line| line.contains("f32[")).map(str::to_owned).collect()
    };
    assert_eq!(outputs(&now), outputs(&before));
    assert_ne!(outputs(&now), outputs(&says(&["execute", NAMES, "--seed", "4"])));
}

#[test]
fn a_plan_of_another_structure_is_refused() {
    let plan = planned(ORDER, "other.abp", &[]);
    let said = says(&["execute", NAMES, &plan]);
    assert!(said.contains("is a plan of another structure than") && said.contains("[exit 3]"), "{said}");
}

#[test]
fn a_plan_of_other_cells_is_refused() {
    let (graph, other) = (scratch("cells.graph"), scratch("other_cells.graph"));
    says(&["emit", "trees", "--instances", "3", "--hidden", "2", "-o", &graph]);
    let text = std::fs::read_to_string(&graph).expect("it was just written");
    let at = text.find("tanh(").expect("the cells of trees have a tanh");
    let text = [&text[..at], "sigmoid(", &text[at + "tanh(".len()..]].concat();
    std::fs::write(&other, text).expect("the scratch folder is there");
    let plan = planned(&graph, "cells.abp", &[]);
    assert!(!says(&["execute", &graph, &plan]).contains("[exit"));
    let explained = says(&["explain", &plan, "--graph", &other]);
    assert!(explained.contains("does not compute") && explained.contains("[exit 3]"), "{explained}");
    // One that lies beside it and is another's is left alone, as if there were none.
    std::fs::copy(&other, scratch("moved.graph")).expect("it was just written");
    std::fs::copy(&plan, scratch("moved.abp")).expect("it was just written");
    let explained = says(&["explain", &scratch("moved.abp"), "--why", "%1", "%2"]);
    assert!(explained.contains("none that") && explained.contains("[exit 2]"), "{explained}");
    let said = says(&["execute", &other, &plan]);
    assert!(
        said.contains("does not compute") && said.contains("kernel") && said.contains("[exit 3]"),
        "{said}"
    );
}

#[test]
fn outputs_are_written_for_machines() {
    let (json, npy) = (scratch("out.json"), scratch("out.npy"));
    says(&["execute", NAMES, "-o", &json]);
    let text = std::fs::read_to_string(&json).expect("it was just written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let outputs = document.as_object().expect("outputs have names");
    let all: Vec<f64> = outputs
        .values()
        .flat_map(|output| output["values"].as_array().expect("a list"))
        .map(|value| value.as_f64().expect("a number"))
        .collect();
    says(&["execute", NAMES, "-o", &npy]);
    let bytes = std::fs::read(&npy).expect("it was just written");
    assert!(bytes.starts_with(b"\x93NUMPY"));
    assert_eq!((bytes.len() - 128) / 4, all.len());
    let said = says(&["execute", NAMES, "-o", "out.svg"]);
    assert!(said.contains("use .json or .npy") && said.contains("[exit 2]"), "{said}");
}

#[test]
fn time_is_counted_by_kernel_and_traced_by_step() {
    let trace = scratch("trace.json");
    let said = says(&["execute", NAMES, "--counters", "--trace", &trace, "--threads", "2"]);
    assert!(said.contains("kernel") && said.contains("Mflop") && said.contains("packing weights"), "{said}");
    assert!(said.contains("@") && !said.contains("@@"), "{said}");
    let text = std::fs::read_to_string(&trace).expect("it was just written");
    let events: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert!(!events["traceEvents"].as_array().expect("a list").is_empty());
}

#[test]
fn memory_and_weights_that_do_not_fit_are_refused() {
    let said = says(&["execute", NAMES, "--memory-limit", "8"]);
    assert!(said.contains("the memory limit is 8") && said.contains("[exit 3]"), "{said}");
    let said = says(&["execute", NAMES, "--weights", "tests/files/names.graph"]);
    assert!(said.contains("names.graph: ") && said.contains("[exit 3]"), "{said}");
}

#[test]
fn what_json_has_no_number_for_is_a_text() {
    let (graph, json) = (scratch("infinite.graph"), scratch("infinite.json"));
    let text = "autobatch graph 2\nmodule \"m\"\n\ngraph\n%0 = input f32[3] (#[-1.0, 0.0, 2.0])\n%1: f32[3] = log(%0)\noutput \"y\" %1\n";
    std::fs::write(&graph, text).expect("the scratch folder is there");
    let said = says(&["execute", &graph, "-o", &json]);
    assert!(said.contains("wrote "), "{said}");
    let text = std::fs::read_to_string(&json).expect("it was just written");
    let document: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let values = document["y"]["values"].as_array().expect("a list");
    assert_eq!((&values[0], &values[1]), (&"NaN".into(), &"-inf".into()), "{text}");
    assert!(values[2].is_number(), "{text}");
}

#[test]
fn standard_output_holds_one_document() {
    for option in ["-o", "--trace"] {
        let said = says(&["execute", NAMES, option, "-"]);
        serde_json::from_str::<serde_json::Value>(&said)
            .unwrap_or_else(|error| panic!("{option}: {error} in {said}"));
    }
}

#[test]
fn a_file_that_is_not_there_is_named_once_and_memory_has_units() {
    let said = says(&["execute", NAMES, "--weights", "no-such.safetensors"]);
    assert_eq!(said.matches("no-such.safetensors").count(), 1, "{said}");
    let said = says(&["execute", NAMES, "--memory-limit", "1GiB"]);
    assert!(said.contains("f32["), "{said}");
}

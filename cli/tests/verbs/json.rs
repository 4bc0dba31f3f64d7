//! Answers for machines have the fields that scripts rely on.

use crate::{NAMES, ORDER, says};
use serde_json::Value as Json;

fn answer(words: &[&str]) -> Json {
    let said = says(words);
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error} in {said}"))
}

fn has(answer: &Json, fields: &[&str]) {
    for field in fields {
        assert!(answer.get(field).is_some(), "no field {field} in {answer:#}");
    }
}

#[test]
fn a_plan_in_numbers() {
    let plan = answer(&["plan", ORDER, "--json"]);
    has(&plan, &["graph", "module", "structure", "policy", "why", "gap", "slab_bytes", "planning_ms"]);
    assert_eq!((plan["batches"].as_u64(), plan["bound"].as_u64()), (Some(10), Some(10)));
    assert_eq!(plan["steps"].as_array().map(Vec::len), Some(11), "ten batches and a constant");
    has(&plan["steps"][1], &["step", "kernel", "rows", "operands", "product", "source"]);
}

#[test]
fn policies_in_numbers() {
    let all = answer(&["policies", ORDER, NAMES, "--json"]);
    has(&all, &["graphs", "bound", "policies"]);
    let policies = all["policies"].as_array().expect("policies are a list");
    let names: Vec<&str> = policies.iter().filter_map(|policy| policy["policy"].as_str()).collect();
    assert_eq!(names, ["none", "depth", "agenda", "ratio", "beam:8", "auto"]);
    for policy in policies {
        has(policy, &["batches", "gap", "table_rows", "copied_rows", "slab_bytes", "why"]);
        assert_eq!(policy["batches_by_graph"].as_array().map(Vec::len), Some(2));
        has(&policy["batches"], &["mean", "sd"]);
    }
}

#[test]
fn an_explanation_in_numbers() {
    let all = answer(&["explain", ORDER, "--json"]);
    has(&all, &["file", "batches", "bound", "kernels", "not_batched", "through_tables"]);
    has(&all["kernels"][0], &["kernel", "steps", "rows", "multiply_adds"]);
    let findings = all["not_batched"].as_array().expect("findings are a list");
    assert!(findings.iter().any(|finding| finding["cause"].get("signatures").is_some()), "{all:#}");
    has(&all["through_tables"][0], &["step", "kernel", "port", "rows", "reason"]);
}

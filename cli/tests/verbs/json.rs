//! Tests that JSON answers have the fields on which scripts rely.

use crate::{NAMES, ORDER, planned, scratch, transcript};
use serde_json::Value as Json;

fn answer(words: &[&str]) -> Json {
    let printed = transcript(words);
    let printed = printed.strip_suffix("[exit 1]\n").unwrap_or(&printed);
    serde_json::from_str(printed).unwrap_or_else(|error| panic!("{error} in {printed}"))
}

fn has(answer: &Json, fields: &[&str]) {
    for field in fields {
        assert!(answer.get(field).is_some(), "no field {field} in {answer:#}");
    }
}

#[test]
fn plan_prints_json() {
    let plan = answer(&["plan", ORDER, "--json"]);
    has(&plan, &["graph", "module", "structure", "policy", "why", "gap", "slab_bytes", "planning_ms"]);
    assert_eq!((plan["batches"].as_u64(), plan["bound"].as_u64()), (Some(10), Some(10)));
    assert_eq!(plan["steps"].as_array().map(Vec::len), Some(11), "ten batches and a constant");
    has(&plan["steps"][1], &["step", "kernel", "rows", "operands", "product", "source"]);
    assert_eq!(plan["steps"][1]["other_work"], "1 act.");
}

#[test]
fn fsm_train_prints_json() {
    let table = scratch("numbers.json");
    let learned = answer(&["fsm-train", ORDER, "-o", &table, "--episodes", "8", "--json"]);
    has(&learned, &["states", "bound"]);
    assert_eq!((learned["table"].as_str(), learned["graphs"].as_u64()), (Some(&*table), Some(1)));
    has(&learned["batches"], &["fsm", "ratio"]);
    assert!(std::path::Path::new(&table).exists());
    assert!(transcript(&["fsm-train", ORDER, "-o", "-", "--json"]).contains("[exit 2]"));
}

#[test]
fn policies_prints_json() {
    let all = answer(&["policies", ORDER, NAMES, "--json"]);
    has(&all, &["graphs", "bound", "policies"]);
    let policies = all["policies"].as_array().expect("policies are a list");
    let names: Vec<&str> = policies.iter().filter_map(|policy| policy["policy"].as_str()).collect();
    assert_eq!(names, ["none", "depth", "agenda", "ratio", "beam:8", "auto"]);
    for policy in policies {
        has(policy, &["batches", "gap", "gathered_rows", "copied_rows", "slab_bytes", "why"]);
        assert_eq!(policy["batches_by_graph"].as_array().map(Vec::len), Some(2));
        has(&policy["batches"], &["mean", "sd"]);
    }
}

#[test]
fn explain_prints_json() {
    let all = answer(&["explain", ORDER, "--json"]);
    has(&all, &["file", "batches", "bound", "kernels", "missed_batching", "gathered"]);
    has(&all["fused"], &["ops", "stages", "kernels"]);
    assert!(all["hint"].is_null(), "no order has fewer batches: {all:#}");
    let worse = answer(&["explain", ORDER, "--policy", "none", "--json"]);
    assert_eq!((&worse["hint"]["policy"], &worse["hint"]["saves"]), (&"beam:16".into(), &5.into()));
    assert!(worse["hint"]["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{worse:#}");
    has(&all["kernels"][0], &["kernel", "steps", "rows", "multiply_adds"]);
    let findings = all["missed_batching"].as_array().expect("findings are a list");
    assert!(findings.iter().any(|finding| finding["cause"].get("signatures").is_some()), "{all:#}");
    has(&all["gathered"][0], &["step", "kernel", "port", "rows", "reason"]);
}

#[test]
fn every_option_of_explain_prints_json() {
    let why = answer(&["explain", ORDER, "--policy", "depth", "--why", "%2", "%5", "--json"]);
    has(&why["values"][0], &["value", "callee", "step", "site", "instance"]);
    assert_eq!(why["verdict"]["name"], "policy-choice");
    assert_eq!(why["verdict"]["shared_batch"]["policy"], "depth");
    assert!(why["text"].as_str().is_some_and(|text| text.contains("this is why")), "{why:#}");
    let path = answer(&["explain", ORDER, "--why", "%1", "%3", "--json"]);
    assert_eq!(path["verdict"], serde_json::json!({"name": "depends", "path": ["%1", "%2", "%3"]}));
    let lanes = answer(&["explain", NAMES, "--lanes", "--labels", "--json"]);
    assert_eq!((lanes["padded_lanes"].as_u64(), lanes["lanes"].as_u64()), (Some(10), Some(8)));
    assert_eq!(lanes["instances"][0]["instance"], 1, "the instance with the most steps comes first");
    assert_eq!(lanes["instances"][0]["cells"][0]["labels"], serde_json::json!(["#18"]));
    let site = answer(&["explain", NAMES, "--site", "src/names.rs:24", "--json"]);
    assert_eq!(site["emitted"][0]["nodes"], 8);
    let gathers = answer(&["explain", ORDER, "--policy", "none", "--gathers", "--json"]);
    has(&gathers, &["gathered", "gathered_rows", "direct_rows", "copies", "copied_rows"]);
}

#[test]
fn check_diff_and_passes_print_json() {
    let (plan, other) =
        (planned(ORDER, "json_auto.plan", &[]), planned(ORDER, "json_depth.plan", &["--policy", "depth"]));
    let proof = answer(&["check", ORDER, &plan, "--json"]);
    assert_eq!((&proof["proven"], &proof["nodes"]), (&Json::Bool(true), &Json::from(15)));
    let refuted = answer(&["check", NAMES, &plan, "--json"]);
    assert_eq!(refuted["proven"], false);
    assert!(refuted["disagreements"].is_string(), "{refuted:#}");
    let order = scratch("json_order.json");
    std::fs::write(&order, "[[2], [1]]").expect("the scratch folder exists");
    assert_eq!(answer(&["check", ORDER, "--batches", &order, "--json"])["valid"], false);
    let differences = answer(&["diff", &plan, &other, "--json"]);
    assert_eq!(differences["same"], false);
    assert_eq!(differences["differences"][0], serde_json::json!({"property": "batches", "a": 10, "b": 12}));
    assert_eq!(answer(&["diff", &plan, &plan, "--json"])["same"], true);
    let passes = answer(&["passes", "--json"]);
    assert_eq!(passes["passes"][0]["pass"], "fold");
    has(&passes["stages"][0], &["stage", "transforms", "description"]);
}

//! Plans broken on purpose: whatever one number, word or truth value of a plan is changed to, the
//! verifier refuses the plan, or the proof does, or it still computes the same outputs.

use crate::agreement::{planner, played, same_words};
use crate::graphs::{MODELS, Random};
use autobatch_ir::graph::GraphData;
use autobatch_ir::plan::check::{Wanted, check};
use autobatch_ir::plan::interp::Played;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan};
use autobatch_planner::{Request, RowOrder};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// A part of a plan as JSON, and how to put it back.
struct Part {
    name: &'static str,
    json: Json,
    put: fn(&mut Plan, Json) -> Result<(), serde_json::Error>,
}

macro_rules! parts {
    ($plan:expr; $($name:ident),*) => {
        vec![$(Part {
            name: stringify!($name),
            json: serde_json::to_value(&$plan.$name).expect("plans are data"),
            put: |plan, json| {
                plan.$name = serde_json::from_value(json)?;
                Ok(())
            },
        }),*]
    };
}

fn parts(plan: &Plan) -> Vec<Part> {
    parts![plan; stores, words, floats, slabs, fields, kernels, steps, waves, operands, places,
        store_args, lanes, tables, outputs, certificate]
}

/// Paths to everything in a part that is no list and no record.
fn leaves(json: &Json, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    match json {
        Json::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                path.push(place.to_string());
                leaves(item, path, found);
                path.pop();
            }
        }
        Json::Object(record) => {
            for (name, item) in record {
                path.push(name.clone());
                leaves(item, path, found);
                path.pop();
            }
        }
        Json::Null => {}
        Json::Bool(_) | Json::Number(_) | Json::String(_) => found.push(path.clone()),
    }
}

fn strings(json: &Json, found: &mut Vec<String>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Json::Object(record) => record.values().for_each(|item| strings(item, found)),
        Json::String(word) => found.push(word.clone()),
        _ => {}
    }
}

/// Another value for a leaf.
fn changed(leaf: &Json, words: &[String], random: &mut Random) -> Json {
    match leaf {
        Json::Bool(truth) => Json::Bool(!truth),
        Json::String(_) => Json::String(words[random.below(words.len())].clone()),
        _ => {
            let Some(number) = leaf.as_u64() else {
                return Json::from(leaf.as_f64().expect("a number") + 0.5);
            };
            let other = match random.below(4) {
                0 => number + 1,
                1 => number.wrapping_sub(1) & 0xffff_ffff,
                2 => random.below(8) as u64,
                _ => u64::from(u32::MAX) - random.below(3) as u64,
            };
            Json::from(other)
        }
    }
}

fn at<'a>(json: &'a mut Json, path: &[String]) -> &'a mut Json {
    path.iter().fold(json, |json, name| match json {
        Json::Array(items) => &mut items[name.parse::<usize>().expect("a place")],
        Json::Object(record) => record.get_mut(name).expect("a field"),
        _ => unreachable!("paths end at leaves"),
    })
}

/// What stopped a changed plan, or that nothing had to.
fn verdict(plan: Plan, graph: &GraphData, original: &Played) -> &'static str {
    let Ok(plan) = plan.verify() else { return "verify" };
    if check(&plan, graph, Wanted { values: &[], training: false }).is_err() {
        return "check";
    }
    let run = played(&plan, graph, Noise::Off);
    let equal = (0..original.outputs()).all(|output| {
        let (a, b) = (original.output(output), run.output(output));
        same_words(a.expect("an output"), b.expect("an output"))
    });
    if equal { "same" } else { "WRONG" }
}

#[test]
fn a_changed_plan_is_refused_or_computes_the_same() {
    let long = std::env::var_os("AUTOBATCH_TEST").is_some_and(|value| value == "long");
    let (plans, changes) = if long { (1000, 200) } else { (200, 8) };
    let mut counts: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for number in 0..plans {
        let (name, model) = MODELS[number % MODELS.len()];
        let mut random = Random(number as u64);
        let graph = model(&mut random);
        let mode = [Mode::Infer, Mode::Train][random.below(2)];
        let rows = [RowOrder::Batch, RowOrder::Propagated][random.below(2)];
        let policy = ["depth", "agenda", "auto", "none"][random.below(4)];
        let request = Request { mode, rows, ..Request::default() };
        let plan = planner(policy).plan(&graph, &request).expect("outputs are wanted");
        let original = played(&plan.clone().verify().expect("sound"), &graph, Noise::Off);
        for part in parts(&plan) {
            let (mut found, mut words) = (Vec::new(), Vec::new());
            leaves(&part.json, &mut Vec::new(), &mut found);
            strings(&part.json, &mut words);
            for _ in 0..if found.is_empty() { 0 } else { changes } {
                let path = &found[random.below(found.len())];
                let mut json = part.json.clone();
                let leaf = at(&mut json, path);
                let other = changed(leaf, &words, &mut random);
                if *leaf == other {
                    continue;
                }
                let what =
                    format!("{name} {number}: {} {} from {leaf} to {other}", part.name, path.join("."));
                *leaf = other;
                let mut mutant = plan.clone();
                let verdict = match (part.put)(&mut mutant, json) {
                    Ok(()) => verdict(mutant, &graph, &original),
                    Err(_) => "no plan",
                };
                assert_ne!(verdict, "WRONG", "{what} passes and gives other outputs");
                *counts.entry((part.name, verdict)).or_default() += 1;
            }
        }
    }
    for (part, verdict) in
        [("operands", "check"), ("tables", "check"), ("kernels", "check"), ("steps", "verify")]
    {
        assert!(counts.contains_key(&(part, verdict)), "no change of {part} met {verdict}: {counts:?}");
    }
}

//! Mutated plans: after any change of one number, word or flag, and after any swap of two, the verifier rejects the plan, or the proof
//! does, or the plan still computes the same outputs.

use crate::agreement::{executed, planner, same_words};
use crate::graphs::{MODELS, Random};
use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, OutputKey, Plan, Verified};
use autobatch_ir::types::DType;
use autobatch_oracle::check::{Proof, Wanted, check_losses};
use autobatch_oracle::naive::Executed;
use autobatch_planner::{Gradients, Request, RowOrder};
use autobatch_testing::trials::trials;
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet};

/// A part of a plan, element by element as JSON, and a function that replaces an element. The tests make thousands of mutants, so only
/// the changed element goes through JSON.
struct Part {
    name: &'static str,
    elements: Vec<Json>,
    put: fn(&mut Plan, usize, Json) -> Result<(), serde_json::Error>,
}

fn json(value: &impl serde::Serialize) -> Json {
    serde_json::to_value(value).expect("a plan has a JSON form")
}

macro_rules! parts {
    ($plan:expr; lists $($list:ident),*; single $($single:ident),*) => {
        vec![$(Part {
            name: stringify!($list),
            elements: $plan.$list.iter().map(json).collect(),
            put: |plan, at, json| {
                plan.$list[at] = serde_json::from_value(json)?;
                Ok(())
            },
        },)* $(Part {
            name: stringify!($single),
            elements: vec![json(&$plan.$single)],
            put: |plan, _, json| {
                plan.$single = serde_json::from_value(json)?;
                Ok(())
            },
        }),*]
    };
}

fn parts(plan: &Plan) -> Vec<Part> {
    parts![plan;
        lists stores, slabs, fields, kernels, steps, waves, operands, places, store_args, lanes, tables,
            reductions, outputs;
        single words, floats, pause, certificate]
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

/// A different value for a leaf.
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

/// Whether numbers are equal. Zeros of both signs are equal, and so are all NaNs.
fn same_numbers(a: &[u32], b: &[u32]) -> bool {
    let same = |a: f32, b: f32| a == b || (a.is_nan() && b.is_nan());
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| same(f32::from_bits(a), f32::from_bits(b)))
}

/// An unchanged plan and its results.
struct Sound<'a> {
    graph: &'a GraphData,
    plan: Verified<Plan>,
    training: bool,
    losses: &'a [(ValueId, f32)],
    proof: Proof,
    run: Executed,
}

impl<'a> Sound<'a> {
    fn new(plan: Plan, graph: &'a GraphData, training: bool, losses: &'a [(ValueId, f32)]) -> Self {
        let plan = plan.verify().expect("valid");
        let proof =
            check_losses(&plan, graph, Wanted { values: &[], training }, losses).expect("a correct plan");
        let run = executed(&plan, graph, Self::noise(training));
        Self { graph, plan, training, losses, proof, run }
    }

    fn noise(training: bool) -> Noise {
        if training { Noise::On { seed: 5, step: 2 } } else { Noise::Off }
    }

    /// The outcome of a changed plan: its rejection, or equal results.
    fn verdict(&self, plan: Plan) -> &'static str {
        let Ok(plan) = plan.verify() else { return "verify" };
        let wanted = Wanted { values: &[], training: self.training };
        let Ok(proof) = check_losses(&plan, self.graph, wanted, self.losses) else {
            return "check";
        };
        let of = |proof: &Proof| (proof.params.clone(), proof.values.clone(), proof.arriving.clone());
        if of(&proof) != of(&self.proof) {
            return "other gradients";
        }
        let run = executed(&plan, self.graph, Self::noise(self.training));
        let outputs = (0..self.run.outputs()).all(|output| {
            let (a, b) = (self.run.output(output), run.output(output));
            let (a, b) = (a.expect("an output"), b.expect("an output"));
            let is_gradient = matches!(self.plan.outputs[output].key, OutputKey::Gradient(_));
            if is_gradient { same_numbers(a, b) } else { same_words(a, b) }
        });
        let gradients = self.proof.params.iter().all(|&param| {
            let of = |plan: &Plan, run: &Executed| {
                let gradient = run.gradient(plan.gradient_of(param).expect("proven")).expect("made");
                gradient.iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
            };
            same_numbers(&of(&self.plan, &self.run), &of(&plan, &run))
        });
        if outputs && gradients { "same" } else { "WRONG" }
    }

    /// Changes some leaves of every part and counts the verdicts.
    fn mutate(
        &self,
        name: &str,
        changes: usize,
        random: &mut Random,
        counts: &mut BTreeMap<(&'static str, &'static str), u32>,
    ) {
        let mut judge = |part: &'static str, mutant: Option<Plan>, what: &dyn Fn() -> String| {
            let verdict = mutant.map_or("no plan", |mutant| self.verdict(mutant));
            assert_ne!(verdict, "WRONG", "{name}: {} passes and computes something else", what());
            *counts.entry((part, verdict)).or_default() += 1;
        };
        mutants(&self.plan, changes, random, &mut judge);
        exchanges(&self.plan, changes, random, &mut judge);
    }
}

/// Calls back with plans with one changed leaf, some of every part: the name of the part, the plan if the form exists, and the change.
pub(crate) fn mutants(
    plan: &Plan,
    changes: usize,
    random: &mut Random,
    mut each: impl FnMut(&'static str, Option<Plan>, &dyn Fn() -> String),
) {
    for part in parts(plan) {
        let (mut found, mut words) = (Vec::new(), Vec::new());
        for (number, element) in part.elements.iter().enumerate() {
            let mut own = Vec::new();
            leaves(element, &mut Vec::new(), &mut own);
            found.extend(own.into_iter().map(|path| (number, path)));
            strings(element, &mut words);
        }
        for _ in 0..if found.is_empty() { 0 } else { changes } {
            let (number, path) = &found[random.below(found.len())];
            let mut json = part.elements[*number].clone();
            let leaf = at(&mut json, path);
            let other = changed(leaf, &words, random);
            if *leaf == other {
                continue;
            }
            let before = std::mem::replace(leaf, other.clone());
            let mut mutant = plan.clone();
            let mutant = (part.put)(&mut mutant, *number, json).is_ok().then_some(mutant);
            let what = || format!("{}[{number}] {} from {before} to {other}", part.name, path.join("."));
            each(part.name, mutant, &what);
        }
    }
}

/// The meaning of a leaf: the last name in its path.
fn meaning(path: &[String]) -> &str {
    path.iter().rev().find(|name| name.parse::<usize>().is_err()).map_or("", String::as_str)
}

/// Calls back with plans in which two leaves of one meaning are swapped. Half of them have a second swap in any part, because one
/// change can hide another.
fn exchanges(
    plan: &Plan,
    changes: usize,
    random: &mut Random,
    mut each: impl FnMut(&'static str, Option<Plan>, &dyn Fn() -> String),
) {
    let parts = parts(plan);
    let found: Vec<Vec<(usize, Vec<String>)>> = parts
        .iter()
        .map(|part| {
            let mut found = Vec::new();
            for (number, element) in part.elements.iter().enumerate() {
                let mut own = Vec::new();
                leaves(element, &mut Vec::new(), &mut own);
                found.extend(own.into_iter().map(|path| (number, path)));
            }
            found
        })
        .collect();
    // Two different leaves of a part with the same meaning.
    let pair = |part: usize, random: &mut Random| {
        let leaves = &found[part];
        let leaf = |(number, path): &(usize, Vec<String>)| {
            at(&mut parts[part].elements[*number].clone(), path).clone()
        };
        (0..if leaves.is_empty() { 0 } else { 8 }).find_map(|_| {
            let [one, two] = [0; 2].map(|_| &leaves[random.below(leaves.len())]);
            (meaning(&one.1) == meaning(&two.1) && leaf(one) != leaf(two)).then_some((one, two))
        })
    };
    for first in (0..parts.len()).flat_map(|part| std::iter::repeat_n(part, changes)) {
        let second = (random.below(2) == 0).then(|| random.below(parts.len()));
        let mut mutant = Some(plan.clone());
        let mut said: Vec<String> = Vec::new();
        for part in std::iter::once(first).chain(second) {
            let Some(((a, to_a), (b, to_b))) = pair(part, random) else { continue };
            let part = &parts[part];
            let mut elements: BTreeMap<usize, Json> =
                [*a, *b].map(|number| (number, part.elements[number].clone())).into();
            let [one, two] = [(a, to_a), (b, to_b)]
                .map(|(number, path)| at(elements.get_mut(number).expect("taken"), path).clone());
            *at(elements.get_mut(a).expect("taken"), to_a) = two;
            *at(elements.get_mut(b).expect("taken"), to_b) = one;
            said.push(format!(
                "{}[{a}] {} and [{b}] {} exchanged",
                part.name,
                to_a.join("."),
                to_b.join(".")
            ));
            for (number, json) in elements {
                mutant =
                    mutant.and_then(|mut plan| (part.put)(&mut plan, number, json).is_ok().then_some(plan));
            }
        }
        if !said.is_empty() {
            each(parts[first].name, mutant, &|| said.join(", "));
        }
    }
}

#[test]
fn a_mutated_plan_is_rejected_or_computes_the_same() {
    let (plans, changes) = trials((200, 8), (1000, 200));
    let mut counts = BTreeMap::new();
    for number in 0..plans {
        let (name, model) = MODELS[number % MODELS.len()];
        let mut random = Random(number as u64);
        let graph = model(&mut random);
        let mode = [Mode::Infer, Mode::Train][random.below(2)];
        let rows = [RowOrder::Batch, RowOrder::Propagated][random.below(2)];
        let policy = ["depth", "agenda", "auto", "none"][random.below(4)];
        let request = Request { mode, rows, ..Request::default() };
        let plan = planner(policy).plan(&graph, &request).expect("the graph has outputs");
        let sound = Sound::new(plan, &graph, false, &[]);
        sound.mutate(&format!("{name} {number}"), changes, &mut random, &mut counts);
    }
    for (part, verdict) in
        [("operands", "check"), ("tables", "check"), ("kernels", "check"), ("steps", "verify")]
    {
        assert!(
            counts.contains_key(&(part, verdict)),
            "no change of {part} has verdict {verdict}: {counts:?}"
        );
    }
}

#[test]
fn a_mutated_training_plan_is_rejected_or_gives_the_same_gradients() {
    let (plans, changes) = trials((44, 3), (200, 100));
    let mut counts = BTreeMap::new();
    for number in 0..plans {
        let (name, model) = MODELS[number % MODELS.len()];
        let mut random = Random(1000 + number as u64);
        let graph = model(&mut random);
        let floats = |value: &ValueId| {
            let ty = graph.type_of(*value);
            ty.dtype == DType::F32 && !ty.is_list
        };
        let outputs = graph.outputs.iter().map(|output| output.value).filter(floats);
        let losses: Vec<(ValueId, f32)> = outputs.zip([1.0, -0.5, 0.75].into_iter().cycle()).collect();
        let all = (0..graph.arena.values()).map(ValueId::new).filter(floats);
        let values: Vec<ValueId> = all.filter(|_| random.below(3) == 0).collect();
        let rows = [RowOrder::Batch, RowOrder::Propagated][random.below(2)];
        let training = random.below(2) == 0;
        // The gradients of all losses of every second plan arrive at a pause.
        let arriving: BTreeSet<ValueId> = losses.iter().map(|loss| loss.0).collect();
        let arriving: Vec<ValueId> = arriving.into_iter().filter(|_| number % 2 == 0).collect();
        let losses = if arriving.is_empty() { losses } else { Vec::new() };
        let gradients = Some(Gradients { losses: &losses, params: None, values: &values });
        let request = Request {
            mode: Mode::Train,
            rows,
            training,
            gradients,
            arriving: &arriving,
            ..Request::default()
        };
        let policy = ["depth", "agenda", "auto", "none"][random.below(4)];
        let plan = planner(policy).plan(&graph, &request).expect("every op has a derivative");
        let sound = Sound::new(plan, &graph, training, &losses);
        sound.mutate(&format!("{name} {number} for training"), changes, &mut random, &mut counts);
    }
    for (part, verdict) in [
        ("operands", "check"),
        ("tables", "check"),
        ("kernels", "check"),
        ("reductions", "check"),
        ("reductions", "verify"),
        ("pause", "verify"),
        ("pause", "check"),
    ] {
        assert!(
            counts.contains_key(&(part, verdict)),
            "no change of {part} has verdict {verdict}: {counts:?}"
        );
    }
}

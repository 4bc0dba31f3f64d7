//! Files of plans: read, verified, written in every form, read back, executed by every executor, and proven.
//!
//! The proof is the strongest check: a mutated plan that it accepts must have the values of the graph.

use super::corpus::{Sample, samples};
use super::values::elements;
use super::{Files, Form, boxed, of_files};
use crate::counts::{Counts, Tally};
use crate::effort::is_small_plan;
use crate::expected::Expected;
use crate::machine::{Machine, Numbers};
use crate::target::Subject;
use autobatch_ir::Weights;
use autobatch_ir::hash::hash_bytes;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_oracle::check::{Wanted, check};
use autobatch_oracle::naive::Executed;
use autobatch_testing::hostile::tokens;

struct Plans {
    files: Files,
    samples: Vec<Sample>,
    machine: Machine,
}

pub(super) fn open(form: Form) -> Box<dyn Subject> {
    let write = |plan: &Plan| match form {
        Form::Text => plan.to_text().into_bytes(),
        Form::Binary => plan.to_bytes(),
        Form::Json => serde_json::to_vec(plan).expect("every plan has a JSON form"),
    };
    let samples = samples();
    let seeds = samples.iter().map(|sample| write(&sample.plan)).collect();
    let tokens: &[&str] = if form == Form::Json { &tokens::PLAN_JSON } else { &tokens::PLAN };
    boxed(Plans { files: Files { form, seeds, tokens }, samples, machine: Machine::new() })
}

impl Subject for Plans {
    of_files!();

    fn check(&mut self, input: &[u8], counts: &mut Counts) {
        let read = self.files.read_plan(
            input,
            counts,
            |text| Plan::from_text(text).map_err(|error| error.to_string()),
            |bytes| Plan::from_bytes(bytes).map_err(|error| error.to_string()),
            |plan: Plan| plan.verify().map_err(|errors| errors.to_string()),
        );
        let Some(plan) = read else { return };
        reads_back(&plan);
        counts.add(Tally::Accepted);
        if !is_small_plan(&plan) {
            // The refusal and the proof must stay within the budget of the case, whatever the plan declares.
            counts.add(Tally::Large);
            self.machine.refuse(&plan).unwrap_or_else(|what| panic!("{what}\n{}", plan.to_text()));
            if let Some(Sample { graph, training, .. }) = sample_of(&self.samples, &plan) {
                let proof = check(&plan, graph, Wanted { values: &[], training: *training });
                counts.add(if proof.is_ok() { Tally::Proven } else { Tally::Unproven });
            }
            return;
        }
        let outcome = self.execute(&plan, hash_bytes(input), counts);
        outcome.unwrap_or_else(|what| panic!("{what}\n{}", plan.to_text()));
    }
}

impl Plans {
    /// Executes a plan and proves it against the graph of its structure.
    fn execute(&mut self, plan: &Verified<Plan>, draw: u64, counts: &mut Counts) -> Result<(), String> {
        let sample = sample_of(&self.samples, plan);
        let noise = match sample {
            Some(sample) if sample.training => Noise::On { seed: 7, step: 3 },
            _ => Noise::Off,
        };
        let weights = sample.map(|sample| Weights::init(&sample.graph.module, 11));
        let given = &plan.stores[..plan.given_stores()];
        let own = weights.as_ref().map(elements).unwrap_or_default();
        // A mutated store has other elements than its parameter.
        let fits = |number: usize, count: usize| own.get(number).filter(|own| own.len() == count).cloned();
        let stores = given.iter().enumerate().map(|(number, store)| {
            let count = store.ty.shape.elements();
            fits(number, count).unwrap_or_else(|| vec![0.5; count])
        });
        let stores = stores.collect();
        let bindings = sample.map(|sample| &sample.graph.bindings);
        let words = bindings.map(|own| own.words.clone()).filter(|own| own.len() == plan.words as usize);
        let floats = bindings.map(|own| own.floats.clone()).filter(|own| own.len() == plan.floats as usize);
        let all_floats = plan.all_floats() as usize;
        let words = words.unwrap_or_else(|| vec![0; plan.words as usize]);
        let mut floats = floats.unwrap_or_else(|| vec![0.25; all_floats]);
        // The gradients that arrive at a pause.
        floats.resize(all_floats, ARRIVING);
        let numbers = Numbers::new(stores, &words, &floats, noise);
        let run = self.machine.execute(plan, &numbers, draw)?;
        counts.add(if run.is_some() { Tally::Executed } else { Tally::Unplanned });
        let (Some(sample), Some(weights)) = (sample, weights) else { return Ok(()) };
        proven(plan, sample, &weights, run.as_ref(), counts)
    }
}

/// The sample whose graph has the structure that a plan names.
fn sample_of<'a>(samples: &'a [Sample], plan: &Plan) -> Option<&'a Sample> {
    samples.iter().find(|sample| sample.graph.structure() == plan.structure)
}

/// Each element of a gradient that arrives at a pause.
const ARRIVING: f32 = 0.25;

/// Proves a plan. If the proof accepts the plan, compares its values with those of the graph.
fn proven(
    plan: &Verified<Plan>,
    sample: &Sample,
    weights: &Weights,
    run: Option<&Executed>,
    counts: &mut Counts,
) -> Result<(), String> {
    let Sample { graph, training, .. } = sample;
    let Ok(proof) = check(plan, graph, Wanted { values: &[], training: *training }) else {
        counts.add(Tally::Unproven);
        return Ok(());
    };
    counts.add(Tally::Proven);
    let run = run.ok_or("the executors reject a proven plan")?;
    let noise = if *training { Noise::On { seed: 7, step: 3 } } else { Noise::Off };
    let mut losses = proof.losses;
    losses.extend(proof.arriving.into_iter().map(|value| (value, ARRIVING)));
    let expected =
        Expected::new(graph, weights, noise, &losses, &plan.shards).map_err(|error| error.to_string())?;
    let values = expected.compare(plan, run)? + expected.compare_params(plan, run)?;
    counts.add_many(Tally::Values, values);
    Ok(())
}

/// Writes a plan in every form, and asserts that each reads back equal.
fn reads_back(plan: &Verified<Plan>) {
    let text = plan.to_text();
    let again = Plan::from_bytes(&plan.to_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again == *plan, "the binary form reads back another plan\n{text}");
    let json = serde_json::to_string(&**plan).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again: Plan = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again == **plan, "JSON reads back another plan\n{text}");
    // A text numbers the pools anew.
    let mut normal = Plan::clone(plan);
    normal.normalise();
    let again = Plan::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(again == normal && again.to_text() == text, "the text reads back another plan\n{text}");
}

//! `run --mode train`: trains batched and unbatched, and compares losses, weights and moments bit by bit.

use super::report::{Medians, Split, print_times};
use super::{PATIENCE, open};
use crate::args::RunArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use autobatch::prelude::*;
use autobatch::train::Bar;
use autobatch_inspector::text::{count, plural};
use autobatch_models::catalogue::{OpenModel, entry};
use serde_json::json;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// The learning rate. It moves the weights far enough to change the losses, and does not let any model diverge.
const RATE: f64 = 1e-3;

/// Trains a model with both variants in turns.
pub(super) fn run(args: &RunArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    if args.output.is_some() {
        let message = "--mode train compares a run of training and writes no files";
        let help = "remove --output, or write a plan with: autobatch emit, autobatch plan --mode train";
        return Err(Failure::usage(message).help(help));
    }
    let batch = args.batch.unwrap_or(entry(&args.model.name)?.batch);
    let opened = open(args, Some(batch.saturating_mul(args.rounds as usize)))?;
    let policies = [args.model.policy(), Policy::None];
    let [mut batched, mut unbatched] = match policies.map(|policy| trainer(args, &opened, policy)) {
        [Ok(batched), Ok(unbatched)] => [batched, unbatched],
        [Err(error), _] | [_, Err(error)] => return Err(error),
    };
    let instances = opened.workload.instances();
    let (mut times, mut losses, mut same) = ([Vec::new(), Vec::new()], 0, true);
    let (start, mut bar) = (Instant::now(), Bar::new("run", args.rounds as usize));
    for round in 1..=args.rounds as usize {
        if round > 1 && start.elapsed() > PATIENCE {
            break;
        }
        let items = || (round - 1) * batch..round * batch;
        let step = |trainer: &mut Trainer| {
            trainer.step(items(), |g, item| opened.workload.loss(g, item % instances))
        };
        let steps = [step(&mut batched)?, step(&mut unbatched)?];
        same &= equal(&steps[0].losses, &steps[1].losses);
        losses += steps[0].losses.len();
        for (times, step) in times.iter_mut().zip(&steps) {
            times.push(Split { emit: step.emit, plan: step.plan, execute: step.execute + step.update });
        }
        bar.advance(&format!("round {round}"));
    }
    drop(bar);
    let numbers = |trainer: &Trainer| -> Vec<Vec<f32>> {
        let weights = trainer.weights().iter().map(|param| param.values().to_vec());
        weights.chain(trainer.states().iter().map(|state| state.values().to_vec())).collect()
    };
    let (one, other) = (numbers(&batched), numbers(&unbatched));
    same &= one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| equal(one, other));
    let trained: usize = one.iter().map(Vec::len).sum();
    let minibatches = times[0].len();
    let [batched, mut unbatched] = times.map(|times| Split::of(&times));
    unbatched.plan = std::time::Duration::ZERO;
    let times = Medians { unbatched, batched };
    let speed = console.millis(batched.total()).map(|_| times.speedup());
    let per_second = batch as f64 / batched.total().as_secs_f64().max(1e-9);
    if args.json {
        let document = json!({
            "model": opened.entry.name, "about": opened.entry.about, "mode": "train",
            "device": args.model.device.to_string(), "instances": batch, "minibatches": minibatches,
            "unbatched_ms": times.unbatched.json(console), "batched_ms": times.batched.json(console),
            "speedup": speed, "per_second": speed.map(|_| per_second),
            "same_bits": same, "losses": losses, "trained": trained,
        });
        writeln!(console, "{document:#}")?;
    } else {
        let (entry, minibatches) = (opened.entry, plural(minibatches as u64, "minibatch"));
        writeln!(
            console,
            "{}  {}; trains on {minibatches} of {batch} {}",
            entry.name, entry.about, entry.unit
        )?;
        writeln!(console, "device    {}\n", args.model.device)?;
        print_times(&times, per_second, entry.unit, console)?;
        let verdict = match (same, promises(args)) {
            (true, _) => "yes",
            (false, true) => "NO",
            (false, false) => "no, and a GPU does not promise them",
        };
        let [losses, trained] = [losses, trained].map(|number| count(number as u64));
        writeln!(
            console,
            "same bits         {verdict}, {losses} losses, and {trained} weights and moments after the last minibatch"
        )?;
        writeln!(console, "Next: autobatch train {}   |   autobatch run {}", entry.name, entry.name)?;
    }
    Ok(if same || !promises(args) { Answer::Yes } else { Answer::No })
}

/// Whether equal bits are promised. A GPU may make products of small batches with another order of sums.
fn promises(args: &RunArgs) -> bool {
    args.model.device == Device::Cpu
}

fn trainer(args: &RunArgs, opened: &OpenModel, policy: Policy) -> Result<Trainer, Failure> {
    let options = SessionOptions {
        device: args.model.device.clone(),
        policy: Some(policy),
        threads: args.threads,
        seed: args.model.seed,
        ..SessionOptions::default()
    };
    let weights = Weights::try_init(&opened.module, args.model.seed).map_err(autobatch::Error::from)?;
    Ok(Trainer::with_options(&opened.module, Adam::new(RATE), Arc::new(weights), options)?)
}

/// Whether numbers have equal bits.
fn equal(one: &[f32], other: &[f32]) -> bool {
    one.iter().map(|x| x.to_bits()).eq(other.iter().map(|x| x.to_bits()))
}

//! The bits of every model of the catalogue: outputs, losses, gradients, weights and optimiser states.
//!
//! The snapshot holds their hashes, one line for each model. A change that keeps behaviour keeps the snapshot. A new
//! snapshot is necessary after a change of a sum or of generated instances; its commit gives the reason.
//!
//! The test calls the planner and the executor directly, because a session gives no access to gradients. It also lowers
//! the limit below which an executor uses one thread. A session and a trainer must give the same bits, under every policy.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like tests")]

use autobatch::ir::plan::row_ops::Noise;
use autobatch::ir::plan::{Mode, Plan, Verified};
use autobatch::ir::{GraphData, ValueId};
use autobatch::planner::{Gradients, Planner, Request, Selection, update_plan};
use autobatch::prelude::*;
use autobatch::runtime_cpu::{Executor, Inputs};
use autobatch_models::catalogue::{ENTRIES, Entry, OpenModel, Options, open};
use autobatch_models::scores::Scores;
use std::sync::Arc;

/// The seed of instances, weights and noise.
const SEED: u64 = 3;
/// The number of optimiser steps.
const STEPS: u64 = 3;

/// Opens a model with few instances. Its widths leave a remainder for every vector width.
fn small(entry: &Entry) -> OpenModel {
    let options = Options {
        seed: SEED,
        count: Some(8),
        hidden: Some(21),
        embedding: (entry.embedding > 0).then_some(19),
        ..Options::default()
    };
    open(entry.name, &options).unwrap()
}

/// Hashes the bits of arrays and their lengths with 64-bit FNV-1a.
fn hash<'a>(arrays: impl IntoIterator<Item = &'a [f32]>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut add = |word: u32| {
        for byte in word.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for array in arrays {
        assert!(array.iter().all(|x| x.is_finite()), "the bits of NaN are not defined");
        add(array.len() as u32);
        array.iter().for_each(|x| add(x.to_bits()));
    }
    hash
}

/// A model with its instances, and the number of threads.
struct Subject<'p> {
    opened: &'p OpenModel,
    threads: usize,
}

/// The hashes of one training run: losses and gradients of the first step, weights and states after the last step.
struct Trained {
    gradients: u64,
    weights: u64,
    states: u64,
}

impl Subject<'_> {
    fn weights(&self) -> Weights {
        Weights::init(&self.opened.module, SEED)
    }

    fn options(&self) -> SessionOptions {
        SessionOptions { threads: self.threads, seed: SEED, ..SessionOptions::default() }
    }

    fn planner(&self) -> Planner {
        Planner::new(Policy::default().load().unwrap())
    }

    /// An executor that shares every wave among its threads.
    fn executor(&self) -> Executor {
        let mut executor = Executor::new(self.threads).unwrap();
        executor.set_shared_work(1);
        executor
    }

    /// Executes all instances in inference mode. Returns the hash of the outputs, and their scores.
    fn infer(&self) -> (u64, Vec<f64>) {
        let workload = &self.opened.workload;
        let (graph, mut values, mut ends) = (Graph::new(&self.opened.module), Vec::new(), Vec::new());
        for instance in 0..workload.instances() {
            graph.instance(instance as u64);
            workload.emit(&graph, instance, &mut values);
            ends.push(values.len());
        }
        let wanted: Vec<ValueId> = values.iter().filter_map(|value| value.id()).collect();
        let data = graph.data();
        let request = Request { wanted: &wanted, ..Request::default() };
        let selection = Selection::of_graph(&data, request.mode);
        let planned = self.planner().optimize_and_plan(&data, &request, &selection).unwrap();
        let plan = planned.plan.verify().unwrap();
        let mut executor = self.executor();
        executor.execute(&plan, &self.weights(), inputs(&data, Noise::Off)).unwrap();
        let outputs = hash(outputs(&executor, &plan));

        let mut session =
            Session::with_options(&self.opened.module, Arc::new(self.weights()), self.options()).unwrap();
        let run = session.run(&graph, &values).unwrap();
        let rows: Vec<&Row> = values.iter().map(|&value| &run[value]).collect();
        assert_eq!(hash(rows.iter().map(|row| &row[..])), outputs, "the session gives different outputs");
        let (mut scores, mut first) = (Scores::default(), 0);
        for (instance, end) in ends.into_iter().enumerate() {
            workload.score(instance, &rows[first..end], &mut scores);
            first = end;
        }
        (outputs, scores.numbers().into_iter().map(|(_, number)| number).collect())
    }

    /// Minimises the mean loss of all instances.
    fn train(&self, optimizer: Optimizer) -> Trained {
        let OpenModel { module, workload, .. } = self.opened;
        let (graph, count) = (Graph::new(module), workload.instances());
        let loss = |instance: usize| {
            graph.instance(instance as u64);
            workload.loss(&graph, instance).id().unwrap()
        };
        let wanted: Vec<ValueId> = (0..count).map(loss).collect();
        let losses: Vec<(ValueId, f32)> = wanted.iter().map(|&loss| (loss, 1.0 / count as f32)).collect();
        let params = optimizer.all(module);
        let request = Request {
            wanted: &wanted,
            mode: Mode::Train,
            training: true,
            gradients: Some(Gradients { losses: &losses, params: Some(&params), values: &[] }),
            ..Request::default()
        };
        let data = graph.data();
        let plan = self.planner().plan(&data, &request).unwrap().verify().unwrap();
        let recipe = optimizer.recipe(module, &params).unwrap();
        let update = update_plan(module, &recipe).unwrap().verify().unwrap();
        let (mut weights, mut executor) = (self.weights(), self.executor());
        let (mut states, mut gradients) = (recipe.states(&weights, module).unwrap(), None);
        for step in 0..STEPS {
            executor.execute(&plan, &weights, inputs(&data, Noise::On { seed: SEED, step })).unwrap();
            gradients.get_or_insert_with(|| {
                let gradient = |&param| executor.gradient_of(param).unwrap();
                let nonzero = |gradient: &[f32]| gradient.iter().any(|&x| x != 0.0);
                assert!(params.iter().map(gradient).all(nonzero), "a parameter has no gradient");
                hash(outputs(&executor, &plan).chain(params.iter().map(gradient)))
            });
            executor.update(&update, &mut weights, &mut states, &optimizer.floats(step + 1, 1.0)).unwrap();
        }
        let initial = Arc::new(Weights::init(module, SEED));
        let mut trainer = Trainer::with_options(module, optimizer, initial, self.options()).unwrap();
        for _ in 0..STEPS {
            trainer.step(0..count, |g, instance| workload.loss(g, instance)).unwrap();
        }
        let bits = |weights: &Weights| hash(weights.iter().map(|array| array.values()));
        assert_eq!(bits(trainer.weights()), bits(&weights), "the trainer gives different weights");
        Trained {
            gradients: gradients.unwrap(),
            weights: bits(&weights),
            states: hash(states.iter().map(|array| array.values())),
        }
    }
}

fn inputs(data: &GraphData, noise: Noise) -> Inputs<'_> {
    Inputs { words: &data.bindings.words, floats: &data.bindings.floats, noise }
}

fn outputs<'e>(executor: &'e Executor, plan: &'e Verified<Plan>) -> impl Iterator<Item = &'e [f32]> {
    (0..plan.outputs.len()).map(|number| executor.output(plan, number))
}

/// Returns the line of a model. Adam covers most optimiser options and updates every row. Adagrad updates sparse rows.
fn line(opened: &OpenModel, threads: usize) -> String {
    let subject = Subject { opened, threads };
    let (outputs, scores) = subject.infer();
    let dense = subject.train(Adam::new(0.01).clip_norm(1.0).weight_decay(0.01).average(0.9));
    let sparse = subject.train(optim::Adagrad::new(0.02).sparse_rows());
    assert_eq!(dense.gradients, sparse.gradients, "the gradients depend on the optimiser");
    let name = opened.entry.name;
    let hashes = [outputs, dense.gradients, dense.weights, dense.states, sparse.weights, sparse.states]
        .map(|hash| format!("{hash:016x}"));
    format!("{name:10} {} {scores:?}", hashes.join(" "))
}

#[test]
fn models_keep_their_bits() {
    let header = ["outputs", "gradients", "weights", "states", "sparse weights", "sparse states"];
    let mut lines = vec![format!("model      {} scores", header.map(|name| format!("{name:16}")).join(" "))];
    for entry in &ENTRIES {
        let opened = small(entry);
        let [one, two] = [1, 2].map(|threads| line(&opened, threads));
        assert_eq!(one, two, "{}: one thread and two", entry.name);
        lines.push(one);
    }
    insta::assert_snapshot!(lines.join("\n"));
}

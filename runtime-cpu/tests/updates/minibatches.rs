//! Alternates gradient plans and update plans, as a trainer does.

use crate::lab::{Lab, Random};
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_ir::{INDEX, Init, Module, ModuleBuilder, Param, ParamId, Table, Weights, f32};
use autobatch_nn::optim::{Adam, Optimize, Sgd};
use autobatch_oracle::naive;
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs, RunError};
use std::sync::Arc;

struct Model {
    module: Arc<Module>,
    words: Table,
    w: Param,
    b: Param,
}

fn model() -> Model {
    model_of(4)
}

/// The model with the given word width.
fn model_of(width: usize) -> Model {
    let mut m = ModuleBuilder::new("classifier");
    let words = m.table("words", [20, width], Init::Uniform(0.5));
    let (w, b) = (m.param("w", [width, 3], Init::Glorot(1.0)), m.param("b", [3], Init::ZEROS));
    m.cell("unused", [INDEX, f32(width)], |_, [index, x]| [words.row(index) + x]);
    Model { module: m.build().expect("the module is well formed"), words, w, b }
}

impl Model {
    /// A minibatch of words with labels, and its gradient plan.
    fn minibatch(&self, items: &[(u32, u32)]) -> (GraphData, Verified<Plan>) {
        let g = Graph::new(&self.module);
        for (key, &(word, label)) in items.iter().enumerate() {
            g.instance(key as u64);
            let scores = self.words.lookup(&g, word).tanh().affine(self.w, Some(self.b));
            g.output(&format!("loss {key}"), scores.cross_entropy(label));
        }
        let graph = g.finish().expect("the graph is well typed");
        let losses: Vec<_> = graph.outputs.iter().map(|output| (output.value, 1.0)).collect();
        let gradients = Gradients { losses: &losses, params: None, values: &[] };
        let request =
            Request { mode: Mode::Train, training: true, gradients: Some(gradients), ..Request::default() };
        let plan = Planner::default().plan(&graph, &request).expect("everything has a derivative");
        let plan = plan.verify().unwrap_or_else(|errors| panic!("{errors}"));
        (graph, plan)
    }
}

fn items(random: &mut Random, count: usize, words: u64) -> Vec<(u32, u32)> {
    (0..count)
        .map(|_| {
            let word = (random.next() % words) as u32;
            (word, word % 3)
        })
        .collect()
}

fn execute(executor: &mut Executor, lab: &Lab, (graph, plan): &(GraphData, Verified<Plan>)) -> f32 {
    let bound = Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: Noise::Off };
    executor.execute(plan, &lab.weights, bound).expect("everything is bound");
    (0..plan.outputs.len()).map(|number| executor.output(plan, number)[0]).sum()
}

#[test]
fn losses_fall_with_one_update_plan() {
    let model = model();
    let mut lab = Lab::new(&model.module, Adam::new(0.05).clip_norm(5.0).sparse_rows());
    let mut executor = Executor::new(2).expect("the machine has an instruction set");
    let mut random = Random(1);
    let mut losses = Vec::new();
    for _ in 0..60 {
        let batch = model.minibatch(&items(&mut random, 16, 20));
        losses.push(execute(&mut executor, &lab, &batch) / 16.0);
        let floats = lab.next_floats(1.0 / 16.0);
        executor.update(&lab.plan, &mut lab.weights, &mut lab.states, &floats).expect("everything fits");
    }
    assert!(losses[0] > 0.9 && losses[59] < 0.1, "{losses:?}");
    assert_eq!(lab.states.updates(), 60);
}

#[test]
fn sparse_rows_are_the_rows_of_lookups_in_both_executors() {
    let model = model();
    let mut lab = Lab::new(&model.module, Adam::new(0.05).sparse_rows());
    let mut executor = Executor::new(1).expect("the machine has an instruction set");
    let batch = model.minibatch(&[(7, 0), (3, 1), (7, 2), (19, 1)]);
    execute(&mut executor, &lab, &batch);
    let table = ParamId::new(0);
    assert_eq!(executor.sparse_rows(table), Some(&[3, 7, 19][..]));
    assert_eq!(executor.sparse_rows(ParamId::new(1)), None, "the gradient of a weight is dense");
    let (graph, plan) = &batch;
    let stores: Vec<&[f32]> = lab.weights.iter().map(|param| param.values()).collect();
    let naive = naive::execute(plan, &stores, &graph.bindings.words, &graph.bindings.floats, Noise::Off)
        .expect("everything is bound");
    let store = plan.gradient_of(table).expect("the plan has the gradient");
    assert_eq!(naive.sparse_rows(store), Some(&[3, 7, 19][..]));
    let before = lab.weights.get(table).to_vec();
    let floats = lab.next_floats(1.0);
    executor.update(&lab.plan, &mut lab.weights, &mut lab.states, &floats).expect("everything fits");
    let rows = before.chunks(4).zip(lab.weights.get(table).chunks(4)).enumerate();
    let changed: Vec<usize> = rows.filter(|(_, (old, new))| old != new).map(|(row, _)| row).collect();
    assert_eq!(changed, [3, 7, 19]);
}

#[test]
fn accumulated_gradients_equal_those_of_one_large_minibatch() {
    let model = model();
    let lab = Lab::new(&model.module, Sgd::new(0.1));
    let mut random = Random(2);
    let parts = [items(&mut random, 5, 9), items(&mut random, 3, 9), items(&mut random, 7, 9)];
    let mut executor = Executor::new(1).expect("the machine has an instruction set");
    for (number, part) in parts.iter().enumerate() {
        executor.set_accumulate_gradients(number > 0);
        execute(&mut executor, &lab, &model.minibatch(part));
    }
    executor.set_accumulate_gradients(false);
    let mut whole = Executor::new(1).expect("the machine has an instruction set");
    execute(&mut whole, &lab, &model.minibatch(&parts.concat()));
    for number in 0..3 {
        let param = ParamId::new(number);
        let (found, expected) = (executor.gradient_of(param), whole.gradient_of(param));
        let pairs = found.expect("the gradient exists").iter().zip(expected.expect("the gradient exists"));
        pairs.for_each(|(x, y)| assert!((x - y).abs() < 1e-5, "{x}, expected {y}"));
        assert_eq!(executor.sparse_rows(param), whole.sparse_rows(param));
    }
    // The next run starts from 0 again.
    let batch = model.minibatch(&parts[1]);
    execute(&mut executor, &lab, &batch);
    execute(&mut whole, &lab, &batch);
    assert_eq!(executor.gradient_of(ParamId::new(1)), whole.gradient_of(ParamId::new(1)));
}

#[test]
fn gradients_of_other_sizes_are_not_accumulated() {
    let lab = Lab::new(&model().module, Sgd::new(0.1));
    let mut executor = Executor::new(1).expect("the machine has an instruction set");
    execute(&mut executor, &lab, &model().minibatch(&[(1, 1)]));
    let wider = model_of(7);
    let (graph, plan) = wider.minibatch(&[(1, 1)]);
    executor.set_accumulate_gradients(true);
    let bound = Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: Noise::Off };
    let error =
        executor.execute(&plan, &Weights::init(&wider.module, 1), bound).expect_err("the sizes differ");
    assert!(matches!(error, RunError::OtherGradients), "{error}");
}

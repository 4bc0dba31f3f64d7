//! Updates repack weights. Runs after an update match the naive executor bit for bit.

use crate::lab::{Lab, Random};
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, StoreKind, Verified};
use autobatch_ir::{DType, Init, Module, ModuleBuilder, Param, Table, Weights};
use autobatch_nn::optim::{Adam, Optimize};
use autobatch_oracle::naive;
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs};
use std::sync::Arc;

/// `wide` has an operand of two parts, is transposed in the reverse, and has more rows than are packed at a time. Its bias adds
/// a third reduction over the same rows. `half` is rounded after an update.
struct Model {
    module: Arc<Module>,
    words: Table,
    wide: Param,
    bias: Param,
    narrow: Param,
    half: Param,
}

const WORDS: u32 = 30;

fn model() -> Model {
    let mut m = ModuleBuilder::new("packed");
    let words = m.table("words", [WORDS as usize, 90], Init::Uniform(0.5));
    let wide = m.param("wide", [180, 37], Init::Glorot(1.0));
    let bias = m.param("bias", [37], Init::Uniform(0.1));
    let narrow = m.param("narrow", [37, 90], Init::Glorot(1.0));
    let half = m.param_stored_as("half", ParamKind::Param, DType::F16, [90, 3], Init::Glorot(1.0));
    Model { module: m.build().expect("the module is well formed"), words, wide, bias, narrow, half }
}

impl Model {
    /// A minibatch of `items` items, each with a chain of `steps` products.
    fn minibatch(&self, random: &mut Random, items: u64, steps: usize) -> (GraphData, Verified<Plan>) {
        let g = Graph::new(&self.module);
        for key in 0..items {
            g.instance(key);
            let word = |random: &mut Random| self.words.lookup(&g, (random.next() % u64::from(WORDS)) as u32);
            let mut state = word(random);
            for _ in 0..steps {
                let wide = g.affine([state, word(random)], self.wide, Some(self.bias)).tanh();
                state = wide.affine(self.narrow, None).tanh();
            }
            let loss = state.affine(self.half, None).cross_entropy((random.next() % 3) as u32);
            g.output(&format!("loss {key}"), loss);
        }
        let graph = g.finish().expect("the graph is well typed");
        let losses: Vec<_> = graph.outputs.iter().map(|output| (output.value, 0.1)).collect();
        let gradients = Gradients { losses: &losses, params: None, values: &[] };
        let request =
            Request { mode: Mode::Train, training: true, gradients: Some(gradients), ..Request::default() };
        let plan = Planner::default().plan(&graph, &request).expect("everything has a derivative");
        (graph, plan.verify().unwrap_or_else(|errors| panic!("{errors}")))
    }
}

#[track_caller]
fn check_run(executor: &mut Executor, weights: &Weights, (graph, plan): &(GraphData, Verified<Plan>)) {
    let (words, floats) = (&graph.bindings.words, &graph.bindings.floats);
    executor
        .execute(plan, weights, Inputs { words, floats, noise: Noise::Off })
        .expect("everything is bound");
    let stores: Vec<&[f32]> = weights.iter().map(|param| param.values()).collect();
    let naive = naive::execute(plan, &stores, words, floats, Noise::Off).expect("everything is bound");
    let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for number in 0..plan.outputs.len() {
        assert_eq!(Some(&*bits(executor.output(plan, number))), naive.output(number), "output {number}");
    }
    for store in plan.stores.iter() {
        let StoreKind::Grad(of) = store.kind else { continue };
        let of = autobatch_ir::ParamId::new(of.index());
        let found = executor.gradient_of(of).expect("the gradient exists");
        let expected =
            plan.gradient_of(of).and_then(|store| naive.gradient(store)).expect("the gradient exists");
        assert!(bits(found) == bits(expected), "the gradient of {}", store.name);
    }
}

#[test]
fn weights_packed_by_an_update_serve_the_next_run() {
    let model = model();
    let mut random = Random(8);
    // The first batch has more rows than reductions process at a time.
    let batches = [model.minibatch(&mut random, 180, 3), model.minibatch(&mut random, 9, 1)];
    for isa in Isa::available() {
        for threads in [1, 2] {
            let mut lab = Lab::new(&model.module, Adam::new(0.05).clip_norm(5.0));
            let mut executor = Executor::with_isa(isa, threads);
            executor.set_shared_work(1);
            let original = lab.weights.clone();
            for (batch, updates) in [(0, 1), (1, 2), (0, 1)] {
                check_run(&mut executor, &lab.weights, &batches[batch]);
                // No run used the weights before a second update.
                for _ in 0..updates {
                    let floats = lab.next_floats(1.0);
                    executor
                        .update(&lab.plan, &mut lab.weights, &mut lab.states, &floats)
                        .expect("everything fits");
                }
            }
            check_run(&mut executor, &original, &batches[1]);
            check_run(&mut executor, &lab.weights, &batches[1]);
        }
    }
}

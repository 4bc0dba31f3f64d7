//! Stages of every kind, forward and reverse, in tiles, blocks and shares. The test is small enough for Miri, so all raw
//! memory accesses of the executor can be checked.

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_ir::{Cell, Graph, INDEX, Init, Module, ModuleBuilder, ParamId, Value, Weights, f32};
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs};
use std::sync::Arc;

/// The width of states: no multiple of any vector.
const H: usize = 13;
/// A width such that a block of an elementwise stage has few rows; one row under Miri.
const WIDE: usize = if cfg!(miri) { 1030 } else { 300 };
const WORDS: usize = 9;
/// The number of instances: more than the rows of a tile and of a block.
const COUNT: u32 = if cfg!(miri) { 2 } else { 130 };

/// The instruction sets to test; Miri runs the portable kernels only.
fn isas() -> Vec<Isa> {
    if cfg!(miri) { vec![Isa::Scalar] } else { Isa::available() }
}

struct Model {
    module: Arc<Module>,
    /// Computes two states from two: a product, elementwise code over few columns, a row op.
    node: Cell<2, 2>,
    /// Elementwise code over many columns.
    wide: Cell<2, 1>,
    /// A row of a table.
    leaf: Cell<1, 1>,
    /// A row op without a compiled kernel, and a product.
    last: Cell<1, 1>,
}

impl Model {
    fn new() -> Self {
        let mut m = ModuleBuilder::new("stages");
        let words = m.table("words", [WORDS, H], Init::Uniform(0.5));
        let w = m.param("w", [2 * H, 2 * H], Init::Glorot(1.0));
        let (b, out) = (m.param("b", [2 * H], Init::Uniform(0.1)), m.param("out", [H, 5], Init::Glorot(1.0)));
        let node = m.cell("node", [f32([H]); 2], |g, [left, right]| {
            let [gate, new] = g.affine([left, right], w, Some(b)).split();
            let state = gate.sigmoid() * new.tanh() + left;
            [state, state.softmax() * gate]
        });
        let wide = m.cell("wide", [f32([WIDE]); 2], |_, [x, y]| [(x * y + x).tanh() * (x - y).sigmoid()]);
        let leaf = m.cell("leaf", [INDEX], |_, [word]| [words.row(word)]);
        let last = m.cell("last", [f32([H])], |g, [x]| [g.affine([x.layer_norm(1e-5)], out, None)]);
        Self { module: m.build().expect("the model is well typed"), node, wide, leaf, last }
    }

    /// Emits a small tree with folds over lists of its states. Returns its loss; `values` receives other outputs.
    fn emit<'g>(&self, g: &'g Graph, number: u32, values: &mut Vec<ValueId>) -> Value<'g> {
        let word = |i: u32| (number * 5 + i * i) % WORDS as u32;
        let [[a], [b], [c]] = [0, 1, 2].map(|i| g.call(self.leaf, word(i)));
        let [left, other] = g.call(self.node, [a, b]);
        let [right, _] = g.call(self.node, [left, c]);
        let states = g.list([left, other, right, a]);
        let scores = g.list([left, right, other, c].map(|x| x.sum()));
        let attended = g.attend(right, states, states, 0.3);
        let [y] = g.call(self.last, attended + states.max() + g.weighted_sum(scores, states) + states.sum());
        let x: Vec<f32> = (0..2 * WIDE as u32).map(|i| ((i * 7 + number) % 19) as f32 / 19.0 - 0.4).collect();
        let (x, z) = x.split_at(WIDE);
        let [far] = g.call(self.wide, [g.input(x), g.input(z)]);
        values.extend([y, far, right].iter().filter_map(|value| value.id()));
        y.cross_entropy(number % 5) + far.mean()
    }
}

fn plan(data: &GraphData, policy: &str, values: &[ValueId], losses: &[(ValueId, f32)]) -> Verified<Plan> {
    let policy: Policy = policy.parse().expect("a policy");
    let gradients = Some(Gradients { losses, params: None, values: &[] });
    let request =
        Request { wanted: values, mode: Mode::Train, training: true, gradients, ..Request::default() };
    let plan = Planner::new(policy.load().expect("no file")).plan(data, &request).expect("a plan");
    plan.verify().expect("planners make verifiable plans")
}

fn same(found: &[f32], expected: &[f32]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(&a, &b)| same_bits(a, b))
}

#[test]
fn stages_of_every_kind_match_the_reference_in_tiles_blocks_and_shares() {
    let model = Model::new();
    let weights = Weights::init(&model.module, 1);
    let graph = Graph::new(&model.module);
    let (mut values, mut losses) = (Vec::new(), Vec::new());
    for number in 0..COUNT {
        graph.instance(u64::from(number));
        losses.extend(model.emit(&graph, number, &mut values).id().map(|loss| (loss, 0.5)));
    }
    graph.check().expect("the graph is well typed");
    let data = graph.data();
    let bound = Inputs { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off };
    let run = reference::forward::<f32>(&data, &weights, reference::Noise::Off).expect("it evaluates");
    let policies: &[&str] = if cfg!(miri) { &["auto"] } else { &["none", "auto"] };
    for &policy in policies {
        let plan = plan(&data, policy, &values, &losses);
        let mut gradients: Option<Vec<Vec<u32>>> = None;
        for (isa, threads) in isas().into_iter().flat_map(|isa| [(isa, 1), (isa, 2)]) {
            let mut executor = Executor::with_isa(isa, threads);
            executor.set_shared_work(1);
            // The second run reuses memory with old contents.
            for _ in 0..2 {
                executor.execute(&plan, &weights, bound).expect("bindings fit");
            }
            // Requested values follow the named outputs.
            let first = plan.outputs.len() - values.len();
            for (number, &value) in values.iter().enumerate() {
                let expected = run.floats(value).expect("it was evaluated");
                let found = executor.output(&plan, first + number);
                assert!(same(found, expected), "{policy} {isa} {threads} {value}: {found:?}");
            }
            let bits = |param| -> Vec<u32> {
                executor
                    .gradient_of(param)
                    .expect("every parameter has a gradient")
                    .iter()
                    .map(|x| x.to_bits())
                    .collect()
            };
            let found: Vec<_> =
                (0..model.module.params.len()).map(|param| bits(ParamId::new(param))).collect();
            let expected = gradients.get_or_insert_with(|| found.clone());
            assert!(
                found == *expected,
                "{policy} {isa} {threads}: gradients equal those of the first executor"
            );
            assert!(
                executor
                    .sparse_rows(ParamId::new(0))
                    .is_some_and(|rows| rows.is_sorted() && !rows.is_empty())
            );
        }
    }
}

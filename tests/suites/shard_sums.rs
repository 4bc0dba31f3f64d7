//! The CPU executor sums shards apart and adds their sums in the tree of the reference.

use super::{completed_one_by_one, losses, parameter_gradients, same_bits, sharded_plan_of};
use autobatch_ir::Weights;
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::id::{NodeId, ParamId};
use autobatch_ir::module::{Init, ModuleBuilder};
use autobatch_ir::types::f32;
use autobatch_oracle::reference;
use autobatch_planner::{Gradients, RowOrder};
use autobatch_runtime_cpu::Executor;
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_testing::cases::same_number;
use autobatch_tests::agreement::{inputs_of, noise};

/// The rows of a matrix value, so that one shard may have more rows than an executor packs at once.
const ROWS: usize = 60;

/// A graph whose shards have few and many rows of weights with several sizes. One weight is so large that an executor sums its
/// shards in parts if they have many rows. Two cells read another, and blocks of a third overlap in part. Rows of labels are
/// summed in parts too, and those of a table together with its lookups.
fn large() -> GraphData {
    let mut m = ModuleBuilder::new("large");
    let w = m.param("w", [150, 530], Init::Glorot(1.0));
    let b = m.param("b", 530, Init::ZEROS);
    let v = m.param("v", [300, 260], Init::Glorot(1.0));
    let t = m.table("t", [40, 260], Init::Uniform(1.0));
    let u = m.param("u", [300, 480], Init::Glorot(1.0));
    let s = m.table("s", [40, 150], Init::Uniform(1.0));
    let labels = m.param("labels", [900, 150], Init::Glorot(1.0));
    let one = m.cell("one", [f32(150)], |g, [x]| [g.affine([x], w, Some(b)).tanh()]);
    let two = m.cell("two", [f32(150), f32(150)], |g, [x, y]| {
        [g.affine([x], w, Some(b)).tanh() * g.affine([y], w, None)]
    });
    let parts = m.cell("parts", [f32(150), f32(150)], |g, [x, y]| [g.affine([x, y], v, None).tanh()]);
    let many = m.cell("many", [f32([ROWS, 300])], |g, [x]| [g.affine([x], u, None).tanh().sum()]);
    let back = m.cell("back", [f32(260)], |_, [x]| [x.affine_transposed(v, None)]);
    let g = Graph::new(&m.build().expect("sound"));
    for key in 0..37u32 {
        g.instance(u64::from(key));
        let x: Vec<f32> = (0..150).map(|i| ((key * 97 + i) as f32 * 0.37).sin()).collect();
        let (x, y) = (g.input(&x), s.lookup(&g, key % 7));
        let [first] = g.call(one, x);
        let [second] = g.call(two, [x, y]);
        let [third] = g.call(parts, [y, x]);
        let word = t.lookup(&g, key % 5);
        let [fourth] = g.call(back, third + word);
        let matrix: Vec<f32> =
            (0..ROWS * 300).map(|i| ((key as usize * 31 + i) as f32 * 0.11).cos()).collect();
        let [fifth] = g.call(many, g.input_shaped([ROWS, 300], &matrix));
        let of_labels = x.label_loss(labels, key * 17 % 900) + (x * 0.5).label_loss(s.as_param(), key % 40);
        let terms = [fifth + first.sum() + of_labels, second.sum(), fourth.logsumexp()];
        // Some shards do not use some weights.
        let count = if key < 16 { 3 } else { 1 + key as usize % 3 };
        let loss = terms[..count].iter().copied().reduce(|sum, term| sum + term).expect("terms");
        g.loss(&format!("loss{key}"), loss);
    }
    g.finish().expect("sound")
}

#[test]
fn sums_of_shards_have_the_bits_of_the_reference() {
    let graph = large();
    let weights = Weights::init(&graph.module, 5);
    let losses = losses(&graph);
    let gradients = Gradients { losses: &losses, params: None, values: &[] };
    let noise = noise(true);
    let run = reference::forward::<f32>(&graph, &weights, noise).expect("sound");
    let evaluation = reference::Evaluation::new(&graph, &weights, noise).expect("sound");
    let first = |loss: usize| NodeId::new(graph.arena.producer(losses[loss - 1].0).index() + 1);
    for cuts in [&[9][..], &[4, 8, 13, 20, 36], &[1, 2, 3, 4, 5, 6, 30]] {
        let shards: Vec<NodeId> = cuts.iter().map(|&cut| first(cut)).collect();
        let expected = evaluation.reverse_in_shards(&run, &losses, &shards).expect("sound");
        let plan = sharded_plan_of(&graph, "auto", RowOrder::Propagated, gradients, &shards).expect("a plan");
        for (isa, threads) in [(Isa::best(), 1), (Isa::best(), 3), (Isa::Scalar, 2)] {
            let mut executor = Executor::with_isa(isa, threads);
            executor.execute(&plan, &weights, inputs_of(&graph, true)).expect("sound");
            let found = parameter_gradients(&executor, &plan, &graph);
            let completed = completed_one_by_one(&mut executor, &plan, &graph, &weights).expect("sound");
            assert!(same_bits(&completed, &found), "{} shards, {isa}, {threads} threads", cuts.len() + 1);
            for (number, found) in found.iter().enumerate() {
                let wanted = expected.param(ParamId::new(number)).expect("every parameter is used");
                let equal =
                    found.len() == wanted.len() && found.iter().zip(wanted).all(|(&a, &b)| same_number(a, b));
                let name = &graph.module.params[number].name;
                assert!(equal, "@{name}, {} shards, {isa}, {threads} threads", cuts.len() + 1);
            }
        }
    }
}

//! Executing a plan of a size seen before allocates nothing on one thread.

use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::{Graph, INDEX, Init, ModuleBuilder, Weights, f32};
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs};
use autobatch_testing::hostile::{Counting, allocations};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The model has every kind of stage: products, elementwise code, folds over lists, row ops with and without compiled
/// kernels, and bound indices.
#[test]
fn the_second_run_of_a_plan_allocates_nothing() {
    let h = 12;
    let mut m = ModuleBuilder::new("steady");
    let embed = m.table("embed", [50, h], Init::Uniform(0.1));
    let weight = m.param("w", [2 * h, h], Init::Glorot(1.0));
    let bias = m.param("b", [h], Init::ZEROS);
    let leaf = m.cell("leaf", [INDEX], |_, [word]| [embed.row(word)]);
    let node = m.cell("node", [f32([h]); 2], |g, [left, right]| {
        let h = g.affine([left, right], weight, Some(bias)).tanh();
        let flipped = h.reshape([3, 4]).transpose([1, 0]).reshape([12]);
        [h * h.softmax() + flipped.layer_norm(1e-5)]
    });
    let module = m.build().expect("the model is well typed");
    let mut weights = Weights::init(&module, 1);
    let weight_id = weight.id().expect("a parameter");
    for policy in ["none", "auto"] {
        let graph = Graph::new(&module);
        let mut outputs = Vec::new();
        for key in 0..40u32 {
            graph.instance(u64::from(key));
            let leaves: Vec<_> = (0..4).map(|i| graph.call(leaf, (key * 7 + i) % 50)).collect();
            let [[a], [b], [c], [d]] = [leaves[0], leaves[1], leaves[2], leaves[3]];
            let [left] = graph.call(node, [a, b]);
            let [right] = graph.call(node, [c, d]);
            let keys = graph.list([a, b, right]);
            let values = graph.list([b, c, left]);
            let summary = graph.attend(left, keys, values, 0.5);
            outputs.extend(summary.id());
            outputs.extend(summary.cross_entropy(key % 12).id());
        }
        let data = graph.data();
        let policy: Policy = policy.parse().expect("a policy");
        let mut planner = Planner::new(policy.load().expect("no file"));
        let plan = planner.plan(&data, &Request { wanted: &outputs, ..Request::default() });
        let plan = plan.expect("a plan").verify().expect("planners make verifiable plans");
        let bound = Inputs { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off };
        let mut executor = Executor::new(1).expect("an instruction set");
        let before = allocations();
        executor.execute(&plan, &weights, bound).expect("bindings fit");
        assert!(allocations() > before, "the first run allocates");
        let before = allocations();
        executor.execute(&plan, &weights, bound).expect("bindings fit");
        assert_eq!(allocations() - before, 0, "{policy}: {} steps", plan.steps.len());
        let halved: Vec<f32> = weights.get(weight_id).iter().map(|w| w / 2.0).collect();
        weights.set(weight_id, &halved).expect("as many as before");
        let before = allocations();
        executor.execute(&plan, &weights, bound).expect("bindings fit");
        assert_eq!(allocations() - before, 0, "{policy}: changed weights are packed in place");
    }
}

/// Gradients of the caller.
struct Given(Vec<Vec<f32>>);

impl autobatch_runtime_cpu::GradientSource for Given {
    fn gradient(&self, param: autobatch_ir::ParamId) -> Option<&[f32]> {
        self.0.get(param.index()).map(Vec::as_slice)
    }

    fn sparse_rows(&self, param: autobatch_ir::ParamId) -> Option<&[u32]> {
        (param.index() == 1).then_some(&[0, 1, 5, 49])
    }
}

#[test]
fn the_second_update_allocates_nothing() {
    use autobatch_nn::optim::{Adam, Optimize};
    let mut m = ModuleBuilder::new("steady");
    m.param("w", [120, 100], Init::Glorot(1.0));
    m.table("embed", [50, 12], Init::Uniform(0.1));
    let module = m.build().expect("the model is well typed");
    let optimizer = Adam::new(1e-3).clip_norm(1.0).average(0.99).sparse_rows();
    let recipe = optimizer.recipe(&module, &optimizer.all(&module)).expect("the rule is well typed");
    let plan = autobatch_planner::update_plan(&module, &recipe).expect("something is updated");
    let plan = plan.verify().expect("plans are sound");
    let mut weights = Weights::init(&module, 1);
    let mut states = recipe.states(&weights, &module).expect("memory suffices");
    let given = Given(vec![vec![0.1; 12_000], vec![0.2; 600]]);
    let mut executor = Executor::new(1).expect("the machine has an instruction set");
    let mut update = |number| {
        let floats = optimizer.floats(number, 1.0);
        let before = allocations();
        executor.update_with(&plan, &given, &mut weights, &mut states, &floats).expect("everything fits");
        allocations() - before
    };
    assert!(update(1) > 0);
    assert_eq!([update(2), update(3)], [0, 0]);
}

//! Weights larger than a cache use taller tiles, and changed weights are packed in place. The bits stay the same.

use autobatch_ir::numeric::same_bits;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::{Graph, Init, ModuleBuilder, Weights, f32};
use autobatch_oracle::reference;
use autobatch_planner::schedule::Policy;
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::kernels::Isa;
use autobatch_runtime_cpu::{Executor, Inputs};

#[test]
fn batches_of_all_heights_match_the_reference_before_and_after_a_weight_change() {
    let (wide, hidden) = if cfg!(miri) { (20, 5) } else { (320, 260) };
    let mut m = ModuleBuilder::new("large");
    let weight = m.param("w", [wide, 4 * hidden], Init::Glorot(1.0));
    let bias = m.param("b", [4 * hidden], Init::Uniform(0.5));
    let cell = m.cell("gates", [f32([wide])], |g, [x]| {
        let gates = g.affine([x], weight, Some(bias));
        let [i, o, u, f] = gates.split();
        [i.sigmoid() * u.tanh() + f.sigmoid() * o]
    });
    let module = m.build().expect("the model is well typed");
    let weight_id = weight.id().expect("a parameter");
    let policy: Policy = "auto".parse().expect("a policy");
    for lanes in if cfg!(miri) { vec![3] } else { vec![13, 57, 71, 113, 130] } {
        let mut weights = Weights::init(&module, 1);
        let graph = Graph::new(&module);
        let mut values = Vec::new();
        for lane in 0..lanes {
            graph.instance(lane);
            let x: Vec<f32> = (0..wide).map(|i| ((lane as f32 + 0.37) * (i as f32 + 1.0)).sin()).collect();
            let [y] = graph.call(cell, graph.input(&x));
            values.extend(y.id());
        }
        let data = graph.data();
        let mut planner = Planner::new(policy.load().expect("no file"));
        let plan = planner.plan(&data, &Request { wanted: &values, ..Request::default() });
        let plan = plan.expect("a plan").verify().expect("planners make verifiable plans");
        let first = plan.outputs.len() - values.len();
        let bound = Inputs { words: &data.bindings.words, floats: &data.bindings.floats, noise: Noise::Off };
        let mut executors: Vec<_> =
            Isa::available().into_iter().map(|isa| Executor::with_isa(isa, 1)).collect();
        for round in 0..2 {
            let expected = reference::forward::<f32>(&data, &weights, reference::Noise::Off);
            let expected = expected.expect("it evaluates");
            for executor in &mut executors {
                executor.execute(&plan, &weights, bound).expect("bindings fit");
                for (number, &value) in values.iter().enumerate() {
                    let found = executor.output(&plan, first + number);
                    let expected = expected.floats(value).expect("it was evaluated");
                    assert_eq!(found.len(), expected.len());
                    let differs = found.iter().zip(expected).position(|(&a, &b)| !same_bits(a, b));
                    assert_eq!(differs, None, "{} lanes {lanes} lane {number} round {round}", executor.isa());
                }
            }
            let reversed: Vec<f32> = weights.get(weight_id).iter().rev().copied().collect();
            weights.set(weight_id, &reversed).expect("as many as before");
        }
    }
}

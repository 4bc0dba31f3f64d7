//! An allocation that fails is an error of the run. The executor stays usable, and gives the same bits afterwards.

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::{Graph, Init, ModuleBuilder, Weights, f32};
use autobatch_planner::{Planner, Request};
use autobatch_runtime_cpu::{Executor, Inputs, RunError};
use autobatch_testing::hostile::{Counting, cap, held};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of the large arrays: slabs, packed weights, and temporaries of a wide cell.
const LARGE: usize = 4 << 20;

/// A plan with large rows, a large weight and large temporaries.
fn plan() -> (Verified<Plan>, GraphData) {
    let n = LARGE / 4;
    let mut m = ModuleBuilder::new("large");
    let weight = m.param("w", [1024, 1024], Init::Uniform(0.01));
    let wide = m.cell("wide", [f32([1024])], |g, [x]| {
        let large = (x.sum() * g.fill([n], 0.5)).tanh();
        [g.affine([x], weight, None) + large.sum().broadcast([1024])]
    });
    let module = m.build().expect("the model is well typed");
    let graph = Graph::new(&module);
    let mut values: Vec<ValueId> = Vec::new();
    for key in 0..4 {
        graph.instance(key);
        let x = graph.input(&vec![key as f32; n]);
        let [y] = graph.call(wide, x.slice(0..1024));
        values.extend([x.tanh().id(), y.id()].into_iter().flatten());
    }
    let data = graph.finish().expect("the graph is well typed");
    let request = Request { wanted: &values, ..Request::default() };
    (Planner::default().plan(&data, &request).expect("a plan").verify().expect("sound"), data)
}

fn bits(executor: &Executor, plan: &Plan) -> Vec<Vec<u32>> {
    let row = |number| executor.output(plan, number).iter().map(|x| x.to_bits()).collect();
    (0..plan.outputs.len()).map(row).collect()
}

#[test]
fn a_failed_allocation_is_an_error_and_the_executor_stays_usable() {
    let (plan, graph) = plan();
    let weights = Weights::init(&graph.module, 3);
    let bound = Inputs { words: &graph.bindings.words, floats: &graph.bindings.floats, noise: Noise::Off };
    let mut whole = Executor::new(1).expect("an instruction set");
    whole.execute(&plan, &weights, bound).expect("there is memory");
    let expected = bits(&whole, &plan);
    drop(whole);
    let needs = autobatch_runtime_cpu::footprint(&plan, 1).memory() as usize;
    let mut executor = Executor::new(1).expect("an instruction set");
    let mut failures = 0;
    // With more memory each time, the run fails at another allocation, and then succeeds.
    for part in 1..=8 {
        cap(held() as usize + (1 << 20) + needs * part / 8);
        let run = executor.execute(&plan, &weights, bound);
        cap(usize::MAX);
        match run {
            Ok(()) => assert_eq!(bits(&executor, &plan), expected, "with {part} of 8 parts"),
            Err(RunError::Memory { .. } | RunError::Tiles { .. } | RunError::Kernel(_)) => failures += 1,
            Err(error) => panic!("with {part} of 8 parts: {error}"),
        }
    }
    assert!(failures > 0, "some run failed");
    executor.execute(&plan, &weights, bound).expect("there is memory");
    assert_eq!(bits(&executor, &plan), expected);
}

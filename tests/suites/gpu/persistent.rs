//! Words that the plans of a model share are written once for all of them.

use crate::common::{executor, inferring, inputs_of};
use autobatch_ir::graph::{Graph, GraphData};
use autobatch_ir::module::{Init, Module, ModuleBuilder};
use autobatch_ir::plan::{Plan, Verified};
use autobatch_ir::types::f32;
use autobatch_ir::{Cell, ParamId, Weights};
use autobatch_runtime_wgpu::compile::compile;
use autobatch_runtime_wgpu::{Executor, Options};
use std::sync::Arc;

/// The model: its module and its two cells.
type Model = (Arc<Module>, Cell<2, 1>, Cell<1, 1>);

/// A cell of two operands that reads one parameter whole, and a cell that reads another.
fn model() -> Model {
    let mut m = ModuleBuilder::new("standing");
    let scale = m.param("scale", [6], Init::Uniform(1.0));
    let shift = m.param("shift", [6], Init::Uniform(1.0));
    let cell = m.cell("cell", [f32([6]); 2], |g, [x, y]| [x * g.param(scale) + y.tanh()]);
    let other = m.cell("other", [f32([6])], |g, [x]| [x + g.param(shift)]);
    (m.build().expect("sound"), cell, other)
}

/// This many calls of one cell, each with operands of its own or with one for both, and of the other.
fn graph((module, cell, other): &Model, count: u32, is_one: bool, others: u32) -> GraphData {
    let g = Graph::new(module);
    let input = |seed: u32| g.input(&[0, 1, 2, 3, 4, 5].map(|at: u32| ((seed * 7 + at) as f32 * 0.3).sin()));
    for key in 0..count {
        g.instance(key.into());
        let x = input(key);
        let [y] = g.call(*cell, [x, if is_one { x } else { input(key + 50) }]);
        g.output(&format!("y{key}"), y);
        if key < others {
            let [z] = g.call(*other, [y]);
            g.output(&format!("z{key}"), z);
        }
    }
    g.finish().expect("sound")
}

fn executed(
    executor: &mut Executor,
    plan: &Verified<Plan>,
    graph: &GraphData,
    weights: &Weights,
) -> Vec<u32> {
    executor.execute(plan, weights, inputs_of(graph, false)).expect("executes");
    (0..plan.outputs.len()).flat_map(|at| executor.output(at)).map(|x| x.to_bits()).collect()
}

#[test]
fn whole_parameters_are_shared_by_plans_of_a_model() {
    let Some(mut kept) = executor(Options::default()) else { return };
    let model = model();
    let mut weights = Weights::init(&model.0, 3);
    let graphs = [(3, 0), (40, 0), (9, 9), (5, 0)].map(|(count, others)| graph(&model, count, false, others));
    let plans = [0, 1, 2, 3].map(|at| inferring(&graphs[at], &[]));
    let target = kept.target().expect("open");
    // The third plan reads another parameter as well.
    let stays = [(0, false), (1, true), (3, true), (1, true), (2, false), (2, true), (0, false), (3, true)];
    for turn in 0..2 {
        for (number, (at, stays)) in stays.into_iter().enumerate() {
            let (plan, graph) = (&plans[at], &graphs[at]);
            let expected =
                executed(&mut Executor::new(Options::default()).expect("opens"), plan, graph, &weights);
            assert_eq!(executed(&mut kept, plan, graph, &weights), expected, "{turn}, {number}");
            let compiled = compile(plan, target).expect("fits");
            assert!(compiled.prologue > 0, "a parameter is taken whole");
            let first = if stays { compiled.prologue } else { 0 };
            let dispatches = compiled.dispatches.len() as u32 - first;
            assert_eq!(kept.counters().dispatches, dispatches, "{turn}, {number}");
        }
        // Changing a parameter changes the shared words.
        weights.get_mut(ParamId::new(turn)).iter_mut().for_each(|x| *x *= -1.5);
    }
}

#[test]
fn equal_operands_and_known_kernels_need_no_new_pipelines() {
    let Some(mut kept) = executor(Options::default()) else { return };
    let model = model();
    let weights = Weights::init(&model.0, 3);
    for (number, (count, is_one)) in [(5, false), (5, true), (1, true), (3, false)].into_iter().enumerate() {
        let graph = graph(&model, count, is_one, 0);
        let plan = inferring(&graph, &[]);
        let found = executed(&mut kept, &plan, &graph, &weights);
        let mut alone = Executor::new(Options::default()).expect("opens");
        assert_eq!(found, executed(&mut alone, &plan, &graph, &weights), "{number}");
        let new = kept.counters().pipelines;
        assert_eq!(new > 0, number == 0, "{number}: {new} pipelines");
    }
}

//! The proof takes memory by what the graph's values justify, whatever registers a plan declares.

use autobatch_ir::graph::GraphData;
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{Kernel, Mode, Plan, Reg, RegKind};
use autobatch_ir::types::f32;
use autobatch_ir::{Graph, Init, ModuleBuilder};
use autobatch_oracle::check::{Disagreement, Disagreements, Wanted, check_losses};
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_testing::hostile::{Counting, measured};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory of the proof of the small plan, whatever it declares.
const MAX_PROOF: usize = 32 << 20;

/// A training plan of a recurrent cell, its graph and its losses.
fn training_plan() -> (Plan, GraphData, Vec<(ValueId, f32)>) {
    let mut m = ModuleBuilder::new("small");
    let weight = m.param("w", [6, 3], Init::Glorot(1.0));
    let cell = m.cell("cell", [f32([3]); 2], |g, [x, h]| [g.affine([x, h], weight, None).tanh()]);
    let module = m.build().expect("the model is well typed");
    let graph = Graph::new(&module);
    let [h] = graph.call(cell, [graph.input(&[1.0, 2.0, 3.0]), graph.zeros([3])]);
    let [h] = graph.call(cell, [graph.input(&[4.0, 5.0, 6.0]), h]);
    let losses: Vec<(ValueId, f32)> = h.sum().id().into_iter().map(|loss| (loss, 1.0)).collect();
    let data = graph.finish().expect("the graph is well typed");
    let gradients = Some(Gradients { losses: &losses, params: None, values: &[] });
    let request = Request { mode: Mode::Train, gradients, ..Request::default() };
    let plan = Planner::default().plan(&data, &request).expect("a plan");
    (plan, data, losses)
}

/// The verdict of the proof, and the memory that it took at most.
fn proof(plan: Plan, graph: &GraphData, losses: &[(ValueId, f32)]) -> (Result<(), Disagreements>, usize) {
    let plan = plan.verify().expect("declared registers break no rule");
    let wanted = Wanted { values: &[], training: true };
    measured(|| check_losses(&plan, graph, wanted, losses).map(drop))
}

#[test]
fn registers_beyond_the_values_of_a_node_are_rejected_before_they_are_allocated() {
    let (plan, graph, losses) = training_plan();
    let (verdict, before) = proof(plan.clone(), &graph, &losses);
    verdict.expect("the plan is right");
    assert!(before < MAX_PROOF, "{before} bytes");
    let is_derivative = |kernel: &Kernel| kernel.roles.is_some() && kernel.stages.len() > 1;
    let derivative = plan.kernels.iter().position(|kernel| is_derivative(kernel)).expect("a derivative");
    for (elements, accepted) in [(64, true), (1 << 20, false), (1 << 29, false)] {
        let mut large = plan.clone();
        let kernel = Arc::make_mut(&mut large.kernels[derivative]);
        kernel.regs.push(Reg { kind: RegKind::Temp, ty: f32([elements]) });
        let (verdict, taken) = proof(large, &graph, &losses);
        assert!(taken < MAX_PROOF, "{elements} elements take {taken} bytes");
        let is_rejected = verdict.as_ref().is_err_and(|errors| {
            errors.found().iter().any(|found| matches!(found, Disagreement::Registers { .. }))
        });
        assert_eq!((verdict.is_ok(), is_rejected), (accepted, !accepted), "{elements}: {verdict:?}");
    }
}

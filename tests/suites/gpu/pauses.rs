//! Plans that pause have the bits of the same plans without the pause.

use crate::common::{exact, executor, inputs_of, weights};
use autobatch_ir::graph::{GraphData, OutputKind};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::{Mode, OutputKey, Plan, StoreId, Verified};
use autobatch_planner::{Gradients, Planner, Request};
use autobatch_runtime_wgpu::{Executor, GpuError, Inputs};
use autobatch_testing::random::{Options, Profile, check};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// A plan at whose pause the gradients of all losses arrive, or `None` without a loss.
fn plan(graph: &GraphData) -> Result<Option<Verified<Plan>>, String> {
    let losses = graph.outputs.iter().filter(|output| output.kind == OutputKind::Loss);
    let arriving: Vec<ValueId> =
        losses.map(|output| output.value).collect::<BTreeSet<_>>().into_iter().collect();
    if arriving.is_empty() {
        return Ok(None);
    }
    let gradients = Some(Gradients { losses: &[], params: None, values: &arriving });
    let arriving = &arriving[..];
    let request = Request { mode: Mode::Train, training: true, gradients, arriving, ..Request::default() };
    let plan = Planner::default().plan(graph, &request).map_err(|error| error.to_string())?;
    plan.verify().map(Some).map_err(|errors| errors.to_string())
}

/// The bits of all outputs, then those of all gradients of parameters.
fn bits(executor: &mut Executor, plan: &Plan) -> Result<Vec<Vec<u32>>, GpuError> {
    let of = |row: &[f32]| row.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    let mut all: Vec<Vec<u32>> = (0..plan.outputs.len()).map(|number| of(executor.output(number))).collect();
    for store in 0..plan.stores.len() as u32 {
        all.extend(executor.gradient(StoreId(store))?.map(|gradient| of(&gradient)));
    }
    Ok(all)
}

fn agrees(executor: &mut Executor, graph: &GraphData) -> Result<(), GpuError> {
    let Ok(Some(plan)) = plan(graph) else { return Ok(()) };
    let (weights, before) = (weights(graph), inputs_of(graph, true));
    let mut floats = before.floats.to_vec();
    floats.resize(plan.all_floats() as usize, 0.5);
    let all = Inputs { floats: &floats, ..before };
    executor.execute(&plan, &weights, all)?;
    let expected = bits(executor, &plan)?;
    executor.start(&plan, &weights, before)?;
    for (number, output) in plan.outputs.iter().enumerate() {
        let at_pause: Vec<u32> = executor.output(number).iter().map(|x| x.to_bits()).collect();
        let is_gradient = matches!(output.key, OutputKey::Gradient(_));
        assert!(is_gradient || at_pause == expected[number], "output {number} differs at the pause");
    }
    executor.proceed(&plan, &weights, all)?;
    assert!(bits(executor, &plan)? == expected, "a pause changes the bits");
    assert_eq!(executor.proceed(&plan, &weights, all), Err(GpuError::NoPause));
    executor.start(&plan, &weights, before)?;
    executor.execute(&plan, &weights, all)?;
    assert_eq!(executor.proceed(&plan, &weights, all), Err(GpuError::NoPause), "its rows were overwritten");
    Ok(())
}

#[test]
fn plans_that_pause_have_the_bits_of_plans_that_do_not() {
    let Some(executor) = executor(exact()) else { return };
    let executor = RefCell::new(executor);
    for profile in [Profile::Small, Profile::Trees] {
        let options = Options::new(profile).differentiable();
        check("pauses on the gpu", options, 6, |graph| {
            agrees(&mut executor.borrow_mut(), graph).map_err(|error| error.to_string())
        });
    }
}

//! Steps at the end of a plan, as lowering and differentiation append them.

use autobatch_ir::plan::{KernelId, Plan, Step};

/// The lengths of the plan's lists before a step.
#[derive(Clone, Copy)]
pub(crate) struct StepStart {
    pub(crate) operands: usize,
    pub(crate) lanes: usize,
    places: usize,
    store_args: usize,
}

/// Appends a step. The entries that `write` appends to the plan's lists belong to it.
pub(crate) fn append_step(plan: &mut Plan, kernel: KernelId, write: impl FnOnce(&mut Plan, StepStart)) {
    let start = StepStart {
        operands: plan.operands.len(),
        lanes: plan.lanes.len(),
        places: plan.places.len(),
        store_args: plan.store_args.len(),
    };
    write(plan, start);
    let range = |start: usize, end: usize| start as u32..end as u32;
    plan.steps.push(Step {
        kernel,
        rows: (plan.lanes.len() - start.lanes) as u32,
        operands: range(start.operands, plan.operands.len()),
        places: range(start.places, plan.places.len()),
        stores: range(start.store_args, plan.store_args.len()),
        lanes: range(start.lanes, plan.lanes.len()),
    });
}

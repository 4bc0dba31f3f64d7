//! Finds the first step, lane and node that makes NaN or an infinity from finite numbers.
//!
//! A result that is not finite is a fault only if the lane read finite numbers: operands, parameters and constants. So
//! a mask of `-inf` passes, and a fault is reported where it arises. The watch sees neither values between the
//! instructions of a kernel nor parameter-gradient reductions.

use super::RunError;
use super::tile::ExecutionContext;
use autobatch_ir::plan::{FieldId, Kernel, Place, RegId, RegKind, Source, Stage, StepOperand};
use autobatch_ir::types::DType;

/// Checks the results of a step.
pub(super) fn check(context: &ExecutionContext<'_>, number: usize) -> Result<(), RunError> {
    let plan = context.plan;
    let step = &plan.steps[number];
    for (result, place) in plan.places(step).iter().enumerate() {
        for lane in 0..step.rows as usize {
            // Gradients of list values have rows of their own; later steps read them.
            if matches!(place, Place::Edges { .. }) {
                continue;
            }
            let row = plan.result_rows(*place, lane as u32).start as usize;
            let Some(element) = first_non_finite(context, place.field(), row) else { continue };
            if reads_finite(context, number, lane) {
                return Err(RunError::NotFinite {
                    step: number,
                    kernel: plan.kernel(step).name.clone(),
                    lane,
                    node: plan.lanes(step).get(lane).copied(),
                    result,
                    element,
                });
            }
        }
    }
    Ok(())
}

/// The first element of a row of floats that is not finite.
fn first_non_finite(context: &ExecutionContext<'_>, field: FieldId, row: usize) -> Option<usize> {
    if context.plan.field(field).ty.dtype != DType::F32 {
        return None;
    }
    // SAFETY: the row exists and was written before (plan rules on spans), and no step is running.
    let row = unsafe { context.fields[field.index()].row(row) };
    row.iter().position(|x| !x.is_finite())
}

/// Returns whether everything that a lane of a step reads is finite.
fn reads_finite(context: &ExecutionContext<'_>, number: usize, lane: usize) -> bool {
    let plan = context.plan;
    let step = &plan.steps[number];
    let kernel = plan.kernel(step);
    let operands = plan.operands(step).iter().enumerate();
    let finite = |(port, &operand): (usize, &StepOperand)| {
        operand_is_finite(context, operand, kernel.whole(RegId(port as u32)).width as usize, lane)
    };
    let params_are_finite = || {
        let params = &context.step(&context.prepared.steps[number]).params[..kernel.params.len()];
        params.iter().all(|values| values.iter().all(|x| x.is_finite()))
    };
    operands.into_iter().all(finite) && constants_are_finite(kernel) && params_are_finite()
}

fn operand_is_finite(
    context: &ExecutionContext<'_>,
    operand: StepOperand,
    width: usize,
    lane: usize,
) -> bool {
    let (plan, lane) = (context.plan, lane as u32);
    let row_is_finite = |field, row| first_non_finite(context, field, row as usize).is_none();
    if let Some((field, row)) = plan.operand_row(operand, lane) {
        row_is_finite(field, row)
    } else if let Some((field, rows)) = plan.list_rows(operand, lane) {
        rows.iter().all(|row| row_is_finite(field, row))
    } else if let Some(float) = plan.bound_float(operand, lane) {
        context.inputs.floats[float as usize..][..width].iter().all(|x| x.is_finite())
    } else {
        true
    }
}

fn constants_are_finite(kernel: &Kernel) -> bool {
    let finite = |bits: u32| f32::from_bits(bits).is_finite();
    let source = |source: &Source| !matches!(source, Source::Const(bits) if !finite(*bits));
    let regs = kernel.regs.iter().filter(|reg| reg.ty.dtype == DType::F32);
    regs.into_iter().all(|reg| !matches!(reg.kind, RegKind::Const(bits) if !finite(bits)))
        && kernel.stages.iter().all(|stage| match stage {
            Stage::Map { code, .. } => {
                code.iter().all(|i| i.dtype != DType::F32 || i.sources.iter().all(source))
            }
            _ => true,
        })
}

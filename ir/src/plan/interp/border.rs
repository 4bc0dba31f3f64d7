//! Bound numbers that are indices or truth values, checked before a step is played.

use super::{COMPUTED, Run, RunError, operand_row, slot};
use crate::graph::Op;
use crate::plan::{Kernel, Operand, Plan, Stage, Step, StepId, View};
use crate::types::{DType, Type};

/// A view of a port whose words are indices below a limit.
struct Use {
    view: View,
    limit: u32,
    /// The parameter port of the table; `None` where scores are labelled.
    table: Option<u32>,
}

/// Per kernel what its ports are taken for.
pub(super) struct Border {
    uses: Vec<Vec<Use>>,
}

impl Border {
    pub(super) fn new(plan: &Plan) -> Self {
        Self { uses: plan.kernels.iter().map(|kernel| uses(kernel)).collect() }
    }

    /// Whether what a step's lanes take from the pools may be taken so.
    pub(super) fn check<S>(&self, run: &Run<'_, S>, number: usize, step: &Step) -> Result<(), RunError> {
        let id = StepId(number as u32);
        let kernel = run.plan.kernel(step);
        for (port, &operand) in run.plan.operands(step).iter().enumerate() {
            truth(run, id, step, kernel.regs[port].ty, operand)?;
        }
        for used in &self.uses[step.kernel.index()] {
            let operand = run.plan.operands(step)[used.view.reg as usize];
            for at in 0..step.rows {
                let Some(first) = bound_word(run, operand, at) else { continue };
                for word in (first + used.view.start..).take(used.view.width as usize) {
                    let index = run.words[word as usize];
                    if index >= used.limit {
                        return Err(out_of_range(run.plan, id, step, used, word, index));
                    }
                }
            }
        }
        Ok(())
    }
}

fn uses(kernel: &Kernel) -> Vec<Use> {
    let mut uses = Vec::new();
    for stage in &kernel.stages {
        match stage {
            Stage::Lookup { param, index, .. } => {
                let limit = kernel.params[*param as usize].shape.dims()[0];
                uses.push(Use { view: *index, limit, table: Some(*param) });
            }
            Stage::Row { op: Op::PickNegLogSoftmax | Op::Hinge { .. }, sources, .. } => {
                let limit = sources[0].1.shape.width() as u32;
                uses.push(Use { view: sources[1].0, limit, table: None });
            }
            _ => {}
        }
    }
    uses.retain(|used| used.view.reg < kernel.ports);
    uses
}

/// The bound word that a lane's operand begins with, if it is what was bound.
fn bound_word<S>(run: &Run<'_, S>, operand: Operand, at: u32) -> Option<u32> {
    match operand {
        Operand::Words { .. } | Operand::WordTable { .. } => Some(slot(run.plan, operand, at)),
        _ => {
            let (field, row) = operand_row(run.plan, operand, at)?;
            let origin = *run.fields[field.index()].origin.get(row as usize)?;
            (origin != COMPUTED).then_some(origin)
        }
    }
}

fn truth<S>(run: &Run<'_, S>, id: StepId, step: &Step, ty: Type, operand: Operand) -> Result<(), RunError> {
    if ty.dtype != DType::Bool || !matches!(operand, Operand::Words { .. } | Operand::WordTable { .. }) {
        return Ok(());
    }
    for at in 0..step.rows {
        let first = slot(run.plan, operand, at);
        for word in (first..).take(ty.shape.elements()) {
            let found = run.words[word as usize];
            if found > 1 {
                return Err(RunError::Truth { step: id, word, found });
            }
        }
    }
    Ok(())
}

fn out_of_range(plan: &Plan, id: StepId, step: &Step, used: &Use, word: u32, index: u32) -> RunError {
    let of = match used.table {
        Some(param) => {
            let store = plan.stores(step)[param as usize];
            format!("@{}", plan.stores[store.index()].name)
        }
        None => "scores".to_owned(),
    };
    RunError::Index { step: id, word, index, limit: used.limit, of }
}

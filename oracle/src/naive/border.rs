//! Checks of bound indices and truth values, before a step is executed.

use super::{COMPUTED, Run, RunError};
use autobatch_ir::plan::{LimitOf, Operand, Plan, Step, StepId, WordLimit};

/// The limits of the ports of each kernel.
pub(super) struct Border {
    limits: Vec<Vec<WordLimit>>,
}

impl Border {
    pub(super) fn new(plan: &Plan) -> Self {
        Self { limits: plan.kernels.iter().map(|kernel| kernel.word_limits()).collect() }
    }

    /// Checks the bound words that the lanes of a step read.
    pub(super) fn check<S>(&self, run: &Run<'_, S>, number: usize, step: &Step) -> Result<(), RunError> {
        let id = StepId(number as u32);
        for limit in &self.limits[step.kernel.index()] {
            let operand = run.plan.operands(step)[limit.view.reg as usize];
            for at in 0..step.rows {
                let Some(first) = bound_word(run, operand, at) else { continue };
                for word in (first + limit.view.start..).take(limit.view.width as usize) {
                    let found = run.words[word as usize];
                    if found >= limit.below {
                        return Err(misfit(run.plan, id, step, limit, word, found));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The place of the bound word that a lane's operand begins with, if the operand was bound and not computed.
fn bound_word<S>(run: &Run<'_, S>, operand: Operand, at: u32) -> Option<u32> {
    run.plan.bound_word(operand, at).or_else(|| {
        let (field, row) = run.plan.operand_row(operand, at)?;
        let origin = *run.fields[field.index()].origin.get(row as usize)?;
        (origin != COMPUTED).then_some(origin)
    })
}

fn misfit(plan: &Plan, id: StepId, step: &Step, limit: &WordLimit, word: u32, found: u32) -> RunError {
    let of = match limit.of {
        LimitOf::Truth => return RunError::Truth { step: id, word, found },
        LimitOf::Scores => "scores".to_owned(),
        LimitOf::Table(param) => {
            let store = plan.stores(step)[param as usize];
            format!("@{}", plan.stores[store.index()].name)
        }
    };
    RunError::Index { step: id, word, index: found, limit: limit.below, of }
}

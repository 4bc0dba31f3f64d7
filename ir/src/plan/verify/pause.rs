//! Rule P37: the pause of a plan.

use super::spans::Spans;
use super::{Rule, VerifyErrors};
use crate::plan::{Mode, OutputKey, Pause, Plan};
use crate::types::{DType, Type};

/// Verifies what a pause declares.
pub(super) fn verify(plan: &Plan, findings: &mut VerifyErrors) {
    let Some(Pause { waves, outputs }) = &plan.pause else { return };
    let mut report = |message: String| findings.report(Rule::Pause, &"the pause", message);
    if plan.mode != Mode::Train {
        report(format!("only a plan in mode train pauses, found {}", plan.mode.spelling()));
    }
    if *waves as usize > plan.waves.len() {
        report(format!("it follows {waves} waves, the plan has {}", plan.waves.len()));
    }
    let mut listed = vec![false; plan.outputs.len()];
    for &number in outputs {
        let Some(output) = plan.outputs.get(number as usize) else {
            report(format!("output {number} does not exist, the plan has {}", plan.outputs.len()));
            return;
        };
        let Type { dtype, is_list, .. } = plan.field(output.field).ty;
        if std::mem::replace(&mut listed[number as usize], true) {
            report(format!("output {number} is listed twice"));
        } else if matches!(output.key, OutputKey::Gradient(_)) || dtype != DType::F32 || is_list {
            report(format!("output {number} must be a float value and no gradient"));
        }
    }
    if plan.all_floats() > u64::from(u32::MAX) {
        report(format!(
            "{} floats are bound with those that arrive; at most 2^32 - 1 can be",
            plan.all_floats()
        ));
    }
}

/// Verifies that every output that is no gradient was written. Called after the waves before the pause.
pub(super) fn outputs(plan: &Plan, written: &[Spans], findings: &mut VerifyErrors) {
    for (number, output) in plan.outputs.iter().enumerate() {
        let row = u64::from(output.row);
        let is_gradient = matches!(output.key, OutputKey::Gradient(_));
        if !is_gradient && written[output.field.index()].first_missing(row, row + 1).is_some() {
            let message = format!("output {number} must be written before the pause");
            findings.report(Rule::Pause, &"the pause", message);
        }
    }
}

//! The certificate of a plan.

use autobatch_ir::plan::{Certificate, Operand, Plan};
use std::ops::Range;

/// Adds steps to a certificate: their batches, the rows that they copy, and the rows of their operands.
pub(crate) fn count_steps(plan: &Plan, steps: Range<usize>, certificate: &mut Certificate) {
    for step in &plan.steps[steps] {
        let (kernel, rows) = (plan.kernel(step), u64::from(step.rows));
        certificate.batches += u32::from(!kernel.source);
        if kernel.only_moves() {
            certificate.copied += rows * step.places.len() as u64;
        }
        for operand in plan.operands(step) {
            match *operand {
                Operand::Rows { .. } => certificate.direct += rows,
                Operand::Table { .. } => certificate.gathered += rows,
                Operand::Segments { offsets, .. } => {
                    certificate.gathered += u64::from(plan.tables[(offsets + step.rows) as usize]);
                }
                _ => {}
            }
        }
    }
}

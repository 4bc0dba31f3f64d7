//! The certificate of a plan.

use autobatch_ir::plan::Plan;

/// Adds the steps from `first` on to the certificate: their batches, the rows that they copy, and the rows of their operands. The
/// steps from `reverse` on are those of the reverse.
pub(crate) fn certify(plan: &mut Plan, first: usize, reverse: usize) {
    let mut certificate = plan.certificate;
    for (number, step) in plan.steps.iter().enumerate().skip(first) {
        let (kernel, rows) = (plan.kernel(step), u64::from(step.rows));
        let batches =
            if number < reverse { &mut certificate.batches } else { &mut certificate.reverse_batches };
        *batches += u32::from(!kernel.source);
        if kernel.only_moves() {
            certificate.copied += rows * step.places.len() as u64;
        }
        for operand in plan.operands(step) {
            let [direct, gathered] = operand.direct_and_gathered(plan, step.rows);
            certificate.direct += direct;
            certificate.gathered += gathered;
        }
    }
    certificate.slab_bytes = plan.slab_bytes();
    plan.certificate = certificate;
}

//! Rematerialization: which forward registers the reverse can have without saving more.
//!
//! *Needs* the forward stages, and the registers that the forward step writes anyway. *Ensures* that a register is available if it
//! is no temporary, if the forward step writes it, or if cheap elementwise stages compute it from available registers. This
//! holds again after each register that is added. *Cost.* Linear in the operands of the stages, on a stack of constant depth.

use crate::kernels::fuse::{stage_reads, stage_writes};
use autobatch_ir::plan::{Reg, RegId, RegKind, Stage};

/// The count of missing operands of a register that no cheap stage makes.
const BLOCKED: usize = usize::MAX;

/// The available registers of a body.
pub(super) struct Rematerialize<'a> {
    stages: &'a [Stage],
    available: Vec<bool>,
    /// Per register how many operands of its stages are not available, or [`BLOCKED`].
    missing: Vec<usize>,
    /// Per register the cheap stages that read it, once for each operand.
    readers: Vec<Vec<usize>>,
    pending: Vec<RegId>,
}

impl<'a> Rematerialize<'a> {
    pub(super) fn new(
        stages: &'a [Stage],
        regs: &[Reg],
        is_cheap: impl Fn(&Stage) -> bool,
        is_left: impl Fn(RegId) -> bool,
    ) -> Self {
        let mut missing = vec![0; regs.len()];
        let mut readers = vec![Vec::new(); regs.len()];
        for (number, stage) in stages.iter().enumerate() {
            let cheap = is_cheap(stage);
            let reads = if cheap { stage_reads(stage) } else { Vec::new() };
            for view in stage_writes(stage) {
                let own: &mut usize = &mut missing[view.reg.index()];
                *own = if cheap { own.saturating_add(reads.len()) } else { BLOCKED };
            }
            reads.iter().for_each(|view| readers[view.reg.index()].push(number));
        }
        let available = vec![false; regs.len()];
        let mut this = Self { stages, available, missing, readers, pending: Vec::new() };
        for (id, reg) in (0..).map(RegId).zip(regs) {
            if reg.kind != RegKind::Temp || this.missing[id.index()] == 0 || is_left(id) {
                this.add(id);
            }
        }
        this
    }

    /// Whether a register is available.
    pub(super) fn has(&self, reg: RegId) -> bool {
        self.available[reg.index()]
    }

    /// Makes a register available, and all that follow from it.
    pub(super) fn add(&mut self, reg: RegId) {
        self.pending.push(reg);
        while let Some(reg) = self.pending.pop() {
            if std::mem::replace(&mut self.available[reg.index()], true) {
                continue;
            }
            for &stage in &self.readers[reg.index()] {
                for view in stage_writes(&self.stages[stage]) {
                    let missing = &mut self.missing[view.reg.index()];
                    if *missing == BLOCKED {
                        continue;
                    }
                    *missing -= 1;
                    self.pending.extend((*missing == 0).then_some(view.reg));
                }
            }
        }
    }
}

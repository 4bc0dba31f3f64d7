//! Rematerialization: which forward registers the reverse can have without saving more.
//!
//! *Needs* the forward stages, and the registers that the forward step writes anyway. *Ensures* that a register is available if it
//! is no temporary, if the forward step writes it, or if cheap elementwise stages compute it from available registers. This
//! holds again after each register that is added. *Cost.* Linear in the operands of the stages, on a stack of constant depth.

use crate::kernels::fuse::{stage_reads, stage_writes};
use autobatch_ir::plan::{Reg, RegKind, Stage};

/// The count of missing operands of a register that no cheap stage makes.
const BLOCKED: usize = usize::MAX;

/// The available registers of a body.
pub(super) struct Rematerialize<'a> {
    stages: &'a [Stage],
    available: Vec<bool>,
    /// Per register how many operands of its stages are not available, or [`BLOCKED`].
    missing: Vec<usize>,
    /// Per register the cheap stages that read it, once for each operand.
    readers: Vec<Vec<u32>>,
    pending: Vec<u32>,
}

impl<'a> Rematerialize<'a> {
    pub(super) fn new(
        stages: &'a [Stage],
        regs: &[Reg],
        is_cheap: impl Fn(&Stage) -> bool,
        is_left: impl Fn(u32) -> bool,
    ) -> Self {
        let mut missing = vec![0; regs.len()];
        let mut readers = vec![Vec::new(); regs.len()];
        for (number, stage) in (0..).zip(stages) {
            let cheap = is_cheap(stage);
            let reads = if cheap { stage_reads(stage) } else { Vec::new() };
            for view in stage_writes(stage) {
                let own: &mut usize = &mut missing[view.reg as usize];
                *own = if cheap { own.saturating_add(reads.len()) } else { BLOCKED };
            }
            reads.iter().for_each(|view| readers[view.reg as usize].push(number));
        }
        let available = vec![false; regs.len()];
        let mut this = Self { stages, available, missing, readers, pending: Vec::new() };
        for (number, reg) in (0..).zip(regs) {
            if reg.kind != RegKind::Temp || this.missing[number as usize] == 0 || is_left(number) {
                this.add(number);
            }
        }
        this
    }

    /// Whether a register is available.
    pub(super) fn has(&self, reg: u32) -> bool {
        self.available[reg as usize]
    }

    /// Makes a register available, and all that follow from it.
    pub(super) fn add(&mut self, reg: u32) {
        self.pending.push(reg);
        while let Some(reg) = self.pending.pop() {
            if std::mem::replace(&mut self.available[reg as usize], true) {
                continue;
            }
            for &stage in &self.readers[reg as usize] {
                for view in stage_writes(&self.stages[stage as usize]) {
                    let missing = &mut self.missing[view.reg as usize];
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

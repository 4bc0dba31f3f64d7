//! Which registers of the forward half the reverse has without saving anything more.
//!
//! *Needs* the forward stages, and which registers are left behind anyway. *Ensures* that a register counts as at hand if it
//! is no temporary, if it is left, or if cheap elementwise stages of what is at hand make it; also after more
//! registers are left. *Cost.* Linear in the operands of the stages, whatever becomes left when, on a stack that does not grow with them.

use crate::kernels::fuse::{stage_reads, stage_writes};
use autobatch_ir::plan::{Reg, RegKind, Stage};

/// What makes a register that no cheap stage makes.
const BLOCKED: usize = usize::MAX;

/// What is known of the registers of a body.
pub(super) struct AtHand<'a> {
    stages: &'a [Stage],
    known: Vec<bool>,
    /// How many operands of the stages that write a register are not at hand, or [`BLOCKED`].
    missing: Vec<usize>,
    /// The cheap stages that read a register, once for each operand.
    readers: Vec<Vec<u32>>,
    pending: Vec<u32>,
}

impl<'a> AtHand<'a> {
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
        let known = vec![false; regs.len()];
        let mut this = Self { stages, known, missing, readers, pending: Vec::new() };
        for (number, reg) in (0..).zip(regs) {
            if reg.kind != RegKind::Temp || this.missing[number as usize] == 0 || is_left(number) {
                this.leave(number);
            }
        }
        this
    }

    /// Whether the reverse has a register.
    pub(super) fn has(&self, reg: u32) -> bool {
        self.known[reg as usize]
    }

    /// Says that a register is left behind.
    pub(super) fn leave(&mut self, reg: u32) {
        self.pending.push(reg);
        while let Some(reg) = self.pending.pop() {
            if std::mem::replace(&mut self.known[reg as usize], true) {
                continue;
            }
            for &stage in &self.readers[reg as usize] {
                for view in stage_writes(&self.stages[stage as usize]) {
                    let missing = &mut self.missing[view.reg as usize];
                    if *missing != BLOCKED {
                        *missing -= 1;
                        if *missing == 0 {
                            self.pending.push(view.reg);
                        }
                    }
                }
            }
        }
    }
}

//! The uses of a kernel's registers: which are results, and which stages read row by row.

use autobatch_ir::plan::{Kernel, Stage, View};

/// No result.
const NONE: u32 = u32::MAX;

/// The use of a register as results.
#[derive(Clone, Copy)]
pub(super) struct ResultUse {
    /// The first result that it is; [`NONE`] if it is no result.
    pub(super) first: u32,
    /// True if it is exactly one whole result.
    pub(super) is_whole: bool,
}

/// The result use of each register.
pub(super) fn result_uses(kernel: &Kernel) -> Vec<ResultUse> {
    let mut found = vec![ResultUse { first: NONE, is_whole: false }; kernel.regs.len()];
    for (number, view) in (0..).zip(&kernel.results) {
        let own = &mut found[view.reg.index()];
        *own = match own.first {
            NONE => ResultUse { first: number, is_whole: *view == kernel.whole(view.reg) },
            first => ResultUse { first, is_whole: false },
        };
    }
    found
}

/// For each register, whether a result or a stage other than a product of vectors reads it as a value, row by row.
pub(super) fn read_by_rows(kernel: &Kernel) -> Vec<bool> {
    let mut read = vec![false; kernel.regs.len()];
    let mut see = |view: &View| read[view.reg.index()] = true;
    for stage in kernel.stages.iter().filter(|stage| !matches!(stage, Stage::Prod { rows: 1, .. })) {
        stage.reads().iter().for_each(&mut see);
    }
    kernel.results.iter().for_each(&mut see);
    read.iter_mut().zip(&kernel.regs).for_each(|(read, reg)| *read &= !reg.ty.is_list);
    read
}

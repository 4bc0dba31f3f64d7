//! The uses of a kernel's registers: which are results, and which stages read row by row.

use autobatch_ir::plan::{Kernel, ListSource, ProdInit, Source, Stage, View};

/// No result.
const NONE: u32 = u32::MAX;

/// The use of a register as results.
#[derive(Clone, Copy)]
pub(super) struct ResultUse {
    /// The first result that it is; [`NONE`] if it is no result.
    pub(super) first: u32,
    /// Whether it is exactly one whole result.
    pub(super) is_whole: bool,
}

/// The result use of each register.
pub(super) fn result_uses(kernel: &Kernel) -> Vec<ResultUse> {
    let mut found = vec![ResultUse { first: NONE, is_whole: false }; kernel.regs.len()];
    for (number, view) in (0..).zip(&kernel.results) {
        let own = &mut found[view.reg as usize];
        *own = match own.first {
            NONE => ResultUse { first: number, is_whole: *view == kernel.whole(view.reg) },
            first => ResultUse { first, is_whole: false },
        };
    }
    found
}

/// For each register, whether it is a value that a result or a stage reads by rows. Products and folds of list ports do not
/// read by rows.
pub(super) fn read_by_rows(kernel: &Kernel) -> Vec<bool> {
    let mut read = vec![false; kernel.regs.len()];
    let mut see = |view: &View| read[view.reg as usize] = true;
    for stage in &kernel.stages {
        match stage {
            Stage::Prod { rows: 1, .. } => {}
            Stage::Prod { parts, init, .. } => {
                if let ProdInit::View(view) = init {
                    see(view);
                }
                parts.iter().for_each(|part| see(&part.source));
            }
            Stage::Map { code, .. } => code.iter().flat_map(|instr| &instr.sources).for_each(|source| {
                if let Source::View(view) | Source::Scalar(view) = source {
                    see(view);
                }
            }),
            Stage::Row { sources, .. } => sources.iter().for_each(|(view, _)| see(view)),
            Stage::Seg { query, lists, .. } => {
                query.iter().for_each(&mut see);
                let views = lists.iter().filter_map(|list| match list {
                    ListSource::Views(views) => Some(views),
                    ListSource::Port(_) => None,
                });
                views.flatten().for_each(&mut see);
            }
            Stage::SegGrad { query, dy, .. } => query.iter().chain([dy]).for_each(&mut see),
            Stage::Lookup { index, .. } => see(index),
        }
    }
    kernel.results.iter().for_each(&mut see);
    read.iter_mut().zip(&kernel.regs).for_each(|(read, reg)| *read &= !reg.ty.is_list);
    read
}

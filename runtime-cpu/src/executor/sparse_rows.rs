//! Which rows of tables the gradients of a run touched.

use super::reductions::Executed;
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{Plan, ReductionSum, Store, StoreKind};

/// Per gradient store, the rows that `tgrad` reductions added to. Memory grows and stays.
#[derive(Default)]
pub(super) struct SparseRows {
    stores: Vec<Rows>,
}

#[derive(Default)]
struct Rows {
    /// Whether rows are listed: it is the gradient of a table, to which nothing but `tgrad` adds.
    listed: bool,
    /// A bit a row.
    marks: Vec<u64>,
    list: Vec<u32>,
}

impl SparseRows {
    /// Marks the rows that a run touched; `listed` is what [`find_listed`] found of its plan. Rows that were marked
    /// before stay so if `keep`.
    pub(super) fn mark(&mut self, executed: Executed<'_>, listed: &[bool], keep: bool) {
        let plan = executed.plan;
        if self.stores.len() < plan.stores.len() {
            self.stores.resize_with(plan.stores.len(), Rows::default);
        }
        let height = |number: usize| plan.stores[number].ty.shape.dims()[0] as usize;
        for (number, rows) in self.stores.iter_mut().enumerate() {
            let listed = listed.get(number).copied().unwrap_or_default();
            // What was not listed before is not known now: all its rows count as touched.
            rows.listed = listed && (rows.listed || !keep);
            if listed {
                if !keep {
                    rows.marks.clear();
                }
                rows.marks.resize(height(number).div_ceil(64), 0);
            }
        }
        for sum in plan.reductions.iter().filter(|sum| listed[sum.store.index()]) {
            let (marks, last) = (&mut self.stores[sum.store.index()].marks, height(sum.store.index()) - 1);
            for part in &sum.parts {
                let Some(x) = part.x else { continue };
                for lane in 0..part.lanes as usize {
                    let row = (executed.index(x, lane) as usize).min(last);
                    marks[row / 64] |= 1 << (row % 64);
                }
            }
        }
        for (rows, _) in self.stores.iter_mut().zip(listed).filter(|(_, listed)| **listed) {
            rows.list.clear();
            for (word, &marks) in rows.marks.iter().enumerate() {
                let mut marks = marks;
                while marks != 0 {
                    rows.list.push(word as u32 * 64 + marks.trailing_zeros());
                    marks &= marks - 1;
                }
            }
        }
    }

    /// The rows, ascending; `None` where they are not listed.
    pub(super) fn rows(&self, store: usize) -> Option<&[u32]> {
        self.stores.get(store).filter(|rows| rows.listed).map(|rows| rows.list.as_slice())
    }
}

/// Finds per store of a plan whether it is the gradient of a table to which nothing but `tgrad` adds: in one pass over stores
/// and reductions, into a list that is written over.
pub(super) fn find_listed(plan: &Plan, listed: &mut Vec<bool>) {
    let is_of_table = |store: &Store| match store.kind {
        StoreKind::Grad(of) => plan.stores[of.index()].kind == StoreKind::Param(ParamKind::Table),
        StoreKind::Param(_) | StoreKind::State(_) => false,
    };
    listed.clear();
    listed.extend(plan.stores.iter().map(is_of_table));
    for sum in plan.reductions.iter().filter(|sum| sum.sum != ReductionSum::Tgrad) {
        listed[sum.store.index()] = false;
    }
}

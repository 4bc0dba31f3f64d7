//! Lists the rows of tables that have nonzero gradients after a run.

use super::reductions::ReductionInputs;

/// For each gradient store, the rows that `tgrad` reductions added to. The memory is reused.
#[derive(Default)]
pub(super) struct SparseRows {
    stores: Vec<Rows>,
}

#[derive(Default)]
struct Rows {
    /// True if the rows are listed. They are if the store is the gradient of a table and only `tgrad` adds to it.
    listed: bool,
    /// One bit per row.
    marks: Vec<u64>,
    list: Vec<u32>,
}

impl Rows {
    fn collect_marks(&mut self) {
        self.list.clear();
        for (word, &marks) in self.marks.iter().enumerate() {
            let mut marks = marks;
            while marks != 0 {
                self.list.push(word as u32 * 64 + marks.trailing_zeros());
                marks &= marks - 1;
            }
        }
    }
}

impl SparseRows {
    /// Marks the rows that a run adds to. `listed` is the result of [`find_sparse_gradients`](autobatch_ir::plan::Plan::find_sparse_gradients). If `accumulate`, earlier marks stay.
    pub(super) fn mark(&mut self, inputs: ReductionInputs<'_>, listed: &[bool], accumulate: bool) {
        let plan = inputs.plan;
        if self.stores.len() < plan.stores.len() {
            self.stores.resize_with(plan.stores.len(), Rows::default);
        }
        let height = |number: usize| plan.stores[number].ty.shape.dims()[0] as usize;
        for (number, rows) in self.stores.iter_mut().enumerate() {
            let listed = listed.get(number).copied().unwrap_or_default();
            // If earlier rows were not listed, all rows count as marked.
            rows.listed = listed && (rows.listed || !accumulate);
            if listed {
                if !accumulate {
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
                    let row = (inputs.index(x, lane) as usize).min(last);
                    marks[row / 64] |= 1 << (row % 64);
                }
            }
        }
        for (rows, _) in self.stores.iter_mut().zip(listed).filter(|(_, listed)| **listed) {
            rows.collect_marks();
        }
    }

    /// The rows of a store, ascending; `None` if they are not listed.
    pub(super) fn rows(&self, store: usize) -> Option<&[u32]> {
        self.stores.get(store).filter(|rows| rows.listed).map(|rows| rows.list.as_slice())
    }
}

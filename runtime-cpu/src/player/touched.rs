//! Which rows of tables the gradients of a play touched.

use super::finals::Played;
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{FinalSum, Plan, StoreKind};

/// Per gradient store, the rows that `tgrad` finals added to. Memory grows and stays.
#[derive(Default)]
pub(super) struct Touched {
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

impl Touched {
    /// Marks the rows that a play touched. Rows that were marked before stay so if `keep`.
    pub(super) fn mark(&mut self, played: Played<'_>, keep: bool) {
        let plan = played.plan;
        if self.stores.len() < plan.stores.len() {
            self.stores.resize_with(plan.stores.len(), Rows::default);
        }
        for (number, rows) in self.stores.iter_mut().enumerate() {
            let listed = plan.stores.get(number).is_some() && is_listed(plan, number);
            // What was not listed before is not known now: all its rows count as touched.
            rows.listed = listed && (rows.listed || !keep);
            if !listed {
                continue;
            }
            let table = plan.stores[number].ty.shape.dims()[0] as usize;
            if !keep {
                rows.marks.clear();
            }
            rows.marks.resize(table.div_ceil(64), 0);
            let own = plan.finals.iter().filter(|sum| sum.store.index() == number);
            for part in own.flat_map(|sum| &sum.parts) {
                let Some(x) = part.x else { continue };
                for lane in 0..part.lanes as usize {
                    let row = (played.index(x, lane) as usize).min(table - 1);
                    rows.marks[row / 64] |= 1 << (row % 64);
                }
            }
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

fn is_listed(plan: &Plan, number: usize) -> bool {
    let StoreKind::Grad(of) = plan.stores[number].kind else { return false };
    let mut own = plan.finals.iter().filter(|sum| sum.store.index() == number);
    plan.stores[of.index()].kind == StoreKind::Param(ParamKind::Table)
        && own.all(|sum| sum.sum == FinalSum::Tgrad)
}

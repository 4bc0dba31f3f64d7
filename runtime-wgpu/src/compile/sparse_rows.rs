//! Which lookups name the sparse rows of a table's gradient.

use super::layout::Layout;
use super::record::Spot;
use autobatch_ir::ParamId;
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{Plan, Reduction, ReductionSum, StoreKind};

/// The lookups that sparse rows of a table's gradient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touches {
    /// The table.
    pub param: ParamId,
    /// Its rows.
    pub rows: u32,
    /// Where the indices of each sum are, and how many there are.
    pub indices: Vec<(Spot, u32)>,
}

/// The lookups of every table to whose gradient nothing but lookups add; all rows of other gradients
/// count as touched.
#[must_use]
pub fn touches(plan: &Plan, layout: &Layout) -> Vec<Touches> {
    let mut all = Vec::new();
    let mut of_stores: Vec<Vec<&Reduction>> = vec![Vec::new(); plan.stores.len()];
    plan.reductions.iter().for_each(|sum| of_stores[sum.store.index()].push(sum));
    for (store, own) in plan.stores.iter().zip(&of_stores) {
        let StoreKind::Grad(of) = store.kind else { continue };
        let is_table = plan.stores[of.index()].kind == StoreKind::Param(ParamKind::Table);
        if !is_table || own.iter().any(|sum| sum.sum != ReductionSum::Tgrad) {
            continue;
        }
        let parts = own.iter().flat_map(|sum| &sum.parts);
        let indices = parts.filter_map(|part| Some((layout.operand(part.x?), part.lanes))).collect();
        let rows = store.ty.shape.dims().first().copied().unwrap_or(1);
        all.push(Touches { param: ParamId::new(of.index()), rows, indices });
    }
    all
}

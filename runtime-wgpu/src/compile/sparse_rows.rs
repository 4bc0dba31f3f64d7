//! The lookups that name the sparse rows of table gradients.

use super::layout::Layout;
use super::record::RowAddress;
use autobatch_ir::ParamId;
use autobatch_ir::module::ParamKind;
use autobatch_ir::plan::{Plan, Reduction, ReductionSum, StoreKind};

/// A table whose gradient is non-zero only in rows that lookups name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseTable {
    /// The table.
    pub param: ParamId,
    /// Its rows.
    pub rows: u32,
    /// For each sum the address of its row indices, and their number.
    pub indices: Vec<(RowAddress, u32)>,
}

/// The tables to whose gradients only lookups contribute. All rows of other gradients count as non-zero.
#[must_use]
pub fn sparse_tables(plan: &Plan, layout: &Layout) -> Vec<SparseTable> {
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
        all.push(SparseTable { param: ParamId::new(of.index()), rows, indices });
    }
    all
}

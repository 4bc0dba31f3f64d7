//! The lookups that name the sparse rows of table gradients.

use super::layout::BufferLayout;
use super::record::RowAddress;
use autobatch_ir::ParamId;
use autobatch_ir::plan::{Plan, StoreKind};

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
pub fn sparse_tables(plan: &Plan, layout: &BufferLayout) -> Vec<SparseTable> {
    let (mut all, mut sparse) = (Vec::new(), Vec::new());
    plan.find_sparse_gradients(&mut sparse);
    for (number, (store, _)) in plan.stores.iter().zip(sparse).enumerate().filter(|(_, (_, sparse))| *sparse)
    {
        let StoreKind::Grad(of) = store.kind else { continue };
        let own = plan.reductions.iter().filter(|sum| sum.store.index() == number);
        let parts = own.flat_map(|sum| &sum.parts);
        let indices = parts.filter_map(|part| Some((layout.operand(part.x?), part.lanes))).collect();
        let rows = store.ty.shape.dims().first().copied().unwrap_or(1);
        all.push(SparseTable { param: ParamId::new(of.index()), rows, indices });
    }
    all
}

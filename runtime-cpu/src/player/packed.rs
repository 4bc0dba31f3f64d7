//! Packed weights from play to play: packed again, in their memory, when their store has changed.
//!
//! A weight that a play met is packed again while an update changes it, some rows at a time, which are
//! in cache then. Any other is packed when a play meets it next.

use super::program::Weight;
use crate::kernels::{Isa, KernelError, Matrix, PackedWeights};
use autobatch_ir::plan::{Plan, StoreId};
use std::ops::Range;
use std::sync::Arc;

/// All packed weights, by store.
#[derive(Default)]
pub(super) struct Packed {
    stores: Vec<Vec<Kept>>,
}

/// A part of a store, packed.
struct Kept {
    part: Part,
    /// The version of the store that was packed.
    version: u64,
    /// Whether a play met it since the store was updated.
    met: bool,
    weights: Arc<PackedWeights>,
}

/// Which part of a store is packed how, and how large the store is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    rows: usize,
    columns: usize,
    transposed: bool,
    /// Of a transposed part its rows in the store, otherwise its columns.
    first: usize,
    width: usize,
}

impl Packed {
    /// The packed form of a weight of the plan; `values` are all elements of its store in this version.
    pub(super) fn get(
        &mut self,
        isa: Isa,
        plan: &Plan,
        store: StoreId,
        weight: Weight,
        (version, values): (u64, &[f32]),
    ) -> Result<Arc<PackedWeights>, KernelError> {
        let dims = plan.stores[store.index()].ty.shape;
        let part = Part {
            rows: dims.dims()[0] as usize,
            columns: dims.dims()[1] as usize,
            transposed: weight.transposed,
            first: weight.col as usize,
            width: weight.width as usize,
        };
        if self.stores.len() <= store.index() {
            self.stores.resize_with(store.index() + 1, Vec::new);
        }
        let all = &mut self.stores[store.index()];
        if let Some(kept) = all.iter_mut().find(|kept| kept.part == part) {
            if kept.version != version {
                match Arc::get_mut(&mut kept.weights) {
                    Some(weights) => part.pack(0..part.rows, values, weights)?,
                    None => kept.weights = Arc::new(PackedWeights::pack(isa, part.matrix(values))?),
                }
                kept.version = version;
            }
            kept.met = true;
            return Ok(Arc::clone(&kept.weights));
        }
        let weights = Arc::new(PackedWeights::pack(isa, part.matrix(values))?);
        all.push(Kept { part, version, met: true, weights: Arc::clone(&weights) });
        Ok(weights)
    }

    /// What plays met of a store while it had this version. Nobody else may hold packed weights.
    pub(super) fn met(&mut self, store: StoreId, version: u64) -> Met<'_> {
        let all = self.stores.get_mut(store.index()).map_or(&mut [][..], Vec::as_mut_slice);
        all.iter_mut().for_each(|kept| kept.met &= kept.version == version);
        Met(all)
    }
}

/// Packed parts of a store that is being updated.
pub(super) struct Met<'a>(&'a mut [Kept]);

impl Met<'_> {
    pub(super) fn is_empty(&self) -> bool {
        !self.0.iter().any(|kept| kept.met)
    }

    /// Packs some rows of the store again; `values` are all its elements.
    pub(super) fn pack(&mut self, rows: Range<usize>, values: &[f32]) {
        for kept in self.0.iter_mut().filter(|kept| kept.met) {
            let weights = Arc::get_mut(&mut kept.weights);
            let packed = weights.map(|weights| kept.part.pack(rows.clone(), values, weights));
            // What is not packed now is packed when a play meets it.
            kept.met = matches!(packed, Some(Ok(())));
        }
    }

    /// Says that all rows were packed, and which version they are.
    pub(super) fn finish(self, version: u64) {
        for kept in self.0.iter_mut().filter(|kept| kept.met) {
            (kept.version, kept.met) = (version, false);
        }
    }
}

impl Part {
    fn matrix(self, values: &[f32]) -> Matrix<'_> {
        let Self { rows, columns, transposed, first, width } = self;
        match transposed {
            true => Matrix::new(&values[first * columns..], columns, width, columns).transposed(),
            false => Matrix::new(&values[first..], columns, rows, width),
        }
    }

    /// Packs what there is of some rows of the store.
    fn pack(self, rows: Range<usize>, values: &[f32], to: &mut PackedWeights) -> Result<(), KernelError> {
        let Self { columns, transposed, first, width, .. } = self;
        if !transposed {
            let matrix = Matrix::new(&values[rows.start * columns + first..], columns, rows.len(), width);
            return to.fill(rows.start, 0, matrix);
        }
        let rows = rows.start.max(first)..rows.end.min(first + width);
        if rows.is_empty() {
            return Ok(());
        }
        let matrix = Matrix::new(&values[rows.start * columns..], columns, rows.len(), columns).transposed();
        to.fill(0, rows.start - first, matrix)
    }
}

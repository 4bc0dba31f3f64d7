//! Packed weights from play to play: packed again, in their memory, when their store has changed.
//!
//! A weight that a play met is packed again while an update changes it, some rows at a time, which are
//! in cache then. Any other is packed when a play meets it next. Weights of one module are kept at a time.

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
        // Plans of one module have the same stores. Of another module's, what was packed is given back.
        self.stores.resize_with(plan.given_stores().max(store.index() + 1), Vec::new);
        let all = &mut self.stores[store.index()];
        all.retain(|kept| (kept.part.rows, kept.part.columns) == (part.rows, part.columns));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of a module with square weights.
    fn plan(widths: &[usize]) -> Plan {
        let stores = widths.iter().enumerate();
        let stores: String =
            stores.map(|(number, width)| format!("store @w{number} param f32[{width},{width}]\n")).collect();
        let text = format!(
            "autobatch plan 1 module \"m\" structure 0x00000000000000000000000000000001 mode infer\n{stores}\
             bind words 0 floats 0\n\
             certificate batches 0 bound 0 | rows copied 0 tabled 0 direct 0 | slabs 0 bytes\n"
        );
        Plan::from_text(&text).expect("parses")
    }

    #[test]
    fn what_was_packed_of_another_module_is_given_back() {
        let mut packed = Packed::default();
        let mut play = |widths: &[usize]| {
            let plan = plan(widths);
            for (number, &width) in widths.iter().enumerate() {
                let values = vec![1.0; width * width];
                for transposed in [false, true] {
                    let weight = Weight { param: 0, transposed, col: 0, width: width as u32 };
                    let store = StoreId(number as u32);
                    packed.get(Isa::Scalar, &plan, store, weight, (1, &values)).expect("there is memory");
                }
            }
            packed.stores.iter().map(Vec::len).sum::<usize>()
        };
        for _ in 0..2 {
            assert_eq!(play(&[4, 5, 6]), 6);
            assert_eq!(play(&[4, 5, 6]), 6, "nothing is packed twice");
            assert_eq!(play(&[7, 5]), 4);
            for width in 8..20 {
                assert_eq!(play(&[width]), 2);
            }
        }
    }
}

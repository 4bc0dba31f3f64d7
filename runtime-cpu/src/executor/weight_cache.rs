//! Caches packed weights between runs. A weight is packed again, in its memory, when its store has changed.
//!
//! An update repacks the weights that a run used since the last update, a few rows at a time while the rows are in
//! cache. Any other weight is packed when a run uses it next.
//!
//! Versions identify arrays: no two arrays of a process ever have the same version. New versions normally mean that the
//! same weights changed, so their set replaces the set that was not used for longest. If a replaced set comes back, the
//! weights belong to several modules that alternate, and the returning one gets a set of its own. So modules that
//! alternate are packed once. The cache holds [`MAX_SETS`] sets.

use super::program::Weight;
use crate::kernels::{Isa, KernelError, Matrix, PackedWeights};
use autobatch_ir::plan::{Plan, StoreId};
use std::ops::Range;
use std::sync::Arc;

/// The maximum number of sets: modules, or versions of one module, that alternate.
pub(super) const MAX_SETS: usize = 4;
/// The number of replaced sets that are recognised if they come back.
pub(super) const MAX_REPLACED: usize = 8;

#[derive(Default)]
pub(super) struct WeightCache {
    /// Sets, the most recently used last.
    pub(super) sets: Vec<WeightSet>,
    /// The versions of replaced sets, oldest first. The vectors are allocated once; unused ones are empty.
    pub(super) replaced: Vec<Vec<u64>>,
    /// The number of times that a part was packed.
    #[cfg(test)]
    pub(super) packs: usize,
}

/// Packed weights of one module, by store.
#[derive(Default)]
pub(super) struct WeightSet {
    /// The versions of the stores at the last use or update.
    versions: Vec<u64>,
    pub(super) stores: Vec<Vec<PackedPart>>,
}

/// A packed part of a store.
pub(super) struct PackedPart {
    part: Part,
    /// The version of the packed elements.
    version: u64,
    /// True if a run used the part since the last update of the store.
    used: bool,
    weights: Arc<PackedWeights>,
}

/// A part of a store, its orientation, and the size of the store.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    rows: usize,
    columns: usize,
    transposed: bool,
    /// The first column in the store; for a transposed part the first row.
    first: usize,
    width: usize,
}

/// The elements of a store, and their version.
#[derive(Clone, Copy)]
pub(super) struct StoreValues<'a> {
    pub(super) version: u64,
    pub(super) values: &'a [f32],
}

impl WeightCache {
    /// Selects the set for the next uses, given the number of stores and the version of each. It becomes the last set.
    pub(super) fn select(&mut self, stores: usize, version: impl Fn(usize) -> u64) {
        if stores == 0 {
            return;
        }
        if self.replaced.is_empty() {
            self.replaced.extend((0..MAX_REPLACED).map(|_| Vec::with_capacity(stores)));
        }
        let versions = || (0..stores).map(&version);
        let count_equal = |known: &[u64]| known.iter().zip(versions()).filter(|(a, b)| **a == *b).count();
        let best = self.sets.iter().enumerate().map(|(at, set)| (count_equal(&set.versions), at)).max();
        let (equal, at) = best.filter(|best| best.0 > 0).unwrap_or((0, 0));
        if equal == stores && self.sets[at].versions.len() == stores {
            self.sets[at..].rotate_left(1);
            return;
        }
        let returning = self.replaced.iter().position(|versions| count_equal(versions) > equal);
        if let Some(returning) = returning {
            self.replaced[returning].clear();
            self.replaced[..=returning].rotate_right(1);
        }
        let mut set = match returning {
            Some(_) if self.sets.len() < MAX_SETS => WeightSet::default(),
            _ if self.sets.is_empty() => WeightSet::default(),
            Some(_) => self.sets.remove(0),
            None => self.sets.remove(at),
        };
        if !set.versions.is_empty() {
            self.replaced.rotate_left(1);
            std::mem::swap(&mut self.replaced[MAX_REPLACED - 1], &mut set.versions);
        }
        set.versions.clear();
        set.versions.extend(versions());
        set.stores.resize_with(stores, Vec::new);
        self.sets.push(set);
    }

    /// Returns the packed form of a weight of the plan. `elements` are those of its whole store.
    pub(super) fn get(
        &mut self,
        isa: Isa,
        plan: &Plan,
        store: StoreId,
        weight: Weight,
        elements: StoreValues<'_>,
    ) -> Result<Arc<PackedWeights>, KernelError> {
        let StoreValues { version, values } = elements;
        let shape = plan.stores[store.index()].ty.shape;
        let part = Part {
            rows: shape.dims()[0] as usize,
            columns: shape.dims()[1] as usize,
            transposed: weight.transposed,
            first: weight.col as usize,
            width: weight.width as usize,
        };
        let set = self.sets.last_mut().expect("a set was selected");
        let all = &mut set.stores[store.index()];
        // The set may have belonged to another module, whose stores have other sizes.
        all.retain(|known| (known.part.rows, known.part.columns) == (part.rows, part.columns));
        let known = all.iter_mut().find(|known| known.part == part);
        #[cfg(test)]
        {
            self.packs += usize::from(known.as_ref().is_none_or(|known| known.version != version));
        }
        if let Some(known) = known {
            if known.version != version {
                match Arc::get_mut(&mut known.weights) {
                    Some(weights) => part.pack(0..part.rows, values, weights)?,
                    None => known.weights = Arc::new(PackedWeights::pack(isa, part.matrix(values))?),
                }
                known.version = version;
            }
            known.used = true;
            return Ok(Arc::clone(&known.weights));
        }
        let weights = Arc::new(PackedWeights::pack(isa, part.matrix(values))?);
        all.push(PackedPart { part, version, used: true, weights: Arc::clone(&weights) });
        Ok(weights)
    }

    /// Begins to repack the parts of a store that runs used while it had `version`. No one else may hold packed weights.
    pub(super) fn repack(&mut self, store: StoreId, version: u64) -> Repacking<'_> {
        let has_version = |set: &&mut WeightSet| set.versions.get(store.index()) == Some(&version);
        let Some(set) = self.sets.iter_mut().rev().find(has_version) else { return Repacking::default() };
        let parts = set.stores[store.index()].as_mut_slice();
        parts.iter_mut().for_each(|part| part.used &= part.version == version);
        Repacking { parts, version: set.versions.get_mut(store.index()) }
    }
}

/// Packed parts of a store during an update.
#[derive(Default)]
pub(super) struct Repacking<'a> {
    parts: &'a mut [PackedPart],
    version: Option<&'a mut u64>,
}

impl Repacking<'_> {
    pub(super) fn is_empty(&self) -> bool {
        !self.parts.iter().any(|part| part.used)
    }

    /// Packs some rows of the store again. `values` are all elements of the store.
    pub(super) fn pack(&mut self, rows: Range<usize>, values: &[f32]) {
        for part in self.parts.iter_mut().filter(|part| part.used) {
            let weights = Arc::get_mut(&mut part.weights);
            let packed = weights.map(|weights| part.part.pack(rows.clone(), values, weights));
            // A part that fails here is packed at its next use.
            part.used = matches!(packed, Some(Ok(())));
        }
    }

    /// Records the new version after all rows were packed.
    pub(super) fn finish(self, version: u64) {
        if let Some(own) = self.version {
            *own = version;
        }
        for part in self.parts.iter_mut().filter(|part| part.used) {
            (part.version, part.used) = (version, false);
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

    /// Packs the intersection of this part with some rows of the store.
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

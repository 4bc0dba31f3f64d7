//! Packed weights from execute to execute: packed again, in their memory, when their store has changed.
//!
//! A weight that a run met is packed again while an update changes it, some rows at a time, which are
//! in cache then. Any other is packed when a run meets it next.
//!
//! Versions tell whose weights they are: no two arrays of a process ever have the same. Weights that are met for the first time
//! take the place of those that were not met for longest, for as a rule they are the same ones, changed. If what was
//! replaced comes back, other weights were meant: it gets a place of its own, so that modules which take turns are packed
//! once. [`MOST_SETS`] places are kept.

use super::program::Weight;
use crate::kernels::{Isa, KernelError, Matrix, PackedWeights};
use autobatch_ir::plan::{Plan, StoreId};
use std::ops::Range;
use std::sync::Arc;

/// The weights of so many modules, or so many weights of one module, are kept at a time, if they take turns.
const MOST_SETS: usize = 4;
/// So many replaced ones are known if they come back.
const MOST_GONE: usize = 8;

/// All packed weights.
#[derive(Default)]
pub(super) struct Packed {
    /// Those that were met last come last.
    sets: Vec<Set>,
    /// The versions of sets that were replaced; the oldest first. All are there from the beginning, with memory, and empty.
    gone: Vec<Vec<u64>>,
    /// How often something was packed.
    #[cfg(test)]
    packs: usize,
}

/// Packed weights of one module, by store.
#[derive(Default)]
struct Set {
    /// The versions that the stores had when they were met or updated last.
    versions: Vec<u64>,
    stores: Vec<Vec<Kept>>,
}

/// A part of a store, packed.
struct Kept {
    part: Part,
    /// The version of the store that was packed.
    version: u64,
    /// Whether a run met it since the store was updated.
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

/// How many stores have these versions.
fn count_same(known: &[u64], versions: impl Iterator<Item = u64>) -> usize {
    known.iter().zip(versions).filter(|(own, version)| **own == *version).count()
}

impl Packed {
    /// Says which weights are met next: so many stores, and the version of each. Their set is the last from now on.
    pub(super) fn turn_to(&mut self, stores: usize, version: impl Fn(usize) -> u64) {
        if stores == 0 {
            return;
        }
        if self.gone.is_empty() {
            self.gone.extend((0..MOST_GONE).map(|_| Vec::with_capacity(stores)));
        }
        let versions = || (0..stores).map(&version);
        let alike = |known: &[u64]| count_same(known, versions());
        let best = self.sets.iter().enumerate().map(|(at, set)| (alike(&set.versions), at)).max();
        let (same, at) = best.filter(|best| best.0 > 0).unwrap_or((0, 0));
        if same == stores && self.sets[at].versions.len() == stores {
            self.sets[at..].rotate_left(1);
            return;
        }
        let back = self.gone.iter().position(|gone| alike(gone) > same);
        if let Some(back) = back {
            self.gone[back].clear();
            self.gone[..=back].rotate_right(1);
        }
        let mut set = match back {
            Some(_) if self.sets.len() < MOST_SETS => Set::default(),
            _ if self.sets.is_empty() => Set::default(),
            Some(_) => self.sets.remove(0),
            None => self.sets.remove(at),
        };
        if !set.versions.is_empty() {
            self.gone.rotate_left(1);
            std::mem::swap(&mut self.gone[MOST_GONE - 1], &mut set.versions);
        }
        set.versions.clear();
        set.versions.extend(versions());
        set.stores.resize_with(stores, Vec::new);
        self.sets.push(set);
    }

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
        let set = self.sets.last_mut().expect("weights are met behind `turn_to`");
        let all = &mut set.stores[store.index()];
        // A set may have been another module's.
        all.retain(|kept| (kept.part.rows, kept.part.columns) == (part.rows, part.columns));
        let known = all.iter_mut().find(|kept| kept.part == part);
        #[cfg(test)]
        {
            self.packs += usize::from(known.as_ref().is_none_or(|kept| kept.version != version));
        }
        if let Some(kept) = known {
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

    /// What executes met of a store while it had this version. Nobody else may hold packed weights.
    pub(super) fn met(&mut self, store: StoreId, version: u64) -> Met<'_> {
        let is = |set: &&mut Set| set.versions.get(store.index()) == Some(&version);
        let Some(set) = self.sets.iter_mut().rev().find(is) else { return Met::default() };
        let all = set.stores[store.index()].as_mut_slice();
        all.iter_mut().for_each(|kept| kept.met &= kept.version == version);
        Met { packed: all, version: set.versions.get_mut(store.index()) }
    }
}

/// Packed parts of a store that is being updated.
#[derive(Default)]
pub(super) struct Met<'a> {
    packed: &'a mut [Kept],
    version: Option<&'a mut u64>,
}

impl Met<'_> {
    pub(super) fn is_empty(&self) -> bool {
        !self.packed.iter().any(|kept| kept.met)
    }

    /// Packs some rows of the store again; `values` are all its elements.
    pub(super) fn pack(&mut self, rows: Range<usize>, values: &[f32]) {
        for kept in self.packed.iter_mut().filter(|kept| kept.met) {
            let weights = Arc::get_mut(&mut kept.weights);
            let packed = weights.map(|weights| kept.part.pack(rows.clone(), values, weights));
            // What is not packed now is packed when a run meets it.
            kept.met = matches!(packed, Some(Ok(())));
        }
    }

    /// Says that all rows were packed, and which version they are.
    pub(super) fn finish(self, version: u64) {
        if let Some(own) = self.version {
            *own = version;
        }
        for kept in self.packed.iter_mut().filter(|kept| kept.met) {
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
            "autobatch plan 2 module \"m\" structure 0x00000000000000000000000000000001 mode infer\n{stores}\
             bind words 0 floats 0\n\
             certificate batches 0 bound 0 | rows copied 0 gathered 0 direct 0 | slabs 0 bytes\n"
        );
        Plan::from_text(&text).expect("parses")
    }

    /// Meets both forms of every weight of a module whose stores have versions from one on; gives how often something was
    /// packed, and what is kept.
    fn execute(packed: &mut Packed, widths: &[usize], first: u64) -> (usize, usize) {
        let plan = plan(widths);
        let before = packed.packs;
        packed.turn_to(widths.len(), |store| first + store as u64);
        for (number, &width) in widths.iter().enumerate() {
            let values = vec![1.0; width * width];
            for transposed in [false, true] {
                let weight = Weight { param: 0, transposed, col: 0, width: width as u32 };
                let (store, version) = (StoreId(number as u32), first + number as u64);
                packed.get(Isa::Scalar, &plan, store, weight, (version, &values)).expect("there is memory");
            }
        }
        let kept = packed.sets.iter().flat_map(|set| &set.stores).map(Vec::len).sum();
        (packed.packs - before, kept)
    }

    #[test]
    fn what_was_packed_of_another_module_is_given_back() {
        let mut packed = Packed::default();
        for first in [100, 200] {
            assert_eq!(execute(&mut packed, &[4, 5, 6], first), (6, 6));
            assert_eq!(execute(&mut packed, &[4, 5, 6], first), (0, 6), "nothing is packed twice");
            assert_eq!(execute(&mut packed, &[7, 5], first + 10), (4, 4));
            for width in 8..20 {
                assert_eq!(execute(&mut packed, &[width], first + 20 + width as u64), (2, 2));
            }
        }
    }

    #[test]
    fn modules_that_take_turns_are_packed_twice_and_then_no_more() {
        let modules: [(&[usize], u64); 3] = [(&[4, 5, 6], 100), (&[4, 5, 6], 200), (&[7], 300)];
        let mut packed = Packed::default();
        let turns: Vec<usize> = (0..6)
            .map(|_| modules.iter().map(|&(widths, first)| execute(&mut packed, widths, first).0).sum())
            .collect();
        assert!(turns[0] == 14 && turns[1] <= 14, "{turns:?}");
        assert_eq!(turns[2..], [0; 4], "{turns:?}");
    }

    #[test]
    fn weights_that_change_in_turns_have_two_places() {
        let mut packed = Packed::default();
        for step in 0..20u64 {
            let (_, kept) = execute(&mut packed, &[4, 5], 1000 + 10 * step);
            assert_eq!(kept, 4, "one place as long as nothing comes back");
        }
        for step in 0..20u64 {
            for module in [0, 1] {
                let first = 10_000 + 100_000 * module + 10 * step;
                execute(&mut packed, &[4, 5], first);
                let (packs, kept) = execute(&mut packed, &[4, 5], first);
                assert_eq!(packs, 0);
                assert!(kept <= 4 * MOST_SETS);
            }
        }
    }

    #[test]
    fn sets_and_memories_of_them_are_bounded() {
        let mut packed = Packed::default();
        for round in 0..4 {
            for module in 0..20u64 {
                execute(&mut packed, &[4, 5], 100 * (module + 1));
            }
            assert!(packed.sets.len() <= MOST_SETS && packed.gone.len() <= MOST_GONE, "round {round}");
        }
    }

    #[test]
    fn weights_that_share_some_stores_have_a_set_each() {
        let mut packed = Packed::default();
        let plan = plan(&[4, 4]);
        let mut execute = |versions: [u64; 2]| {
            let before = packed.packs;
            packed.turn_to(2, |store| versions[store]);
            for (number, &version) in versions.iter().enumerate() {
                let weight = Weight { param: 0, transposed: false, col: 0, width: 4 };
                let store = StoreId(number as u32);
                packed
                    .get(Isa::Scalar, &plan, store, weight, (version, &[1.0; 16]))
                    .expect("there is memory");
            }
            packed.packs - before
        };
        let turns: Vec<usize> = (0..10).map(|turn| execute([7, 8 + turn % 2])).collect();
        assert_eq!(turns[4..], [0; 6], "{turns:?}");
    }
}

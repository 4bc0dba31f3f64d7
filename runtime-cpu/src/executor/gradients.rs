//! The memory of parameter gradients, reused from run to run.
//!
//! A gradient is a sum from 0, but the executor fills few gradients with zeros. The first reduction of a weight block
//! overwrites it. Of a table, only the rows of the previous run are zeroed, so a run costs as much as its lookups, not
//! as much as the table. The rows keep their positions in the table, so the gradient is also dense;
//! [`sparse_rows`](super::sparse_rows) lists them.

use super::reductions::ReductionInputs;
use super::sparse_rows::SparseRows;
use super::{Executor, RunError};
use crate::kernels::Scratch;
use autobatch_ir::ParamId;
use autobatch_ir::plan::blocks::lie_apart;
use autobatch_ir::plan::{Plan, ReductionSum, Store, StoreId, StoreKind};

/// Up to this number, the blocks of a store are compared in pairs. Of more blocks, only whether all are disjoint is found.
const FEW_BLOCKS: usize = 256;

/// The gradients of the plan executed last, by store.
#[derive(Default)]
pub(super) struct Gradients {
    pub(super) stores: Vec<Gradient>,
    /// The gradient store of each parameter.
    params: Vec<Option<StoreId>>,
    /// The same for a plan that accumulates gradients.
    next_params: Vec<Option<StoreId>>,
    sparse: SparseRows,
    /// For each store of the plan, whether its sparse rows are listed.
    listed: Vec<bool>,
    /// For each reduction, whether it overwrites its block.
    pub(super) overwrites: Vec<bool>,
    /// Scratch: reductions sorted by block.
    sorted: Vec<usize>,
    /// Scratch: the number of overwritten elements of each store.
    overwritten: Vec<u64>,
    pub(super) scratch: Vec<Scratch>,
    /// The slots of [`shards`](super::shards).
    pub(super) slots: Vec<Vec<f32>>,
}

#[derive(Default)]
pub(super) struct Gradient {
    pub(super) values: Vec<f32>,
    /// The row width of a table gradient that is 0 outside of its listed rows.
    sparse_width: Option<usize>,
}

impl Gradient {
    fn clear(&mut self) {
        self.values.clear();
        self.sparse_width = None;
    }
}

impl Executor {
    /// Sets whether the next plans add their gradients to the existing ones, instead of starting from 0. Use it to
    /// accumulate the gradients of several minibatches: turn it on after the first one, and off after the last. The
    /// sums continue in order, so the bits are those of one plan whose reductions name all rows. While it is on, a plan
    /// without a reverse leaves the gradients unchanged. Off by default.
    pub fn set_accumulate_gradients(&mut self, accumulate: bool) {
        self.accumulate_gradients = accumulate;
    }
}

impl Gradients {
    /// Prepares the memory of every gradient store of the plan, such that reductions compute sums from 0. If
    /// `accumulate`, checks instead that the sums can continue from the existing gradients.
    pub(super) fn fit(&mut self, plan: &Plan, threads: usize, accumulate: bool) -> Result<(), RunError> {
        self.overwrites.clear();
        self.overwrites.resize(plan.reductions.len(), false);
        plan.find_sparse_gradients(&mut self.listed);
        if accumulate {
            return self.check_same(plan);
        }
        gradients_of_params(plan, &mut self.params);
        if self.stores.len() < plan.stores.len() {
            self.stores.resize_with(plan.stores.len(), Gradient::default);
        }
        find_overwriting(plan, &mut self.overwrites, &mut self.sorted);
        count_overwritten(plan, &self.overwrites, &mut self.overwritten);
        for (number, store) in plan.stores.iter().enumerate() {
            self.reset(number, store)?;
        }
        self.stores[plan.stores.len()..].iter_mut().for_each(Gradient::clear);
        self.scratch.resize_with(threads.max(self.scratch.len()), Scratch::new);
        Ok(())
    }

    /// Marks the rows of tables that a run adds to.
    pub(super) fn mark_rows(&mut self, inputs: ReductionInputs<'_>, accumulate: bool) {
        self.sparse.mark(inputs, &self.listed, accumulate);
    }

    /// For each store of the plan, whether its sparse rows are listed.
    pub(super) fn listed(&self) -> &[bool] {
        &self.listed
    }

    /// Checks that the plan has the gradients that exist.
    fn check_same(&mut self, plan: &Plan) -> Result<(), RunError> {
        gradients_of_params(plan, &mut self.next_params);
        let exists = |gradient: &Option<StoreId>| {
            gradient.is_none_or(|store| {
                let elements = plan.stores[store.index()].ty.shape.elements();
                self.stores[store.index()].values.len() == elements
            })
        };
        let same = self.next_params == self.params && self.params.iter().all(exists);
        if same { Ok(()) } else { Err(RunError::OtherGradients) }
    }

    /// Sizes one gradient, and zeroes the elements that no reduction overwrites.
    fn reset(&mut self, number: usize, store: &Store) -> Result<(), RunError> {
        let gradient = &mut self.stores[number];
        if !matches!(store.kind, StoreKind::Grad(_)) {
            gradient.clear();
            return Ok(());
        }
        let (elements, width) = (store.ty.shape.elements(), store.ty.shape.width());
        let bytes = elements as u64 * 4;
        let more = elements.saturating_sub(gradient.values.len());
        gradient.values.try_reserve_exact(more).map_err(|_| RunError::Memory { bytes })?;
        let listed = self.listed[number];
        let reusable = listed && gradient.sparse_width == Some(width) && gradient.values.len() == elements;
        if let Some(rows) = self.sparse.rows(number).filter(|_| reusable) {
            for &row in rows {
                gradient.values[row as usize * width..][..width].fill(0.0);
            }
        } else {
            if self.overwritten[number] != elements as u64 {
                gradient.values.clear();
            }
            gradient.values.resize(elements, 0.0);
        }
        gradient.sparse_width = listed.then_some(width);
        Ok(())
    }

    /// The elements of a gradient store.
    pub(super) fn of(&self, store: StoreId) -> Option<&[f32]> {
        let gradient = self.stores.get(store.index())?;
        (!gradient.values.is_empty()).then_some(gradient.values.as_slice())
    }

    pub(super) fn of_param(&self, param: ParamId) -> Option<&[f32]> {
        self.of((*self.params.get(param.index())?)?)
    }

    /// The sparse rows of a table's gradient, ascending; `None` if the gradient is dense.
    pub(super) fn sparse_rows(&self, param: ParamId) -> Option<&[u32]> {
        self.sparse.rows((*self.params.get(param.index())?)?.index())
    }
}

/// Finds the reductions that overwrite their block: those whose elements no earlier reduction reaches. In a store with
/// many blocks that overlap in part there are none; such a store is filled with zeros.
fn find_overwriting(plan: &Plan, overwrites: &mut [bool], sorted: &mut Vec<usize>) {
    let corners = |number: usize| {
        let [rows, columns] = plan.reductions[number].block(plan);
        [rows.start, rows.end, columns.start, columns.end]
    };
    let store = |number: usize| plan.reductions[number].store;
    sorted.clear();
    sorted.extend(0..plan.reductions.len());
    sorted.sort_unstable_by_key(|&number| (store(number), corners(number), number));
    for own in sorted.chunk_by_mut(|&one, &other| store(one) == store(other)) {
        // Of several reductions of one block, only the first can overwrite.
        let mut count = 0;
        for at in 0..own.len() {
            if count == 0 || corners(own[at]) != corners(own[count - 1]) {
                own[count] = own[at];
                count += 1;
            }
        }
        let firsts = &mut own[..count];
        firsts.sort_unstable();
        let many = count > FEW_BLOCKS;
        let all_apart = many && lie_apart(firsts.iter().map(|&number| plan.reductions[number].block(plan)));
        for (at, &number) in firsts.iter().enumerate() {
            let sum = &plan.reductions[number];
            let first = || firsts[..at].iter().all(|&before| !plan.reductions[before].overlaps(plan, sum));
            overwrites[number] = sum.sum != ReductionSum::Tgrad && if many { all_apart } else { first() };
        }
    }
}

/// Writes the gradient store of each parameter to `gradients`, in one pass over the stores.
fn gradients_of_params(plan: &Plan, gradients: &mut Vec<Option<StoreId>>) {
    gradients.clear();
    let is_param = |store: &&Store| matches!(store.kind, StoreKind::Param(_));
    gradients.resize(plan.stores.iter().take_while(is_param).count(), None);
    for (number, store) in plan.stores.iter().enumerate() {
        if let StoreKind::Grad(param) = store.kind {
            gradients[param.index()].get_or_insert(StoreId(number as u32));
        }
    }
}

/// Counts the elements of each store that reductions overwrite.
fn count_overwritten(plan: &Plan, overwrites: &[bool], counts: &mut Vec<u64>) {
    counts.clear();
    counts.resize(plan.stores.len(), 0);
    for (sum, _) in plan.reductions.iter().zip(overwrites).filter(|(_, overwrites)| **overwrites) {
        // Overwritten blocks are disjoint, so their sizes add up.
        let [rows, columns] = sum.block(plan);
        counts[sum.store.index()] += (rows.end - rows.start) * (columns.end - columns.start);
    }
}

//! The gradients of parameters: their memory from execute to execute.
//!
//! A gradient is a sum that begins at 0, but few are filled with zeros. Of a weight, the first final
//! that reaches a block overwrites it. Of a table, the rows that the run before touched are zeroed
//! and no others, so a run costs what its lookups cost, not what the table holds; the rows stand
//! where they stand in the table, so that the gradient is there dense as well, and
//! [`touched`](super::touched) lists them.

use super::RunError;
use super::sparse_rows::{SparseRows, find_listed};
use crate::kernels::Scratch;
use autobatch_ir::ParamId;
use autobatch_ir::plan::blocks::lie_apart;
use autobatch_ir::plan::{Plan, Reduction, ReductionSum, Store, StoreId, StoreKind};
use std::ops::Range;

/// The gradients of the plan that was executed last, by store. Memory grows and stays.
#[derive(Default)]
pub(super) struct Gradients {
    pub(super) stores: Vec<Gradient>,
    /// The store of each parameter's gradient.
    params: Vec<Option<StoreId>>,
    /// The same of a plan whose gradients are to be added.
    next_params: Vec<Option<StoreId>>,
    pub(super) touched: SparseRows,
    /// Per store of the plan whether the sparse rows of it are listed.
    pub(super) listed: Vec<bool>,
    /// Per final whether it overwrites.
    pub(super) fresh: Vec<bool>,
    /// Reductions by the blocks that they reach, and elements of stores that are overwritten: kept for their memory.
    sorted: Vec<usize>,
    covered: Vec<u64>,
    pub(super) scratch: Vec<Scratch>,
}

/// One gradient.
#[derive(Default)]
pub(super) struct Gradient {
    pub(super) values: Vec<f32>,
    /// Of a table, how wide the rows are outside of which everything is 0: those listed as touched.
    sparse: Option<usize>,
}

impl Gradients {
    /// Memory for every gradient store of the plan, such that reductions give sums from 0 on; what is
    /// there, if gradients are to be `kept`.
    pub(super) fn fit(&mut self, plan: &Plan, threads: usize, kept: bool) -> Result<(), RunError> {
        self.fresh.clear();
        self.fresh.resize(plan.reductions.len(), false);
        find_listed(plan, &mut self.listed);
        if kept {
            gradients_of_params(plan, &mut self.next_params);
            let elements = |store: StoreId| plan.stores[store.index()].ty.shape.elements();
            let is_there = |gradient: Option<StoreId>| {
                gradient.is_none_or(|store| self.stores[store.index()].values.len() == elements(store))
            };
            let same =
                self.next_params == self.params && self.params.iter().all(|&gradient| is_there(gradient));
            return if same { Ok(()) } else { Err(RunError::OtherGradients) };
        }
        gradients_of_params(plan, &mut self.params);
        if self.stores.len() < plan.stores.len() {
            self.stores.resize_with(plan.stores.len(), Gradient::default);
        }
        find_fresh(plan, &mut self.fresh, &mut self.sorted);
        cover(plan, &self.fresh, &mut self.covered);
        for (number, store) in plan.stores.iter().enumerate() {
            let gradient = &mut self.stores[number];
            if !matches!(store.kind, StoreKind::Grad(_)) {
                gradient.values.clear();
                gradient.sparse = None;
                continue;
            }
            let (elements, width) = (store.ty.shape.elements(), store.ty.shape.width());
            let bytes = elements as u64 * 4;
            let more = elements.saturating_sub(gradient.values.len());
            gradient.values.try_reserve_exact(more).map_err(|_| RunError::Memory { bytes })?;
            let listed = self.listed[number];
            match self.touched.rows(number) {
                Some(rows)
                    if listed && gradient.sparse == Some(width) && gradient.values.len() == elements =>
                {
                    for &row in rows {
                        gradient.values[row as usize * width..][..width].fill(0.0);
                    }
                }
                _ => {
                    if self.covered[number] != elements as u64 {
                        gradient.values.clear();
                    }
                    gradient.values.resize(elements, 0.0);
                }
            }
            gradient.sparse = listed.then_some(width);
        }
        for gradient in &mut self.stores[plan.stores.len()..] {
            gradient.values.clear();
            gradient.sparse = None;
        }
        self.scratch.resize_with(threads.max(self.scratch.len()), Scratch::new);
        Ok(())
    }

    /// The elements of a gradient store.
    pub(super) fn of(&self, store: StoreId) -> Option<&[f32]> {
        let gradient = self.stores.get(store.index())?;
        (!gradient.values.is_empty()).then_some(gradient.values.as_slice())
    }

    /// The gradient of a parameter.
    pub(super) fn of_param(&self, param: ParamId) -> Option<&[f32]> {
        self.of((*self.params.get(param.index())?)?)
    }

    /// The sparse rows of a table's gradient, ascending; `None` if all count as touched.
    pub(super) fn sparse_rows(&self, param: ParamId) -> Option<&[u32]> {
        self.touched.rows((*self.params.get(param.index())?)?.index())
    }
}

/// The rows and columns of its store that a final reaches.
fn block(plan: &Plan, sum: &Reduction) -> [Range<u64>; 2] {
    match sum.sum {
        ReductionSum::Wgrad { row, col, k, n } => {
            let range = |start: u32, len: u32| u64::from(start)..u64::from(start) + u64::from(len);
            [range(row, k), range(col, n)]
        }
        ReductionSum::Colsum | ReductionSum::Tgrad => {
            let shape = plan.stores[sum.store.index()].ty.shape;
            [0..shape.rows() as u64, 0..shape.width() as u64]
        }
    }
}

/// So many blocks of a store are compared with each other, which takes no memory; of more, only whether all lie apart is found out.
const FEW_BLOCKS: usize = 256;

/// Finds out of which final's block, which it writes as a whole, no final before it reaches an element. Of stores with
/// many blocks that meet in part none counts as such: it is filled with zeros, to which they add.
fn find_fresh(plan: &Plan, fresh: &mut [bool], sorted: &mut Vec<usize>) {
    let corners = |number: usize| {
        let [rows, columns] = block(plan, &plan.reductions[number]);
        [rows.start, rows.end, columns.start, columns.end]
    };
    let store = |number: usize| plan.reductions[number].store;
    sorted.clear();
    sorted.extend(0..plan.reductions.len());
    sorted.sort_unstable_by_key(|&number| (store(number), corners(number), number));
    for own in sorted.chunk_by_mut(|&one, &other| store(one) == store(other)) {
        // Of reductions of one block the first; only it can be the first to reach it.
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
        let apart = many && lie_apart(firsts.iter().map(|&number| block(plan, &plan.reductions[number])));
        for (place, &number) in firsts.iter().enumerate() {
            let sum = &plan.reductions[number];
            let alone = || firsts[..place].iter().all(|&before| !meet(plan, &plan.reductions[before], sum));
            fresh[number] = sum.sum != ReductionSum::Tgrad && if many { apart } else { alone() };
        }
    }
}

/// The store of each parameter's gradient, into a list that is written over: in one pass, whatever the number of parameters.
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

/// Whether two reductions reach an element both.
pub(super) fn meet(plan: &Plan, one: &Reduction, other: &Reduction) -> bool {
    let ranges = |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end;
    one.store == other.store && {
        let ([rows, columns], [other_rows, other_columns]) = (block(plan, one), block(plan, other));
        ranges(&rows, &other_rows) && ranges(&columns, &other_columns)
    }
}

/// How many elements of each store are reached by reductions that overwrite.
fn cover(plan: &Plan, fresh: &[bool], covered: &mut Vec<u64>) {
    covered.clear();
    covered.resize(plan.stores.len(), 0);
    for (sum, _) in plan.reductions.iter().zip(fresh).filter(|(_, fresh)| **fresh) {
        let [rows, columns] = block(plan, sum);
        // Blocks that overwrite do not meet, so their sizes add up.
        covered[sum.store.index()] += (rows.end - rows.start) * (columns.end - columns.start);
    }
}

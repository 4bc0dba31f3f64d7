//! Reductions: sums over all rows of a minibatch, executed after the last step.
//!
//! A reduction adds to a *gradient store*, which holds `+0` before the first reduction. Its parts name the rows and fix the
//! order of the sum: parts in order, lanes ascending, rows of a lane ascending. Reductions of one store are executed in the
//! order listed, and each continues the sums of the ones before it. A runtime may cut the *store* into tiles for threads, but
//! never cuts a sum.
//!
//! The graph defines that order: each element of a gradient is one chain over the uses of the parameter. The uses ascend by the
//! [signature](crate::graph::Signatures::compare) of the node, then by the place in its body that uses the parameter, then by the
//! node. So the bits of a gradient are a function of the graph, whatever order the steps have. The proof compares the order.
//!
//! A plan may divide the nodes of its graph into *shards*, ranges of nodes. Then each shard has a chain of its own over the uses
//! by its nodes, and the chains are added in the [tree](crate::numeric::tree) of the shards. So it has the bits of one plan per shard
//! whose gradients are added later, and the batches of one plan for all.
//!
//! Gradients of tables are dense. A runtime that only has sparse rows gets the same bits for these rows if it sorts the parts
//! stably by index, because different rows of a table are independent. Where only `tgrad` adds to a table, a shard without
//! additions to a row is left out of the tree of this row.

use super::{Plan, StepOperand, Store, StoreId, StoreKind};
use crate::module::ParamKind;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The terms of a reduction, and where they are added.
#[expect(missing_docs, reason = "the description of each variant names its fields")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReductionSum {
    /// `d[row + i][col + j] = fma(x[i], dy[j], d[row + i][col + j])` for the rows of `x`, which are `k` wide, and of `dy`,
    /// which are `n` wide. So the block has `k` rows and `n` columns, and begins at `row` and `col`.
    ///
    /// For a weight that is stored transposed, `x` is the gradient of the results and `dy` is the operand. The order of two
    /// factors does not matter.
    Wgrad { row: u32, col: u32, k: u32, n: u32 },
    /// `d = d + dy`, where a row of `dy` is as long as the store.
    Colsum,
    /// `d[x] = d[x] + dy`, where `x` is one index and `dy` is as long as a row of the store. An index past the end is clamped to
    /// the last row, as in lookups.
    Tgrad,
    /// The gradient of the rows of labels: `d[v] = fma(dlogit[v], x, d[v])` for all rows `v`, where `dy` has three numbers that
    /// [`label_loss::gradient`](crate::numeric::label_loss::gradient) turns into `dlogit` together with `x` and the parameter.
    Lgrad,
}

impl Plan {
    /// For each store, writes to `found` whether it is the gradient of a table to which only `tgrad` reductions add. Its
    /// rows that no lookup names are zero.
    pub fn find_sparse_gradients(&self, found: &mut Vec<bool>) {
        let is_of_table = |store: &Store| match store.kind {
            StoreKind::Grad(of) => self.stores[of.index()].kind == StoreKind::Param(ParamKind::Table),
            StoreKind::Param(_) | StoreKind::State(_) => false,
        };
        found.clear();
        found.extend(self.stores.iter().map(is_of_table));
        for sum in self.reductions.iter().filter(|sum| sum.sum != ReductionSum::Tgrad) {
            found[sum.store.index()] = false;
        }
    }
}

/// Rows that a reduction takes, one lane after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReductionPart {
    /// How many lanes.
    pub lanes: u32,
    /// How many rows of the sum each lane holds: the rows of a matrix value.
    pub each: u32,
    /// The operand of the product, or the index of a table's row; `None` if only `dy` is summed.
    pub x: Option<StepOperand>,
    /// The gradient of the result.
    pub dy: StepOperand,
    /// For each shard behind the first, how many lanes belong to the shards before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<u32>,
}

impl ReductionPart {
    /// The lanes of a shard.
    #[must_use]
    pub fn lanes_of(&self, shard: usize) -> Range<u32> {
        let end = |shards: usize| self.cuts.get(shards).copied().unwrap_or(self.lanes);
        shard.checked_sub(1).map_or(0, end)..end(shard)
    }
}

/// A sum over all rows of a minibatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reduction {
    /// The gradient store.
    pub store: StoreId,
    /// The terms.
    pub sum: ReductionSum,
    /// The rows, in the order of the sum.
    pub parts: Vec<ReductionPart>,
}

impl ReductionSum {
    /// The rows and columns that it adds to in a store.
    #[must_use]
    pub fn block(&self, stores: &[Store], store: StoreId) -> [Range<u64>; 2] {
        match *self {
            Self::Wgrad { row, col, k, n } => {
                let range = |start: u32, len: u32| u64::from(start)..u64::from(start) + u64::from(len);
                [range(row, k), range(col, n)]
            }
            Self::Colsum | Self::Tgrad | Self::Lgrad => {
                let shape = stores[store.index()].ty.shape;
                [0..shape.rows() as u64, 0..shape.width() as u64]
            }
        }
    }
}

impl Reduction {
    /// The rows and columns of its store that it adds to.
    #[must_use]
    pub fn block(&self, plan: &Plan) -> [Range<u64>; 2] {
        self.sum.block(&plan.stores, self.store)
    }

    /// Whether two reductions add to a common element.
    #[must_use]
    pub fn overlaps(&self, plan: &Plan, other: &Self) -> bool {
        let share = |(a, b): (Range<u64>, Range<u64>)| a.start < b.end && b.start < a.end;
        self.store == other.store && self.block(plan).into_iter().zip(other.block(plan)).all(share)
    }
}

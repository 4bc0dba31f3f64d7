//! Reductions: sums over all rows of a minibatch, executed after the last step.
//!
//! A final adds to a *gradient store*, which holds `+0` before the first final. Its parts say which
//! rows it takes, and the order of the sum is theirs: parts in order, lanes ascending, rows of a
//! lane ascending. Two reductions of one store are executed in the order listed; each goes on from what
//! the ones before it left. So the bits of a gradient are a function of the plan and of the rows,
//! whatever tiles and threads a runtime cuts the *store* into: no sum is ever cut.
//!
//! Gradients of tables are dense. A runtime that keeps sparse rows only gives the same bits for
//! those rows if it takes the parts stably sorted by index, because rows of a table do not meet.

use super::{Operand, StoreId};
use serde::{Deserialize, Serialize};

/// What a final adds, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReductionSum {
    /// `d[row + k][col + n] = fma(x[k], dy[n], d[row + k][col + n])` for the rows of `x` and `dy`.
    ///
    /// Of a weight that is stored transposed, `x` is what came back from the results and `dy` what
    /// went in: a product of two numbers has no order.
    Wgrad {
        /// The first row of the block.
        row: u32,
        /// The first column of the block.
        col: u32,
        /// The width of a row of `x`: rows of the block.
        k: u32,
        /// The width of a row of `dy`: columns of the block.
        n: u32,
    },
    /// `d = d + dy`, where a row of `dy` is as long as the store.
    Colsum,
    /// `d[x] = d[x] + dy`, where `x` is one index and `dy` as long as a row of the store. An index
    /// past the end is cut to the last, as lookups do.
    Tgrad,
}

/// Rows that a final takes: one lane after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReductionPart {
    /// How many lanes.
    pub lanes: u32,
    /// How many rows of the sum each lane holds: those of a matrix value.
    pub each: u32,
    /// What entered the product, or the index of a table's row; none where `dy` alone is summed.
    pub x: Option<Operand>,
    /// What came back.
    pub dy: Operand,
}

/// A sum over all rows of a minibatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reduction {
    /// The gradient store that it adds to.
    pub store: StoreId,
    /// What it adds.
    pub sum: ReductionSum,
    /// The rows it takes, in the order of the sum.
    pub parts: Vec<ReductionPart>,
}

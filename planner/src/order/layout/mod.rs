//! Row layout: the place of every row in its slab, and the order of the lanes in every batch.
//!
//! A step reads an operand directly if its rows are consecutive and ascending in lane order; otherwise it reads them through a
//! table. The layout chooses both orders so that few rows need a table. It knows nothing of graphs: `order` translates batches
//! into a [`LayoutProblem`] and reads the [`RowLayout`] back.
//!
//! [`propagated_with`] makes one pass from the last batch to the first, in which producers take the order of their consumers.
//! Its cost is linear but for sorting. A search with PQ-trees over all batches was removed: it gathered 0 to 9 % fewer rows, took
//! 7 to 12 times as long to plan, and steps did not execute faster (`bench`, inference and training of sst, lattice and chars).

mod problem;
mod propagate;
mod readers;
#[cfg(test)]
mod tests;

pub(crate) use problem::{KnownSlot, LayoutError, LayoutProblem, Role};
pub(crate) use propagate::{Memory, RowLayout, batch_order, propagated, widest};

//! The compute kernels, compiled once per instruction set. All variants of a kernel compute the same bits.
//!
//! * [`Isa`] selects the instruction set.
//! * [`PackedWeights`] holds weights in panels. They are packed once per version of a parameter.
//! * [`Product`] multiplies rows by packed weights. Rows come from ranges, tables, shared rows or several parts.
//! * [`WeightGrad`], [`ShardedWeightGrad`] and [`column_sums`] compute the gradients of weights and biases.
//! * [`multiply`] computes the product of two instance values.
//! * [`peak_flops`] measures the arithmetic peak of a core.
//!
//! Safe functions check every access against the lengths of their slices, once, before their loops. The `_unchecked`
//! functions leave that proof to the caller; the executor has it from the plan verifier.

mod attention;
pub mod elementwise;
mod error;
pub(crate) mod fused_update;
mod gathered_fold;
mod graph_attention;
mod isa;
mod kernel_set;
mod label_loss;
mod lanes;
pub mod list_gradients;
pub mod lists;
mod memory;
mod multiply;
mod pack;
mod peak;
mod product;
mod rows;
pub mod rowwise;
mod runs;
mod sharded_wgrad;
mod table_sum;
#[cfg(test)]
mod tests;
mod tile;
mod wgrad;

pub(crate) use attention::{
    Attention, AttentionGradient, AttentionPull, AttentionSpace, PackedLists, StageSpace, Strided,
    StridedMut, attend_unchecked,
};
pub use error::KernelError;
pub(crate) use gathered_fold::{GatheredFold, GatheredFoldFn, gathered_fold};
pub(crate) use graph_attention::{Attending, GraphAttention, GraphSpace};
pub use isa::{ISA_VARIABLE, Isa, IsaError};
pub(crate) use label_loss::{LabelGradient, LabelLosses, LabelResults, LabelSpace};
pub use memory::Scratch;
pub(crate) use memory::{Aligned, GradientRows, prefetch};
pub(crate) use multiply::PRODUCT_SCRATCH_FLOATS;
pub use multiply::{multiply, multiply_unchecked};
pub use pack::{Matrix, PackedWeights};
pub use peak::peak_flops;
pub use product::{Product, RowsPart, Start};
pub use rows::{RowNumbers, Rows, RowsMut};
pub use runs::RowsRun;
pub use sharded_wgrad::ShardedWeightGrad;
pub(crate) use table_sum::{ShardedTableSum, TableAddend, TableSum};
pub(crate) use wgrad::CHAIN_ROWS;
pub(crate) use wgrad::GRADIENT_SCRATCH_FLOATS;
pub use wgrad::{WeightGrad, column_sums};

//! The kernels that products stand on, with one twin for each instruction set and the same bits from all of them.
//!
//! * [`Isa`]: which twin runs.
//! * [`PackedWeights`]: weights in panels, packed once for each version of a parameter.
//! * [`Product`]: rows (ranges, tables, shared rows, several parts) times packed weights.
//! * [`WeightGrad`], [`column_sums`]: gradients of weights and biases.
//! * [`multiply`]: the product of two instance values.
//! * [`peak_flops`]: what a core can do at most.
//!
//! Safe functions prove every access from the lengths of their slices, once, before their loops. The `_unchecked` forms leave the proof to
//! the caller: an executor of verified plans has it.

pub mod elementwise;
mod error;
mod isa;
mod lanes;
pub(crate) mod line;
pub mod list_gradients;
pub mod lists;
mod memory;
mod multiply;
mod pack;
mod peak;
mod product;
mod rows;
pub mod rowwise;
mod table_sum;
mod tile;
mod twins;
mod wgrad;

pub use error::KernelError;
pub use isa::{ISA_VARIABLE, Isa, IsaError};
pub use memory::Scratch;
pub(crate) use memory::{Aligned, prefetch};
pub use multiply::{multiply, multiply_unchecked};
pub use pack::{Matrix, PackedWeights};
pub use peak::peak_flops;
pub use product::{Part, Product, Start};
pub use rows::{RowNumbers, Rows, RowsMut};
pub use table_sum::TableSum;
pub(crate) use table_sum::add_row_unchecked;
pub use wgrad::{Run, WeightGrad, column_sums, column_sums_unchecked};

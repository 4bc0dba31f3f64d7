//! Tests of the kernels that need crate-private access or run under Miri with `--lib`.

mod attention;
mod elementwise;
mod gathered_fold;
mod isa;
mod label_loss;
mod list_gradients;
mod lists;
mod memory;
mod peak;
mod rowwise;
mod wgrad;

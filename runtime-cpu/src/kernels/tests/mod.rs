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

/// All sizes of a test. Under Miri, which is thousands of times as slow as compiled code, only the first `interpreted` ones.
fn sizes<T>(all: impl IntoIterator<Item = T>, interpreted: usize) -> impl Iterator<Item = T> {
    all.into_iter().take(if cfg!(miri) { interpreted } else { usize::MAX })
}

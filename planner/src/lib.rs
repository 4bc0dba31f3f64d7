//! Compiles a recorded graph into a short plan of large kernels.

mod compile;
pub mod layout;
pub mod schedule;

pub use compile::CompileOptions;

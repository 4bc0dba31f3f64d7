//! Compiles a recorded graph into a short plan of large kernels.

mod compile;

pub use compile::CompileOptions;

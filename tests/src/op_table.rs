//! x
mod kind;
pub use kind::Kind;

//! The Graph language: what a model emits.
//!
//! A graph is a flat, append-only list of nodes of ops and cells, recorded for many
//! instances. Structure (callees, operands, attributes, instance cuts, outputs) and bindings
//! (tokens, labels, float inputs) are apart: the structural hash, grown while emitting, covers the
//! former only, and equal structure means equal plans.

/// The version of the graph format: text, JSON and binary files of graphs and modules.
pub(crate) const FORMAT_VERSION: u32 = 2;

mod arena;
mod args;
mod bindings;
mod data;
mod dot;
pub(crate) mod emit;
mod error;
pub mod infer;
mod json;
mod op;
pub mod petgraph;
pub mod rebuild;
pub(crate) mod record;
pub mod signature;
mod site;
mod summary;
pub mod text;
mod value;
pub mod verify;
mod wait;

#[cfg(test)]
mod tests;

pub use arena::{Arena, Node, Operand, OperandKind};
pub use args::{Arg, Args};
pub use bindings::Bindings;
pub use data::{Cut, GraphData, Output, OutputKind};
pub use emit::Graph;
pub use error::{EmitError, Fault};
pub use op::{Arity, Binary, Compare, Float, Fold, ListFold, Op, Over, Permutation, Unary};
pub use petgraph::NodeGraph;
pub use signature::{Callee, ParamArg, Signature, Signatures};
pub use site::{Site, Sites};
pub use text::ParseError;
pub use value::{Value, ValueKey};
pub use verify::VerifyErrors;
pub use wait::Waiting;

//! The graph language: the intermediate representation that a model emits.
//!
//! A graph is a flat, append-only list of nodes for many instances. A node applies an op or a cell. A graph separates its
//! structure from its bindings. The structure is callees, operands, attributes, instance cuts and outputs. The bindings are
//! tokens, labels and float inputs. The emitter hashes the structure only, so graphs with equal structure share a plan.

mod arena;
mod args;
mod bindings;
mod data;
mod dot;
pub(crate) mod emit;
mod error;
mod frontend;
pub mod infer;
mod json;
mod lists;
mod op;
mod outputs;
mod petgraph;
pub mod rebuild;
pub(crate) mod record;
pub mod signature;
mod site;
mod summary;
mod template;
pub mod text;
mod value;
pub mod verify;
mod wait;

#[cfg(test)]
mod tests;

/// The version of the graph format: text, JSON and binary files of graphs and modules.
pub(crate) const FORMAT_VERSION: u32 = 2;

pub use arena::{Arena, Node, Operand, OperandKind};
pub use args::{Arg, Args, IntoArg};
pub use bindings::Bindings;
pub use data::{Cut, GraphData, Output, OutputKind};
pub use emit::Graph;
pub use error::{EmitError, Fault};
pub use lists::Lineage;
pub use op::{Arity, Binary, Compare, Float, Fold, ListFold, Op, Over, Permutation, Unary};
pub use signature::{Callee, ParamArg, Signature, Signatures};
pub use site::{Site, Sites};
pub use template::Template;
pub use text::ParseError;
pub use value::{Value, ValueKey, Values};
pub use verify::VerifyErrors;
pub use wait::Waiting;

//! The two languages of autobatch and everything that defines their meaning.
//!
//! * [`graph`]: what a model emits. A flat, append-only list of *nodes* of ops and cells,
//!   recorded for many differently shaped instances.
//! * [`module`]: what graphs share: parameters, tables and traced cells.
//! * [`findings`]: what the verifiers of both languages find.
//! * [`codec`]: binary files of both, for which any bytes are good enough to be refused politely.
//! * [`files`]: how a file is written so that it is whole at every moment.
//! * [`numeric`]: the definition of every op's bits.
//! * [`weights`]: the values of a module's parameters.
//! * [`recipe`], [`states`]: what an optimiser is made of, and what it keeps.
//!
//! Data flows one way: a model emits a graph through [`Graph`] and [`Value`] handles; the planner
//! turns the recorded [`GraphData`] into a plan; a runtime executes it. Nothing in this crate knows
//! the planner or a runtime.

#![forbid(unsafe_code)]

pub mod codec;
pub mod files;
pub mod findings;
pub mod graph;
pub mod hash;
pub mod id;
pub mod intern;
pub mod module;
pub mod numeric;
pub mod plan;
pub mod recipe;
mod shape;
pub mod states;
pub mod types;
pub mod weights;

pub use codec::LoadError;
pub use graph::{Arg, Args, EmitError, Graph, GraphData, Op, Value, ValueKey};
pub use id::{CellId, NodeId, ParamId, SigId, SiteId, TypeId, ValueId};
pub use module::{Cell, CellOfAny, Init, Module, ModuleBuilder, Param, Table};
pub use recipe::UpdateRecipe;
pub use states::States;
pub use types::{DType, INDEX, Shape, Type, f32, list};
pub use weights::Weights;

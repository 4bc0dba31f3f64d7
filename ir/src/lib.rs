//! The two languages of autobatch, graphs and plans, and the definitions that give them meaning.
//!
//! * [`graph`]: the output of a model. A flat, append-only list of *nodes* (ops and cell calls),
//!   recorded for many differently shaped instances.
//! * [`module`]: the part that graphs share: parameters, tables and traced cells.
//! * [`findings`]: the errors that the verifiers of both languages report.
//! * [`codec`]: the binary files of both languages. Any input either loads or returns an error.
//! * [`report`]: the text of an error with its sources.
//! * [`files`]: bounded reads and atomic writes of files.
//! * [`numeric`]: the definition of every op's bits.
//! * [`weights`]: the values of a module's parameters.
//! * [`recipe`], [`states`]: the cells of an optimiser, and the state it stores between updates.
//!
//! Data flows one way. A model emits a graph through [`Graph`] and [`Value`] handles, the planner turns the recorded
//! [`GraphData`] into a plan, and a runtime executes the plan. This crate does not depend on the planner or on a runtime.

#![forbid(unsafe_code)]

pub mod codec;
pub mod files;
pub mod findings;
mod getters;
pub mod graph;
pub mod hash;
pub mod id;
pub mod intern;
pub mod module;
pub mod numeric;
pub mod plan;
pub mod printable;
pub mod recipe;
pub mod report;
mod shape;
pub mod states;
pub mod types;
pub mod weights;

pub use codec::LoadError;
pub use graph::{Arg, Args, EmitError, Graph, GraphData, IntoArg, Op, Value, ValueKey};
pub use id::{CellId, NodeId, ParamId, SigId, SiteId, TypeId, ValueId};
pub use module::{Cell, CellOfAny, Init, Module, ModuleBuilder, Param, Table};
pub use recipe::UpdateRecipe;
pub use states::States;
pub use types::{DType, INDEX, Shape, Type, f32, list};
pub use weights::Weights;

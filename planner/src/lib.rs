//! Compiles a recorded graph into a short plan of large kernels.
//!
//! ```text
//! GraphData ─▶ rewrite ─▶ GraphData ─▶ cluster ▸ kernels ▸ schedule ▸ storage ▸ order ▸ lower ▸ differentiate ─▶ Plan
//! ```
//! [`Planner::plan`] runs the stages from `cluster` on. [`Planner::optimize_and_plan`] first runs the graph passes of
//! `rewrite`, which [`passes`] lists. Each stage is a folder whose module documentation states the contract of the
//! stage; [`stages`] lists the stages. Planning is pure and deterministic: equal graphs, requests and policies give
//! equal plans, byte by byte. Planning a verified graph fails only for the reasons that [`PlanError`] lists.

mod certificate;
mod cluster;
mod context;
mod differentiate;
mod error;
mod existing;
mod grow;
mod ids;
mod index_vec;
mod jobs;
mod kernels;
mod lists;
mod lower;
mod order;
mod pipeline;
mod plan_buffers;
mod plan_cache;
mod planner;
mod request;
mod rewrite;
pub mod schedule;
mod spelling;
mod stage;
mod steps;
mod storage;
mod update;

pub use error::PlanError;
pub use grow::{Delta, Grown};
pub use ids::{JobId, RowId, TypeIndex, WaveId};
pub use jobs::Jobs;
pub use kernels::{ClassWork, CompileOptions, Work};
pub use pipeline::stages;
pub use plan_cache::{CacheStats, PlanCache, PolicyId};
pub use planner::{Planned, Planner};
pub use request::{Gradients, Request, RowOrder};
pub use rewrite::passes::{self, Optimized, Selection};
pub use schedule::{Class, ClassCost, ClassCosts, CostError, CostTable, StepCost};
pub use stage::{Stage, StageDump};
pub use update::update_plan;

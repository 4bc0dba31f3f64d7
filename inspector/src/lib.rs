//! Shows and explains graphs and plans: pictures, descriptions of steps, lifetimes of rows, and why two values share a batch
//! or do not.
//!
//! The command line uses these answers. The crate reads no files, except those
//! that a policy names.

#![forbid(unsafe_code)]

pub mod lifetimes;
mod load;
pub mod names;
pub mod page;
pub mod picture;
mod refused;
pub mod steps;
pub mod text;
pub mod why;

pub use load::{Loaded, load, plan_json};
pub use refused::{Cause, Refused};

use autobatch_ir::graph::{GraphData, OutputKind};
use autobatch_ir::id::ValueId;
use autobatch_ir::plan::Mode;
use autobatch_planner::schedule::{LoadError, Policy, Schedule};

/// Returns the losses that a plan of a mode differentiates, each with its share of their mean; none but for training.
#[must_use]
pub fn losses(graph: &GraphData, mode: Mode) -> Vec<(ValueId, f32)> {
    let is_loss = |kind: OutputKind| mode == Mode::Train && kind == OutputKind::Loss;
    let values: Vec<ValueId> =
        graph.outputs.iter().filter(|output| is_loss(output.kind)).map(|output| output.value).collect();
    let share = 1.0 / values.len().max(1) as f32;
    values.into_iter().map(|value| (value, share)).collect()
}

/// Loads a policy with its table or costs.
///
/// # Errors
/// If the file of the table or of the costs cannot be read or is malformed.
pub fn load_policy(policy: &Policy) -> Result<Box<dyn Schedule + Send + Sync>, Refused> {
    policy.load().map_err(|error| {
        let help = match error {
            LoadError::Read { .. } | LoadError::Table { .. } => {
                "make a table: autobatch fsm-train GRAPH... -o table.json"
            }
            LoadError::Costs(_) => {
                "AUTOBATCH_COSTS names this file; without the variable, policy auto uses the default costs"
            }
        };
        Refused::file(error.to_string()).help(help)
    })
}

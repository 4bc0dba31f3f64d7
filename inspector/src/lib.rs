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

use autobatch_planner::schedule::{LoadError, Policy, Schedule};

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

//! Options of planning, shared by the verbs that plan a graph.

use super::values::policy;
use crate::failure::Failure;
use crate::planning::PlanOptions;
use autobatch_ir::plan::Mode;
use autobatch_planner::RowOrder;
use autobatch_planner::schedule::Policy;
use clap::{Args, ValueEnum};

/// Options of planning. `None` means that the option was not given.
#[derive(Args, Debug, Default)]
pub struct PlanningArgs {
    /// Batching policy: none, depth, agenda, agenda:remaining, ratio, beam:8, fsm:FILE, auto [default: auto].
    #[arg(long, value_parser = policy(), hide_possible_values = true)]
    pub policy: Option<Policy>,
    /// Order of rows in memory [default: propagated].
    #[arg(long, value_enum)]
    pub rows: Option<Rows>,
    /// Whether the plan is for inference or for training [default: infer].
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
}

impl PlanningArgs {
    /// The options for the planner, with defaults.
    #[must_use]
    pub fn options(&self) -> PlanOptions {
        let rows = match self.rows.unwrap_or_default() {
            Rows::Batch => RowOrder::Batch,
            Rows::Propagated => RowOrder::Propagated,
        };
        let mode = match self.mode.unwrap_or_default() {
            ModeArg::Infer => Mode::Infer,
            ModeArg::Train => Mode::Train,
        };
        PlanOptions { policy: self.policy.clone().unwrap_or_default(), rows, mode }
    }

    /// Rejects options of planning for a verb that plans nothing, for the given reason.
    pub fn reject_if_given(&self, reason: &str) -> Result<(), Failure> {
        let given = [
            ("--policy", self.policy.is_some()),
            ("--rows", self.rows.is_some()),
            ("--mode", self.mode.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                Err(Failure::usage(format!("{option} is an option of planning, but {reason}"))
                    .help(format!("remove {option}")))
            }
            None => Ok(()),
        }
    }
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Rows {
    /// In the order of emission.
    Batch,
    /// In the order in which later steps read them, for fewer gathered operands.
    #[default]
    Propagated,
}

/// The purpose of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// Computes outputs only and reuses rows.
    #[default]
    Infer,
    /// Keeps every row, and computes the gradients of the losses that `emit --loss` writes.
    Train,
}

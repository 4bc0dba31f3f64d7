//! Errors of planning.

use crate::rewrite::passes;
use crate::schedule::ScheduleError;
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::plan::Mode;
use std::fmt;

/// Why a verified graph has no plan: the request, a promise of the model, a policy or a pass is at fault.
#[derive(Clone, PartialEq, Eq)]
pub enum PlanError {
    /// The graph has no outputs and the request wants no values.
    NothingWanted,
    /// The graph has no such value.
    NoValue(ValueId),
    /// A wanted value is a list, which has no storage.
    WantedList {
        /// The list.
        value: ValueId,
        /// Where the model makes it. Graphs from files may not say.
        site: Option<String>,
    },
    /// The graph holds more rows than a plan can number.
    TooLarge,
    /// A check after a pass found that the pass broke the graph.
    Pass(passes::PassFailure),
    /// A policy of the caller returned a schedule that breaks a rule of batches.
    Schedule {
        /// The name of the policy.
        policy: String,
        /// The rule that it breaks.
        error: ScheduleError,
    },
    /// The request has gradients in a mode that does not keep rows.
    NotTraining(Mode),
    /// A loss, or a value whose gradient is wanted, is not a float value of the graph.
    NoFloat(ValueId),
    /// The gradient of a value arrives at a pause, but the value cannot be read there.
    Arriving(ValueId),
    /// The shards of the request do not ascend.
    Shards,
    /// The request wants the gradient of a parameter that the module does not have.
    NoParam(ParamId),
    /// An op between a loss and a parameter has no derivative rule in plans.
    NotDifferentiable {
        /// The op.
        op: &'static str,
        /// Where the model calls the op, or the cell with the op.
        site: String,
    },
    /// Some rows of a batch read a shared value and others do not.
    NotShared {
        /// The value with `.shared()`.
        value: ValueId,
        /// The value that another row of the batch reads instead, if it reads a value.
        other: Option<ValueId>,
        /// The callee of the batch.
        callee: String,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingWanted => {
                f.write_str("the graph has no outputs; name one with g.output(name, value)")
            }
            Self::NoValue(value) => {
                write!(f, "the graph has no value {value}; ask for values of the graph itself")
            }
            Self::WantedList { value, site } => {
                write!(f, "{value}")?;
                if let Some(site) = site {
                    write!(f, " of {site}")?;
                }
                f.write_str(" is a list; ask for its elements or a fold of it")
            }
            Self::TooLarge => {
                f.write_str("the graph holds more than 2^31 rows; plan fewer instances at once")
            }
            Self::Pass(failure) => failure.fmt(f),
            Self::Schedule { policy, error } => {
                write!(f, "policy {policy} returned an invalid schedule: {error}")
            }
            Self::NotTraining(mode) => {
                write!(f, "gradients need a plan of mode train, found {mode:?}; ask for Mode::Train")
            }
            Self::NoFloat(value) => {
                write!(f, "{value} is not a float value; losses and values with gradients must be")
            }
            Self::Arriving(value) => write!(
                f,
                "the gradient of {value} arrives at the pause, so the request must want the value once, with gradients"
            ),
            Self::Shards => {
                f.write_str("the shards of the request do not ascend; each must begin at a node behind the first of the one before")
            }
            Self::NoParam(param) => write!(f, "the module has no parameter {param}"),
            Self::NotDifferentiable { op, site } => write!(
                f,
                "{op} at {site} has no derivative in plans if one of its lists comes through a port and another is made in the cell; \
                 pass all its lists through ports, make all of them in the cell, or put stop_gradient after it"
            ),
            Self::NotShared { value, other, callee } => {
                write!(f, "{value} is shared, but a batch of {callee} also reads ")?;
                match other {
                    Some(other) => write!(f, "{other}")?,
                    None => f.write_str("a binding")?,
                }
                f.write_str("; remove .shared(), or separate the others with .alone()")
            }
        }
    }
}

impl std::error::Error for PlanError {}

autobatch_ir::debug_as_display!(PlanError);

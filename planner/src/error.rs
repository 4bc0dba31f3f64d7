//! Why a graph has no plan. A verified graph has one, unless what is asked of it cannot be.

use crate::passes;
use crate::schedule::ScheduleError;
use autobatch_ir::id::{ParamId, ValueId};
use autobatch_ir::plan::Mode;
use std::fmt;

/// Why a graph has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// Nothing is wanted: the graph has no outputs and the request names no values.
    NothingWanted,
    /// A wanted value is none of the graph.
    NoValue(ValueId),
    /// A wanted value is a list, which has no storage.
    WantedList(ValueId),
    /// The graph holds more rows than a plan can number.
    TooLarge,
    /// A pass broke the graph: a fault of the pass, found by checking after it.
    Pass(passes::PassFailure),
    /// A policy of the caller's gave an order that breaks a rule of batches.
    Schedule {
        /// The name of the policy.
        policy: String,
        /// What is wrong with its order.
        error: ScheduleError,
    },
    /// Gradients are asked of a plan that does not keep its rows.
    NotTraining(Mode),
    /// A loss, or a value whose gradient is wanted, is no float value of the graph.
    NoFloat(ValueId),
    /// The gradient of a parameter is wanted that the module does not have.
    NoParam(ParamId),
    /// An op on the way from a loss has no derivative rule in plans.
    NotDifferentiable {
        /// The op.
        op: &'static str,
        /// Where the model applied it, or the cell that does.
        site: String,
    },
    /// A value that was promised to be shared is not taken by all rows of a batch that takes it.
    NotShared {
        /// The value that `.shared()` was asked for.
        value: ValueId,
        /// What another row of the batch takes in its place, if it takes a value.
        other: Option<ValueId>,
        /// What the batch applies.
        callee: String,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingWanted => {
                f.write_str("nothing is wanted: name an output with g.output(name, value)")
            }
            Self::NoValue(value) => {
                write!(f, "the graph has no value {value}; ask for values of the graph itself")
            }
            Self::WantedList(value) => write!(f, "{value} is a list; ask for its elements or a fold of it"),
            Self::TooLarge => {
                f.write_str("the graph holds more than 2^31 rows; plan fewer instances at once")
            }
            Self::Pass(failure) => failure.fmt(f),
            Self::Schedule { policy, error } => write!(f, "the order of policy {policy}: {error}"),
            Self::NotTraining(mode) => {
                write!(f, "gradients need a plan of mode train, found {mode:?}; ask for Mode::Train")
            }
            Self::NoFloat(value) => {
                write!(f, "{value} is no float value of the graph; losses and values with gradients are")
            }
            Self::NoParam(param) => write!(f, "the module has no parameter {param}"),
            Self::NotDifferentiable { op, site } => write!(
                f,
                "{op} at {site} has no derivative in plans where one list comes through a port and another is made in the cell; hand all its lists in through ports, make all of them in the cell, or put stop_gradient after it"
            ),
            Self::NotShared { value, other, callee } => {
                write!(f, "{value} was promised to be shared, but a batch of {callee} takes ")?;
                match other {
                    Some(other) => write!(f, "{other} as well")?,
                    None => f.write_str("a bound number as well")?,
                }
                f.write_str("; drop .shared(), or keep the others apart with .alone()")
            }
        }
    }
}

impl std::error::Error for PlanError {}

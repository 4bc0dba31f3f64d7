//! What can go wrong in training beside what can go wrong in executing.

use autobatch_ir::Type;
use autobatch_ir::graph::Site;
use std::fmt;

/// Why a step was not made. Parameters are as before the step, unless the trainer went back.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrainError {
    /// The minibatch has no items.
    Empty,
    /// No parameter is trained.
    NothingToTrain {
        /// How many parameters the module has; all are frozen.
        frozen: usize,
    },
    /// A name to freeze is no parameter and no layer.
    NoParam(
        /// The name.
        String,
    ),
    /// A loss is no single number.
    NoScalar {
        /// The item, unless the step was emitted freely.
        item: Option<usize>,
        /// What it is instead.
        found: Type,
    },
    /// A loss is not finite.
    NotFinite {
        /// The step, from 0.
        step: u64,
        /// The first such item, unless the step was emitted freely.
        item: Option<usize>,
        /// The loss.
        loss: f32,
    },
    /// A learning rate, or what the optimiser makes of it, is not finite: parameters would not be either.
    Numbers {
        /// The update, from 0, as schedules count.
        update: u64,
        /// Its learning rate.
        learning_rate: f64,
    },
    /// The device was lost, and with it the updates that were not read back: parameters, the optimiser's
    /// state, steps and progress are those of an earlier step.
    WentBack {
        /// How many steps were made when it was lost.
        from: u64,
        /// How many steps the trainer has made now.
        to: u64,
        /// What was said.
        reason: String,
    },
    /// A bound index is out of range: a label, say, or a word.
    Index {
        /// The item that bound it; `None` for what is common to all.
        item: Option<u64>,
        /// Whether it is an item of a minibatch; otherwise it is one of those that were evaluated or predicted, or an
        /// instance by its key.
        of_minibatch: bool,
        /// The line that bound it.
        site: Site,
        /// The index.
        found: u32,
        /// How many values it may take.
        limit: u32,
    },
}

impl fmt::Display for TrainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let item = |f: &mut fmt::Formatter<'_>, item: Option<u64>| match item {
            Some(item) => write!(f, "item {item} of the minibatch: "),
            None => Ok(()),
        };
        match self {
            Self::Empty => f.write_str("the minibatch has no items; leave empty ones out"),
            Self::NothingToTrain { frozen: 0 } => {
                f.write_str("the module has no parameters to train; use a Session")
            }
            Self::NothingToTrain { frozen } => {
                write!(f, "all {frozen} parameters are frozen, nothing is left to train; freeze fewer")
            }
            Self::NoParam(name) => {
                write!(
                    f,
                    "expected a parameter or a layer of the module, found {name:?}; give a declared name"
                )
            }
            Self::NoScalar { item: number, found } => {
                item(f, number.map(|number| number as u64))?;
                write!(f, "a loss is a scalar f32, found {found}; sum or average it")
            }
            Self::NotFinite { step, item: number, loss } => {
                write!(f, "step {step}: ")?;
                item(f, number.map(|number| number as u64))?;
                write!(
                    f,
                    "expected a finite loss, found {loss}; take smaller steps, clip gradients, or watch with Session::set_watch"
                )
            }
            Self::Numbers { update, learning_rate } if learning_rate.is_finite() => write!(
                f,
                "update {update}: the learning rate is {learning_rate:?}, and what the optimiser makes of it is not finite; take smaller rates, and betas below 1"
            ),
            Self::Numbers { update, learning_rate } => write!(
                f,
                "update {update}: expected a finite learning rate, found {learning_rate}; schedules count updates from 0, where theirs must be a number too"
            ),
            Self::WentBack { from, to, reason } => write!(
                f,
                "{reason}\nthe trainer went back from step {from} to step {to}, the last that was read back; go on from its progress, and save or ask for Trainer::mirror_every to lose less"
            ),
            Self::Index { item: number, of_minibatch, site, found, limit } => {
                match number {
                    Some(number) if !of_minibatch => write!(f, "item {number}: ")?,
                    _ => item(f, *number)?,
                }
                write!(f, "index {found} bound at {site} is out of range, it must be below {limit}")
            }
        }
    }
}

impl std::error::Error for TrainError {}

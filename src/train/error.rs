//! Errors of training, besides those of execution.

use autobatch_ir::Type;
use autobatch_ir::graph::Site;
use std::fmt;

/// The reason why a step failed. The parameters equal those before the step, unless the trainer went back.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum TrainError {
    /// The minibatch has no items.
    Empty,
    /// No parameter is trained.
    NothingToTrain {
        /// The number of parameters of the module; all are frozen.
        frozen: usize,
    },
    /// A name to freeze is neither a parameter nor a layer.
    NoParam(
        /// The name.
        String,
    ),
    /// A loss is not a scalar.
    NoScalar {
        /// The item; `None` for a loss that is not one of several.
        item: Option<usize>,
        /// The type of the loss.
        found: Type,
    },
    /// The weights of the items do not have a positive, finite sum.
    Weights {
        /// The sum.
        sum: f64,
    },
    /// A loss is not finite.
    NotFinite {
        /// The step, from 0.
        step: u64,
        /// The first such item, or the number of the loss in the graph of the caller.
        item: usize,
        /// The loss.
        loss: f32,
    },
    /// A learning rate, or a number that the optimiser derives from it, is not finite.
    Numbers {
        /// The update, from 0, as schedules count.
        update: u64,
        /// The learning rate.
        learning_rate: f64,
    },
    /// A trainer over shards was asked for a step that has no items to cut into shards.
    NoShards {
        /// The method.
        method: &'static str,
    },
    /// A step over shards of a trainer without shards.
    NotSharded,
    /// A graph of a step over shards has more or fewer losses than items.
    Losses {
        /// The number of items.
        expected: usize,
        /// The number of losses.
        found: usize,
    },
    /// A trainer over shards is on another device than the CPU.
    ShardsElsewhere,
    /// The step failed on another rank, so it failed on all ranks.
    OtherRank {
        /// The first rank that failed.
        rank: usize,
        /// Its message.
        message: String,
    },
    /// The device was lost with updates that the host had not read. Parameters, optimiser states, steps and
    /// progress are those of an earlier step.
    WentBack {
        /// The number of steps before the loss.
        from: u64,
        /// The number of steps now.
        to: u64,
        /// The message of the device.
        reason: String,
    },
    /// The gradient of a parameter has a NaN or an infinity, although the losses are finite.
    Gradient {
        /// The number of the step.
        step: u64,
        /// The name of the parameter.
        param: String,
    },
    /// An index is out of range, for example a label or a word.
    Index {
        /// The item whose code gave it; `None` for code common to all items.
        item: Option<u64>,
        /// Whether the item belongs to a minibatch. Otherwise it is an item of an evaluation or prediction, or an
        /// instance by its key.
        of_minibatch: bool,
        /// Whether the plan computed the index. Otherwise it is bound.
        computed: bool,
        /// The line that bound it, or that uses a computed one.
        site: Site,
        /// The index.
        found: u32,
        /// The number of values it may take.
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
                write!(f, "all {frozen} parameters are frozen, so there is nothing to train; freeze fewer")
            }
            Self::NoParam(name) => {
                write!(
                    f,
                    "expected a parameter or a layer of the module, found {name:?}; give a declared name"
                )
            }
            Self::NoScalar { item: number, found } => {
                item(f, number.map(|number| number as u64))?;
                write!(
                    f,
                    "a loss is a scalar f32, found {found}; add .sum() or .mean() (the sum of a list has the type of its items)"
                )
            }
            Self::Weights { sum } => write!(
                f,
                "expected weights with a positive, finite sum, found {sum}; weigh each item by its number of tokens, and leave items without tokens out"
            ),
            Self::NotFinite { step, item, loss } => {
                write!(
                    f,
                    "step {step}: item {item} of the minibatch: expected a finite loss, found {loss}; take smaller steps, clip gradients, watch with Session::set_watch, or skip such minibatches with Trainer::skip_non_finite"
                )
            }
            Self::Gradient { step, param } => write!(
                f,
                "step {step}: expected finite gradients, found a NaN or an infinity in that of @{param}; the weights are unchanged. Guard roots, logarithms and divisions near zero (Session::set_watch finds the op), take smaller steps, or skip such minibatches with Trainer::skip_non_finite"
            ),
            Self::Numbers { update, learning_rate } if learning_rate.is_finite() => write!(
                f,
                "update {update}: the learning rate is {learning_rate:?}, and the optimiser derives a number from it that is not finite; use smaller rates, and betas below 1"
            ),
            Self::Numbers { update, learning_rate } => write!(
                f,
                "update {update}: expected a finite learning rate, found {learning_rate}; a schedule must return a number for every update from 0 on"
            ),
            Self::NoShards { method } => write!(
                f,
                "{method} has no items to cut into shards; use step or pass, or train without Trainer::shards and Trainer::group"
            ),
            Self::NotSharded => f.write_str(
                "the trainer has no shards; call Trainer::shards or Trainer::group before the first step",
            ),
            Self::Losses { expected, found } => {
                write!(f, "the next graph of the step has {expected} items, found {found} losses; emit one for each")
            }
            Self::ShardsElsewhere => f.write_str(
                "shards execute on the CPU only; move the trainer to Device::Cpu, or train without Trainer::shards and Trainer::group",
            ),
            Self::OtherRank { rank, message } => write!(f, "rank {rank}: {message}"),
            Self::WentBack { from, to, reason } => write!(
                f,
                "{reason}\nthe trainer went back from step {from} to step {to}, the last state that it had read from the device; continue from its progress, and use Trainer::mirror_every to lose less"
            ),
            Self::Index { item: number, of_minibatch, computed, site, found, limit } => {
                match number {
                    Some(number) if !of_minibatch => write!(f, "item {number}: ")?,
                    _ => item(f, *number)?,
                }
                let how = if *computed { "computed for" } else { "bound at" };
                write!(f, "index {found} {how} {site} is out of range, it must be below {limit}")
            }
        }
    }
}

impl std::error::Error for TrainError {}

autobatch_ir::debug_as_display!(TrainError);

//! Optimisers: rules that change parameters along their gradients, as cells that every runtime executes.
//!
//! A [`Rule`] ([`Sgd`], [`Momentum`], [`Adam`], ..) says what one update does to one element; an
//! [`Optimizer`] is a rule with what all rules share ([`Optimize`]): a [`Schedule`], clipping, weight
//! decay, moving averages. [`Optimizer::recipe`] traces cells, `planner::update_plan` compiles them
//! once, and each update binds a few floats ([`Optimizer::floats`]): a schedule never makes a plan.
//!
//! # What one update does to a parameter `w` with gradient `g`
//! 1. `g = g * factor`. The factor is the scale given to [`Optimizer::floats`] (one over the
//!    examples or minibatches that were summed up), and with
//!    [`clip_norm(c)`](Optimize::clip_norm) furthermore `min(1, c / (norm + 1e-6))`, where the norm is
//!    that of all scaled gradients together.
//! 2. With [`clip_value(c)`](Optimize::clip_value), `g` is cut to `-c..c`.
//! 3. Weight decay `d`, learning rate `lr` (for some parameters times a [factor](Optimize::rate)): coupled, `g = g + d * w`; decoupled, `w = w * (1 - lr * d)`.
//! 4. The rule, as its type says. What a rule keeps is *flushed*: a moment whose magnitude is below
//!    the smallest normal number becomes 0, by a select in the cell, so that moments of parameters
//!    without gradients do not decay into numbers that are slow to compute with.
//! 5. With [`average(decay)`](Optimize::average), `a = decay * a + (1 - decay) * w`, flushed.
//!
//! Everything is `f32`; numbers of an update (learning rates, bias corrections) are computed in `f64`
//! and rounded once.
//!
//! # Tables
//! All rows of a table are updated, unless [`sparse_rows`](Optimize::sparse_rows) is asked for: then
//! rows that no lookup of the minibatch named stay as they are, and so do their moments and averages.
//! For [`Sgd`] and [`Adagrad`] without weight decay that gives the same numbers; the others then
//! forget as often as a row is met and not as often as an update is made. Bias corrections count
//! updates either way.
//!
//! ```
//! use autobatch_ir::{Init, ModuleBuilder};
//! use autobatch_nn::optim::{Adam, Optimize, Schedule};
//!
//! # fn main() -> Result<(), autobatch_ir::EmitError> {
//! let mut m = ModuleBuilder::new("model");
//! m.param("w", [4, 2], Init::Glorot(1.0));
//! let module = m.build()?;
//! let optimizer = Adam::new(1e-3).clip_norm(5.0).schedule(Schedule::warm_up(100, Schedule::cosine(1000, 0.1)));
//! let recipe = optimizer.recipe(&module, &optimizer.all(&module))?;
//! assert_eq!(recipe.params[0].states.len(), 2);
//! assert_eq!(optimizer.floats(1, 1.0 / 32.0).len(), recipe.floats as usize);
//! # Ok(())
//! # }
//! ```

mod adam;
mod adaptive;
mod optimizer;
mod rule;
mod schedule;
mod sgd;

pub use adam::{Adam, AdamW, AmsGrad};
pub use adaptive::{Adadelta, Adagrad, RmsProp};
pub use optimizer::{Optimize, Optimizer};
pub use rule::{Element, Rule, WeightDecay, flushed};
pub use schedule::Schedule;
pub use sgd::{Momentum, Nesterov, Sgd};

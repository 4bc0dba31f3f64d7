//! Optimisers: update rules for parameters, expressed as cells that every runtime executes.
//!
//! A [`Rule`] ([`Sgd`], [`Momentum`], [`Adam`], ..) defines the update of one element. An [`Optimizer`]
//! combines a rule with the options of all rules ([`Optimize`]): a [`Schedule`], clipping, weight
//! decay, moving averages. [`Optimizer::recipe`] traces cells, and `planner::update_plan` compiles
//! them once. Each update binds a few floats ([`Optimizer::floats`]), so a schedule never needs a new
//! plan.
//!
//! # One update of a parameter `w` with gradient `g`
//! 1. `g = g * factor`. The factor is the scale given to [`Optimizer::floats`] (one over the number of
//!    examples or minibatches). [`clip_norm(c)`](Optimize::clip_norm) multiplies it by
//!    `min(1, c / (norm + 1e-6))`, where the norm is that of all scaled gradients together.
//! 2. [`clip_value(c)`](Optimize::clip_value) clamps `g` to `-c..c`.
//! 3. Weight decay `d`, with learning rate `lr` (for some parameters times a [factor](Optimize::rate)).
//!    Coupled: `g = g + d * w`. Decoupled: `w = w * (1 - lr * d)`.
//! 4. The rule, as its type documents. States are *flushed*: a select in the cell replaces a moment
//!    below the smallest normal number by 0. Otherwise the moments of parameters without gradients
//!    would decay to denormal numbers, which are slow.
//! 5. [`average(decay)`](Optimize::average): `a = decay * a + (1 - decay) * w`, flushed.
//!
//! All values are `f32`. The scalars of an update (learning rates, bias corrections) are computed in
//! `f64` and rounded once.
//!
//! # Tables
//! An update changes all rows of a table. With [`sparse_rows`](Optimize::sparse_rows) it changes only
//! the sparse rows: rows that a lookup of the minibatch names. All other rows keep their values,
//! moments and averages. For [`Sgd`] and [`Adagrad`] without weight decay both variants give the same
//! values. With other rules the moments of a row then decay once per lookup of the row instead of
//! once per update. Bias corrections always count updates.
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
pub use rule::{Argument, ArgumentRange, Element, Rule, WeightDecay, flushed};
pub use schedule::Schedule;
pub use sgd::{Momentum, Nesterov, Sgd};

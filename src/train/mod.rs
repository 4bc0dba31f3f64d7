//! Training: [`Trainer`] and its tools.
//!
//! A [`Trainer`] is a [`Session`](crate::Session) with an optimiser. [`Trainer::step`] emits a minibatch
//! on several threads, plans it with its reverse, executes both, and updates the parameters.
//! [`Trainer::evaluate`] executes without noise and measures with [`metrics`]. Minibatches come from
//! [`sampling`](crate::sampling).
//!
//! A step is a function of module, weights, states, seed, step number and minibatch. Noise is keyed by
//! the position in the minibatch and the step, so it differs between steps and repeats between runs. A
//! step checks losses and indices before it updates anything: a refused step leaves the weights
//! unchanged. The mean over items is a factor `1 / n` on each loss's gradient, not an op. Weights are
//! copied on write, so a program can keep an old version.
//!
//! A checkpoint holds everything that the next step depends on. A run that is killed and resumed ends
//! with the bits of an uninterrupted run.

mod arrays;
mod bar;
mod checkpoint;
mod checkpoint_error;
mod error;
mod files;
mod locate;
pub mod metrics;
mod minibatch;
mod part;
mod patience;
mod report;
mod trainer;
mod update;

pub use bar::Bar;
pub use checkpoint::{Progress, read_notes};
pub use checkpoint_error::CheckpointError;
pub use error::TrainError;
pub use files::{Matching, import_pytorch, read_matching_weights, read_weights, write_weights};
pub(crate) use locate::explained;
pub use minibatch::{IntoMinibatch, Minibatch};
pub use patience::{Patience, Verdict};
pub use report::{Evaluation, Step};
pub use trainer::{OpenStep, Pass, SetAside, ShardedStep, Trainer};

//! Training: [`Trainer`] and what stands around it.
//!
//! A [`Trainer`] is a [`Session`](crate::Session) with an optimiser. [`Trainer::step`] emits a
//! minibatch on several threads, plans it with its reverse, executes both, and updates the parameters;
//! [`Trainer::evaluate`] executes without noise and measures with [`metrics`]. Checkpoints hold all that
//! the next step depends on, so a run that is killed and resumed ends with the bits of one that was
//! not. Minibatches come from [`sampling`](crate::sampling).

mod arrays;
mod bar;
mod checkpoint;
mod error;
mod files;
mod locate;
pub mod metrics;
mod patience;
mod report;
mod trainer;
mod update;

pub use bar::Bar;
pub use checkpoint::{CheckpointError, Progress};
pub use error::TrainError;
pub use files::{Matching, read_matching_weights, read_weights, write_weights};
pub(crate) use locate::explained;
pub use patience::{Patience, Verdict};
pub use report::{Evaluation, Step};
pub use trainer::{Pass, Trainer};

//! The verbs. Each takes its options and a console, and answers.

mod check;
mod diff;
mod explain;
mod fsm;
mod house;
mod measure;
mod plan;
mod policies;
mod reduce;
mod show;

pub use check::check;
pub use diff::diff;
pub use explain::explain;
pub use fsm::fsm_train;
pub use house::{completions, devices, emit, passes};
pub use measure::{bench, calibrate, sweep};
pub use plan::plan;
pub use policies::policies;
pub use reduce::reduce;
pub use show::show;

//! The verbs. Each takes its options and a console, and answers.

mod check;
mod diff;
mod execute;
mod explain;
mod fsm;
mod gpu;
mod house;
mod measure;
mod plan;
mod policies;
mod reduce;
mod run;
mod show;
mod train;

pub use check::check;
pub use diff::diff;
pub use execute::execute;
pub use explain::explain;
pub use fsm::fsm_train;
pub use gpu::doctor;
pub use house::{completions, devices, emit, passes};
pub use measure::{bench, calibrate, sweep};
pub use plan::plan;
pub use policies::policies;
pub use reduce::reduce;
pub use run::run;
pub use show::show;
pub use train::train;

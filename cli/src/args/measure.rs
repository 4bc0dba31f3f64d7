//! Options of the verbs that measure.

use super::{path, values};
use clap::Args;

/// Options of `sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// The model.
    #[arg(value_parser = values::model())]
    pub model: String,
    /// The instances, sizes and rounds of the measurement.
    #[command(flatten)]
    pub step: autobatch_bench::StepArgs,
    /// Output file for the picture, .svg.
    #[arg(short, long, value_parser = path)]
    pub output: Option<String>,
}

/// Options of `calibrate`.
#[derive(Args, Debug)]
pub struct CalibrateArgs {
    /// Output file for the table of costs, in JSON.
    #[arg(short, long, default_value = "costs.json", value_parser = path)]
    pub output: String,
    /// Execution time of each of about a hundred measuring points, in milliseconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub turn: u64,
}

//! Options of the verbs that measure.

use super::run::{ModelArgs, threads};
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

/// Options of `scale`.
#[derive(Args, Debug)]
pub struct ScaleArgs {
    /// The model.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Number of training instances: generated ones, or the first ones of the corpus [default: all of the corpus, or the
    /// model's].
    #[arg(long)]
    pub count: Option<usize>,
    /// Number of instances in a step, on all ranks together [default: the model's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub batch: Option<u32>,
    /// The largest number of ranks.
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 12))]
    pub ranks: u32,
    /// Number of threads of each rank; 0 means one per core.
    #[arg(long, default_value_t = 1, value_parser = threads)]
    pub threads: usize,
    /// Number of measured steps for each number of ranks.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Latency of the network in microseconds [default: measured on two ranks, else 20].
    #[arg(long, value_name = "MICROSECONDS", value_parser = positive)]
    pub latency: Option<f64>,
    /// Bandwidth of the network in gigabytes a second [default: measured on two ranks, else 1].
    #[arg(long, value_name = "GIGABYTES", value_parser = positive)]
    pub bandwidth: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Parses a positive number.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f64::is_finite(number) => Ok(number),
        _ => Err("expected a number above 0".to_owned()),
    }
}

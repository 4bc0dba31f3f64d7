//! Options of the verb `execute`.

use super::run::threads;
use super::{PlanningArgs, path, values};
use crate::limits::LimitArgs;
use clap::Args;

/// Options of `execute`.
#[derive(Args, Debug)]
pub struct ExecuteArgs {
    /// The graph, with its bindings.
    #[arg(value_parser = path)]
    pub graph: String,
    /// A plan of the graph, or of a graph with other bindings; it is proven first [default: a new plan].
    #[arg(value_parser = path)]
    pub plan: Option<String>,
    /// Parameters as a safetensors file, such as a checkpoint [default: random parameters].
    #[arg(long, value_parser = path)]
    pub weights: Option<String>,
    /// Seed of random parameters.
    #[arg(long, default_value_t = 0, conflicts_with = "weights")]
    pub seed: u64,
    /// Output file: .json (NaN and infinities are strings), or .npy if all outputs have one type.
    #[arg(short, long, value_parser = path)]
    pub output: Option<String>,
    /// Device: cpu, gpu, gpu:0, gpu:part-of-a-name.
    #[arg(long, default_value = "cpu", value_parser = values::device(), hide_possible_values = true)]
    pub device: autobatch::Device,
    /// Number of threads that execute on the CPU; 0 means one per core.
    #[arg(long, default_value_t = 1, value_parser = threads)]
    pub threads: usize,
    /// Limits on memory and work.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Stop at the first result that is NaN or infinite although its operands are finite.
    #[arg(long)]
    pub watch: bool,
    /// Show the time of each kernel.
    #[arg(long)]
    pub counters: bool,
    /// Write the times of all steps as trace events, for Perfetto and chrome://tracing.
    #[arg(long, value_name = "FILE.json", value_parser = path)]
    pub trace: Option<String>,
    /// Options of planning, if no plan is given.
    #[command(flatten)]
    pub planning: PlanningArgs,
}

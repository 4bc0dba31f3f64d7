//! Options of the verb `execute`.

use super::learn::threads;
use super::{WishArgs, path};
use clap::Args;

/// Options of `execute`.
#[derive(Args, Debug)]
pub struct ExecuteArgs {
    /// A graph, with the numbers that are bound to it.
    #[arg(value_parser = path)]
    pub graph: String,
    /// A plan of it, or of a graph that differs in bound numbers alone, which is proven first; without it, one is made.
    #[arg(value_parser = path)]
    pub plan: Option<String>,
    /// Parameters as safetensors, a checkpoint for one; without them, they are drawn.
    #[arg(long, value_parser = path)]
    pub weights: Option<String>,
    /// Of parameters that are drawn.
    #[arg(long, default_value_t = 0, conflicts_with = "weights")]
    pub seed: u64,
    /// Where to write the outputs: .json, where NaN and infinities are texts, or .npy if they are of one type.
    #[arg(short, long, value_parser = path)]
    pub output: Option<String>,
    /// Threads that execute; 0 means one a core.
    #[arg(long, default_value_t = 1, value_parser = threads)]
    pub threads: usize,
    /// How many bytes rows may take: 1000000, 64KiB, 512MiB, 2GiB.
    #[arg(long, value_name = "BYTES", value_parser = autobatch_bench::parse_bytes)]
    pub memory_limit: Option<u64>,
    /// Stop at the first result that is NaN or infinite though all that it is made of is finite.
    #[arg(long)]
    pub watch: bool,
    /// Show where the time goes, kernel by kernel.
    #[arg(long)]
    pub counters: bool,
    /// Write every step's time as trace events, for Perfetto and chrome://tracing.
    #[arg(long, value_name = "FILE.json", value_parser = path)]
    pub trace: Option<String>,
    /// How to plan, where no plan is named.
    #[command(flatten)]
    pub wish: WishArgs,
}

//! `autobatch-bench`: times models of the catalogue, alone or between the scripts of other systems.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program reports to the terminal")]

use autobatch_bench::{BenchError, Mode, Options, run, sweep};
use autobatch_models::catalogue;
use autobatch_planner::schedule::Policy;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Times whole steps: emit, plan, verify, play, read.
#[derive(Parser, Debug)]
#[command(name = "autobatch-bench", version)]
struct Arguments {
    /// a b c d dchar e f1 f2 g lattice sst; or `sweep` and one of them
    #[arg(num_args = 1..=2, required_unless_present = "device")]
    workload: Vec<String>,
    /// Instances as the scripts of other systems write them with --dump-data
    #[arg(long)]
    data: Option<PathBuf>,
    /// infer or train
    #[arg(long, default_value = "infer")]
    mode: String,
    /// How wide states are
    #[arg(long)]
    hidden: Option<usize>,
    /// How wide word vectors are
    #[arg(long, alias = "emb")]
    embedding: Option<usize>,
    /// Instances in a graph; for sweep several, comma-separated
    #[arg(long, value_delimiter = ',')]
    batch: Vec<usize>,
    /// Instances to generate
    #[arg(long)]
    count: Option<usize>,
    /// Length of all generated sentences of d
    #[arg(long)]
    same: Option<u32>,
    /// Seed of generated instances
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads that play; 0 means one a core
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Turns of each variant
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds that a turn repeats the step for
    #[arg(long, default_value_t = 100)]
    turn: u64,
    /// How batches are chosen
    #[arg(long, default_value = "auto")]
    policy: String,
    /// Leave out one by one
    #[arg(long)]
    alone: bool,
    /// Times products, moves and two models on a GPU instead: gpu, gpu:0, gpu:part-of-a-name; with
    /// --hidden, products of this size
    #[arg(long)]
    device: Option<String>,
    /// Print one line of JSON only
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn options(&self) -> Result<Options, BenchError> {
        let Self { hidden, embedding, count, same, seed, threads, rounds, .. } = *self;
        let batch = self.batch.first().copied();
        let data = self.data.clone();
        Ok(Options {
            sizes: catalogue::Options { data, seed, count, batch, hidden, embedding, same },
            mode: self.mode.parse::<Mode>()?,
            threads,
            rounds,
            turn: Duration::from_millis(self.turn),
            policy: self.policy.parse::<Policy>()?,
            one_by_one: !self.alone,
        })
    }

    fn answer(&self) -> Result<String, BenchError> {
        if let Some(device) = self.device.as_deref().filter(|device| *device != "cpu") {
            #[cfg(feature = "gpu")]
            return autobatch_bench::gpu::report(device, self.hidden);
            #[cfg(not(feature = "gpu"))]
            return Err(BenchError::Gpu(format!("{device}: build the bench with --features gpu")));
        }
        let options = self.options()?;
        match self.workload.as_slice() {
            [verb, name] if verb == "sweep" => {
                let usual = [1, 2, 4, 8, 16, 32, 64, 128, 256];
                let batches = if self.batch.is_empty() { &usual[..] } else { &self.batch };
                let sweep = sweep(name, batches, &options)?;
                Ok(if self.json { sweep.to_json() } else { sweep.to_string() })
            }
            [name] => {
                let report = run(name, &options)?;
                Ok(if self.json { report.to_json() } else { format!("{report}{}", report.agreed_line()) })
            }
            _ => Err(BenchError::Verb(self.workload.join(" "))),
        }
    }
}

fn main() -> ExitCode {
    match Arguments::parse().answer() {
        Ok(answer) => {
            println!("{answer}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

//! Options of the verb `run`, and the options of models that `train` shares.

use super::planning::ModeArg;
use super::{path, values};
use autobatch::runtime_cpu::MAX_THREADS;
use autobatch_models::catalogue::Options;
use autobatch_planner::schedule::Policy;
use clap::{Args, ValueHint};

/// A model of the catalogue and its device.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// The model.
    #[arg(value_name = "MODEL", value_parser = values::model())]
    pub name: String,
    /// Folder of the model's corpus; `autobatch models` lists the files [default: generated instances].
    #[arg(long, value_name = "FOLDER", value_parser = path, value_hint = ValueHint::DirPath)]
    pub data: Option<String>,
    /// Width of hidden states [default: the model's].
    #[arg(long)]
    pub hidden: Option<usize>,
    /// Width of word vectors [default: the model's].
    #[arg(long)]
    pub embedding: Option<usize>,
    /// Seed of generated instances, weights, noise and the order of minibatches.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Device: cpu, gpu, gpu:0, gpu:part-of-a-name.
    #[arg(long, default_value = "cpu", value_parser = values::device(), hide_possible_values = true)]
    pub device: autobatch::Device,
    /// Batching policy: none, depth, agenda, agenda:remaining, ratio, beam:8, fsm:FILE, auto [default: auto].
    #[arg(long, value_parser = values::policy(), hide_possible_values = true)]
    pub policy: Option<Policy>,
}

impl ModelArgs {
    /// The instances and widths of a lesson.
    pub(crate) fn lesson(&self, count: Option<usize>) -> Options {
        Options {
            corpus: self.data.as_ref().map(Into::into),
            seed: self.seed,
            count,
            hidden: self.hidden,
            embedding: self.embedding,
            ..Options::default()
        }
    }

    /// The policy that plans.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy.clone().unwrap_or_default()
    }
}

/// Options of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// The model to run.
    #[command(flatten)]
    pub model: ModelArgs,
    /// JSON file of instances as lists of numbers, as the scripts in bench/peers write it with --dump-data.
    #[arg(long, value_name = "FILE.json", conflicts_with = "data", value_parser = path, value_hint = ValueHint::FilePath)]
    pub peer_data: Option<String>,
    /// Number of instances in the graph [default: the model's].
    #[arg(long)]
    pub batch: Option<usize>,
    /// Number of threads that execute; 0 means one per core.
    #[arg(long, default_value_t = 1, value_parser = threads)]
    pub threads: usize,
    /// Compare outputs, or training with Adam: the losses of one minibatch per round, and all weights and moments afterwards.
    #[arg(long, value_enum, default_value_t)]
    pub mode: ModeArg,
    /// Number of measurements of each variant, batched and unbatched; fewer if they take more than 20 s.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Folder for the plan, the graph and the picture, not with `--mode train` [default: no files].
    #[arg(short, long, value_parser = path, value_hint = ValueHint::DirPath)]
    pub output: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Parses a number of threads.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 0..=MAX_THREADS) => Ok(threads),
        _ => Err(format!("expected a number from 0 to {MAX_THREADS}")),
    }
}

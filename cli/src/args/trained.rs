//! Options of the verbs that read trained parameters: `eval` and `predict`.

use super::run::threads;
use super::{path, values};
use crate::limits::LimitArgs;
use autobatch_models::lessons::CorpusPart;
use autobatch_planner::schedule::Policy;
use clap::{Args, ValueEnum, ValueHint};

/// A trained model and its device.
#[derive(Args, Debug)]
pub struct TrainedArgs {
    /// The model.
    #[arg(value_name = "MODEL", value_parser = values::model())]
    pub name: String,
    /// Checkpoint of `autobatch train --save`, which holds the parameters and the vocabulary.
    #[arg(long, value_name = "FILE", value_parser = path, value_hint = ValueHint::FilePath)]
    pub weights: String,
    /// Number of threads that emit and execute; 0 means one per core.
    #[arg(long, default_value_t = 0, value_parser = threads)]
    pub threads: usize,
    /// Device: cpu, gpu, gpu:0, gpu:part-of-a-name.
    #[arg(long, default_value = "cpu", value_parser = values::device(), hide_possible_values = true)]
    pub device: autobatch::Device,
    /// Batching policy: none, depth, agenda, agenda:remaining, ratio, beam:8, fsm:FILE, auto [default: auto].
    #[arg(long, value_parser = values::policy(), hide_possible_values = true)]
    pub policy: Option<Policy>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Limits on each graph.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// A part of the instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PartArg {
    /// The instances that training steps read.
    Train,
    /// The instances that choose the best epoch.
    Development,
    /// The instances that training never reads.
    #[default]
    Test,
}

impl From<PartArg> for CorpusPart {
    fn from(part: PartArg) -> Self {
        match part {
            PartArg::Train => Self::Train,
            PartArg::Development => Self::Development,
            PartArg::Test => Self::Test,
        }
    }
}

/// Options of `eval`.
#[derive(Args, Debug)]
pub struct EvalArgs {
    /// The trained model.
    #[command(flatten)]
    pub trained: TrainedArgs,
    /// Folder of the model's corpus [default: generated instances].
    #[arg(long, value_name = "FOLDER", value_parser = path, value_hint = ValueHint::DirPath)]
    pub data: Option<String>,
    /// The part to evaluate.
    #[arg(long, value_enum, default_value_t)]
    pub part: PartArg,
    /// Seed of generated instances, as in training.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of training instances, as in training.
    #[arg(long)]
    pub count: Option<usize>,
}

/// Options of `predict`.
#[derive(Args, Debug)]
pub struct PredictArgs {
    /// The trained model. With --json, each answer is a line.
    #[command(flatten)]
    pub trained: TrainedArgs,
    /// File in the form of the model's corpus; - is standard input.
    #[arg(default_value = "-", value_parser = path, value_hint = ValueHint::AnyPath)]
    pub input: String,
}

/// Options of `map`.
#[derive(Args, Debug)]
pub struct MapArgs {
    /// The trained model. With --json, the report is JSON.
    #[command(flatten)]
    pub trained: TrainedArgs,
    /// Inputs in the form of the model's corpus: files, folders of files, `@LIST` for a file with one path per line, or `-` for
    /// standard input.
    #[arg(long, value_name = "INPUT", required = true, num_args = 1.., value_hint = ValueHint::AnyPath)]
    pub data: Vec<String>,
    /// The number of instances of a shard. A process holds one shard in memory.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub shard: u32,
    /// The form of the shards. The columns of Parquet are the names of the JSON objects.
    #[arg(long, value_enum, default_value_t)]
    pub form: FormArg,
    /// Folder for the shards and the manifest.
    #[arg(short, long, value_name = "FOLDER", value_parser = path, value_hint = ValueHint::DirPath)]
    pub output: String,
}

/// The form of the shards of `map`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FormArg {
    /// A JSON object on each line.
    #[default]
    Jsonl,
    /// Apache Parquet, compressed with Snappy; needs a command that was built with the feature `parquet`.
    Parquet,
}

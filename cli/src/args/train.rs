//! Options of the verb `train`.

use super::path;
use super::run::{ModelArgs, threads};
use clap::{Args, ValueEnum};

/// Parses the path of a file that is no stream: training replaces checkpoints repeatedly, and prints its epochs.
fn file(text: &str) -> Result<String, String> {
    match text {
        "-" => Err("expected a file, found standard output".to_owned()),
        _ => path(text),
    }
}

/// Options of `train`.
#[derive(Args, Debug)]
pub struct TrainArgs {
    /// The model to train.
    #[command(flatten)]
    pub model: ModelArgs,
    /// Number of training instances: generated ones, or the first ones of the corpus [default: all of the corpus, or the
    /// model's].
    #[arg(long)]
    pub count: Option<usize>,
    /// Number of instances in a minibatch [default: the model's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub batch: Option<u32>,
    /// Number of threads that emit and execute; 0 means one per core.
    #[arg(long, default_value_t = 0, value_parser = threads)]
    pub threads: usize,
    /// Total number of epochs, including those before --resume [default: the model's].
    #[arg(long)]
    pub epochs: Option<u64>,
    /// Stop after this many minutes, even within an epoch.
    #[arg(long, allow_negative_numbers = true)]
    pub max_minutes: Option<f64>,
    /// Learning rate [default: the model's].
    #[arg(long, allow_negative_numbers = true)]
    pub lr: Option<f64>,
    /// Optimizer.
    #[arg(long, value_enum, default_value_t)]
    pub optimizer: OptimizerArg,
    /// Maximum norm of the gradient; larger gradients are scaled down. 0 disables clipping.
    #[arg(long, default_value_t = 5.0, allow_negative_numbers = true)]
    pub clip: f64,
    /// Weight decay.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub decay: f64,
    /// Stop after this many epochs without a better score of the development part; 0 disables the check.
    #[arg(long, default_value_t = 0)]
    pub patience: usize,
    /// Group instances of similar size into minibatches.
    #[arg(long)]
    pub bucket: bool,
    /// Output file of the learning curve: .svg, .csv or .json; may be given several times.
    #[arg(long, value_parser = path)]
    pub curve: Vec<String>,
    /// Checkpoint file, such as NAME.safetensors, written after every epoch; NAME.best.safetensors gets the best epoch.
    #[arg(long, value_parser = file)]
    pub save: Option<String>,
    /// Write the checkpoint of --save also within an epoch, whenever this many minutes have passed.
    #[arg(long, value_name = "MINUTES", requires = "save", allow_negative_numbers = true)]
    pub save_every: Option<f64>,
    /// Checkpoint of --save from which to continue with equal bits.
    #[arg(long, value_parser = path)]
    pub resume: Option<String>,
    /// Cut each minibatch into this many shards, whose gradients are added in a fixed order. Weights depend on this number, and
    /// not on the number of processes [default: whole minibatches; 8 under mpirun].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub shards: Option<u32>,
    /// Divide the state of the optimizer equally among the processes of mpirun, which keep it for a part of all elements each.
    #[arg(long)]
    pub divide_states: bool,
    /// Output file for the first 100 steps of all processes on one time line, as trace events for Perfetto.
    #[arg(long, value_name = "FILE.json", value_parser = file)]
    pub trace: Option<String>,
    /// After training, parse the test sentences greedily; model parser only.
    #[arg(long)]
    pub decode: bool,
    /// Print one JSON object per line: the start, every epoch, the end.
    #[arg(long)]
    pub json: bool,
}

/// An optimizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OptimizerArg {
    /// Plain gradient descent.
    Sgd,
    /// Gradient descent with momentum 0.9.
    Momentum,
    /// Adam.
    #[default]
    Adam,
    /// Adam with decoupled weight decay.
    Adamw,
    /// Adagrad.
    Adagrad,
    /// RMSProp.
    Rmsprop,
}

//! Options of the verbs that execute models: `run` and `train`.

use super::path;
use autobatch::runtime_cpu::MAX_THREADS;
use autobatch_planner::schedule::Policy;
use clap::{Args, ValueEnum};

/// A model, and where it is executed.
#[derive(Args, Debug)]
pub struct ModelArgs {
    /// mnist treelstm similarity tagger chartagger names acceptor treernn parser lattice sentiment, or as
    /// benchmarks call them.
    #[arg(value_name = "MODEL")]
    pub name: String,
    /// The width of states.
    #[arg(long)]
    pub hidden: Option<usize>,
    /// The width of word vectors.
    #[arg(long)]
    pub embedding: Option<usize>,
    /// Of generated instances, weights, noise and the order of minibatches.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where plans are executed: cpu, gpu, gpu:0, gpu:part-of-a-name.
    #[arg(long, default_value = "cpu")]
    pub device: autobatch::Device,
    /// The batching policy: none, depth, agenda, agenda:remaining, ratio, beam:8, fsm:table.json, auto.
    #[arg(long, default_value = "auto")]
    pub policy: Policy,
}

/// Options of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// What is run.
    #[command(flatten)]
    pub model: ModelArgs,
    /// A JSON file of instances; without it they are generated.
    #[arg(long, value_parser = path)]
    pub data: Option<String>,
    /// Instances in a graph.
    #[arg(long)]
    pub batch: Option<usize>,
    /// Threads that execute; 0 means one a core.
    #[arg(long, default_value_t = 1, value_parser = threads)]
    pub threads: usize,
    /// How often both take their turn.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// The folder for plan, graph and picture.
    #[arg(short, long, default_value = "target/autobatch", value_parser = path)]
    pub output: String,
}

/// A number of threads: so many that a machine may have them.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 0..=MAX_THREADS) => Ok(threads),
        _ => Err(format!("expected a number from 0 to {MAX_THREADS}")),
    }
}

/// The path of a checkpoint, which is replaced again and again.
fn checkpoint(text: &str) -> Result<String, String> {
    match text {
        "-" => Err("a checkpoint is a file, not a stream; name one".to_owned()),
        _ => path(text),
    }
}

/// Options of `train`.
#[derive(Args, Debug)]
pub struct TrainArgs {
    /// What is trained.
    #[command(flatten)]
    pub model: ModelArgs,
    /// The folder of the model's corpus; without it instances are generated.
    #[arg(long, value_parser = path)]
    pub data: Option<String>,
    /// Instances to learn from: how many are generated, or the first ones of the corpus.
    #[arg(long)]
    pub count: Option<usize>,
    /// Instances in a minibatch.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub batch: Option<u32>,
    /// Threads that emit and execute; 0 means one a core.
    #[arg(long, default_value_t = 0, value_parser = threads)]
    pub threads: usize,
    /// Epochs in all, those of a resumed run included.
    #[arg(long)]
    pub epochs: Option<u64>,
    /// Stop after so many minutes, in the middle of an epoch if need be.
    #[arg(long, allow_negative_numbers = true)]
    pub max_minutes: Option<f64>,
    /// The learning rate.
    #[arg(long, allow_negative_numbers = true)]
    pub lr: Option<f64>,
    /// The rule of updates.
    #[arg(long, value_enum, default_value_t)]
    pub optimizer: OptimizerArg,
    /// The largest norm of the whole gradient; larger ones are scaled down. 0 leaves them.
    #[arg(long, default_value_t = 5.0, allow_negative_numbers = true)]
    pub clip: f64,
    /// Weight decay.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    pub decay: f64,
    /// Stop after so many epochs that were no better; 0 never does.
    #[arg(long, default_value_t = 0)]
    pub patience: usize,
    /// Bring instances of like size together in minibatches.
    #[arg(long)]
    pub bucket: bool,
    /// Where to write the learning curve: .svg, .csv or .json; may be given more than once.
    #[arg(long, value_parser = path)]
    pub curve: Vec<String>,
    /// Where to write a checkpoint after every epoch; the best epoch's goes to NAME.best.safetensors.
    #[arg(long, value_parser = checkpoint)]
    pub save: Option<String>,
    /// A checkpoint to go on from.
    #[arg(long, value_parser = path)]
    pub resume: Option<String>,
    /// Decode the parser greedily on the instances to be measured on, in the end.
    #[arg(long)]
    pub decode: bool,
}

/// A rule of updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OptimizerArg {
    /// Plain steps along the gradient.
    Sgd,
    /// Steps along a decaying sum of gradients.
    Momentum,
    /// Steps scaled by both moments.
    #[default]
    Adam,
    /// Adam with decoupled weight decay.
    Adamw,
    /// Steps scaled by all squares so far.
    Adagrad,
    /// Steps scaled by recent squares.
    Rmsprop,
}

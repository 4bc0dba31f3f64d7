//! Options of the verb `emit`.

use super::{path, values};
use clap::{Args, ValueHint};

/// Options of `emit`.
#[derive(Args, Debug)]
pub struct EmitArgs {
    /// The model, or `random` for random cells.
    #[arg(value_parser = values::emitted_model())]
    pub model: String,
    /// Folder of the model's corpus [default: generated instances].
    #[arg(long, value_name = "FOLDER", value_parser = path, value_hint = ValueHint::DirPath)]
    pub data: Option<String>,
    /// Number of instances in the minibatch.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub instances: u32,
    /// Position of the minibatch among those of the training instances, counted from 0.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1 << 20))]
    pub batch: u32,
    /// Width of hidden states [default: the model's; 100 for random].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 14))]
    pub hidden: Option<u32>,
    /// Width of word vectors [default: the model's].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 14))]
    pub embedding: Option<u32>,
    /// Emit the loss of each instance instead of its outputs.
    #[arg(long)]
    pub loss: bool,
    /// Number of cells of random graphs [default: 1].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cells: Option<u32>,
    /// Number of nodes of each instance of a random graph [default: 20].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub nodes: Option<u32>,
    /// Seed of generated instances and random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Output file: .abg, .graph or .json; - is standard output.
    #[arg(short, long, default_value = "-", value_parser = path)]
    pub output: String,
}

//! Options of the verb `emit`.

use super::path;
use clap::{Args, ValueEnum};

/// A model to emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmitModel {
    /// Cells of several types that read earlier values at random.
    Random,
    /// Binary Tree-LSTM over a sentiment treebank.
    Trees,
    /// Two-layer BiLSTM tagger over tagged sentences.
    Bilstm,
    /// Lattice LSTM over characters and dictionary words.
    Lattice,
}

/// Options of `emit`.
#[derive(Args, Debug)]
pub struct EmitArgs {
    /// The model.
    #[arg(value_enum)]
    pub model: EmitModel,
    /// A file of the corpus; without it, invented data of the same sizes.
    #[arg(long, value_parser = path)]
    pub data: Option<String>,
    /// Instances of the minibatch.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub instances: u32,
    /// Which minibatch of the data, from 0.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1 << 20))]
    pub batch: u32,
    /// The width of hidden states.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1 << 14))]
    pub hidden: u32,
    /// How many inner cells trees choose from at random; how many types random graphs have [default: 1].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cells: Option<u32>,
    /// Nodes of each random instance [default: 20].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub nodes: Option<u32>,
    /// Classify every node of a tree, not the root alone; trees only.
    #[arg(long)]
    pub every_node: bool,
    /// Of invented data and random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where to write: .abg, .graph, .json.
    #[arg(short, long, default_value = "-", value_parser = path)]
    pub output: String,
}

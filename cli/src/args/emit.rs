//! Options of the verb `emit`.

use super::path;
use clap::{Args, ValueEnum};

/// A model to emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmitModel {
    /// Cells of several types that read random earlier values.
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
    /// Corpus file [default: generated data of similar sizes].
    #[arg(long, value_parser = path)]
    pub data: Option<String>,
    /// Number of instances in the minibatch.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub instances: u32,
    /// Number of the minibatch, starting at 0.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1 << 20))]
    pub batch: u32,
    /// Width of hidden states.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1 << 14))]
    pub hidden: u32,
    /// Number of cells to choose from at random: inner cells of trees, all cells of random graphs [default: 1].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cells: Option<u32>,
    /// Number of nodes of each instance of a random graph [default: 20].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub nodes: Option<u32>,
    /// Classify every node of a tree, not only the root.
    #[arg(long)]
    pub every_node: bool,
    /// Seed of generated data and random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Output file: .abg, .graph or .json; - is standard output.
    #[arg(short, long, default_value = "-", value_parser = path)]
    pub output: String,
}

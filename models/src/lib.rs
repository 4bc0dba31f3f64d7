//! Complete models with their data.
//!
//! One file a model: an ordinary struct of layers with methods that emit *one* instance, its
//! outputs and its loss, by plain loops and recursion; nothing in it knows of batches.
//!
//! | name | model | file |
//! |---|---|---|
//! | `a` | perceptron on images | [`mnist`] |
//! | `b` | binary tree LSTM | [`spinn`] |
//! | `c` | child-sum tree LSTM on pairs of sentences | [`similarity`] |
//! | `d` | BiLSTM tagger | [`tagger`] |
//! | `dchar` | BiLSTM tagger that spells rare words | [`char_tagger`] |
//! | `e` | name classifier over letters | [`names`] |
//! | `f1` | LSTM acceptor | [`acceptor`] |
//! | `f2` | tree RNN | [`tree_rnn`] |
//! | `g` | parser with a stack LSTM and given actions | [`parser`] |
//! | `lattice` | lattice LSTM over characters and words | [`lattice_tagger`] |
//! | `sst` | tree LSTM with a label at every node | [`sentiment`] |
//!
//! People call them `mnist`, `treelstm`, `similarity`, `tagger`, `chartagger`, `names`, `acceptor`,
//! `treernn`, `parser`, `lattice`, `sentiment`.
//!
//! [`Model`] is what they have in common. [`catalogue::open`] gives one by its name together with
//! instances, read from a file or generated: what benchmarks and the command line need.
//! [`lessons::open`] gives one with a corpus to learn from, or with generated instances of the same
//! kind, and [`scores`] says how well it does. Instances come from [`data`].

pub mod acceptor;
pub mod catalogue;
pub mod char_tagger;
pub mod data;
pub mod lattice_tagger;
pub mod lessons;
pub mod mnist;
mod model;
pub mod names;
pub mod parser;
pub mod scores;
pub mod sentiment;
pub mod similarity;
pub mod spinn;
pub mod tagger;
pub mod tree_rnn;

pub use model::{Model, Workload};

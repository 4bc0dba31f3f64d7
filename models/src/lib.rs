//! Complete models with their data.
//!
//! Each model has one file. It is an ordinary struct of layers with methods that emit *one* instance, its
//! outputs and its loss, by plain loops and recursion. It contains no code for batches.
//!
//! | name | letter | model | file |
//! |---|---|---|---|
//! | `mnist` | a | perceptron on images | [`mnist`] |
//! | `treelstm` | b | binary tree LSTM | [`spinn`] |
//! | `similarity` | c | child-sum tree LSTM on pairs of sentences | [`similarity`] |
//! | `tagger` | d | BiLSTM tagger | [`tagger`] |
//! | `chartagger` | | BiLSTM tagger that spells rare words | [`char_tagger`] |
//! | `names` | e | name classifier over letters | [`names`] |
//! | `acceptor` | f1 | LSTM acceptor | [`acceptor`] |
//! | `treernn` | f2 | tree RNN | [`tree_rnn`] |
//! | `parser` | g | parser with a stack LSTM and given actions | [`parser`] |
//! | `lattice` | | lattice LSTM over characters and words | [`lattice_tagger`] |
//! | `sentiment` | | tree LSTM with a label at every node | [`sentiment`] |
//! | `transformer` | | transformer encoder that tags words | [`transformer`] |
//! | `translate` | | transformer that translates sentences | [`translate`] |
//! | `ggnn` | | gated graph network | [`graphs`] |
//! | `gat` | | graph attention network | [`graphs`] |
//! | `lm` | | LSTM language model | [`language`] |
//! | `crf` | | BiLSTM tagger with a conditional random field | [`crf_tagger`] |
//!
//! The letters name the workloads of the comparative benchmarks.
//!
//! All models implement [`Model`]. [`catalogue::open`] opens a model by name with instances from a file or a
//! generator, for benchmarks and the command line. [`lessons::open`] opens a model with a corpus, or with
//! generated instances of the same kind, and [`scores`] measures its quality. [`data`] provides the instances.

pub mod acceptor;
pub mod catalogue;
pub mod char_tagger;
pub mod crf_tagger;
pub mod data;
pub mod graphs;
pub mod language;
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
pub mod transformer;
pub mod translate;
pub mod tree_rnn;

pub use model::{Model, Workload};

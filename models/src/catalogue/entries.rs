//! The entries of the catalogue: names, usual sizes and corpora.

use super::door::{Door, door};
use super::error::OpenError;
use crate::crf_tagger::CrfTagger;
use crate::data::parallel::Languages;
use crate::graphs::{AttentionGraphs, GatedGraphs};
use crate::lessons::language::Language;
use crate::lessons::{classify, graphs, structured, tag};
use crate::tagger::Tagger;
use crate::transformer::Transformer;
use std::fmt;

/// A model of the catalogue.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name.
    pub name: &'static str,
    /// The name in the comparative benchmarks, if they contain the model.
    pub letter: Option<&'static str>,
    /// The description in one line.
    pub about: &'static str,
    /// The noun for instances, in the plural.
    pub unit: &'static str,
    /// The default width of states.
    pub hidden: usize,
    /// The default width of input vectors. It is 0 if input vectors have the width of states, or if the data
    /// determines it.
    pub embedding: usize,
    /// The default number of instances per step.
    pub count: usize,
    /// The default number of instances per graph.
    pub batch: usize,
    /// The corpus from which the model learns.
    pub corpus: Corpus,
    /// The usual training options.
    pub habits: Habits,
    /// Whether generated sentences can have one common length.
    pub(crate) has_equal_lengths: bool,
    /// The task behind the entry.
    pub(crate) door: Door,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.name).finish()
    }
}

/// Entries have different names.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Entry {}

/// The usual training options of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Habits {
    /// The number of epochs.
    pub epochs: u64,
    /// The number of instances per minibatch.
    pub batch: usize,
    /// The learning rate of Adam.
    pub learning_rate: f64,
    /// The number of generated training instances. The other parts have a fifth of that number each.
    pub generated: usize,
}

const fn habits(epochs: u64, batch: usize, learning_rate: f64, generated: usize) -> Habits {
    Habits { epochs, batch, learning_rate, generated }
}

/// A published corpus in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// The name of the corpus.
    pub name: &'static str,
    /// The files in the folder. Files in brackets are optional.
    pub files: &'static str,
    /// The scores that an evaluation computes.
    pub metrics: &'static str,
}

const MNIST: Corpus =
    Corpus { name: "MNIST", files: "images-idx3-ubyte labels-idx1-ubyte", metrics: "accuracy" };
const LISTOPS: Corpus = Corpus { name: "ListOps", files: "d8.tsv", metrics: "accuracy" };
const SICK: Corpus = Corpus {
    name: "SICK with dependency parses",
    files: "train/ [valid/] [test/], each with a.toks a.parents a.rels b.toks b.parents b.rels sim.txt id.txt",
    metrics: "pearson, squared error",
};
const WIKINER: Corpus =
    Corpus { name: "WikiNER", files: "train.txt [valid.txt] [test.txt]", metrics: "accuracy, span F1" };
const SURNAMES: Corpus =
    Corpus { name: "names of 18 languages", files: "LANGUAGE.txt ...", metrics: "accuracy, top 3" };
const SST: Corpus = Corpus {
    name: "Stanford Sentiment Treebank",
    files: "train.txt [valid.txt] [test.txt]",
    metrics: "accuracy",
};
const SST_NODES: Corpus = Corpus { metrics: "root accuracy, node accuracy", ..SST };
const TREEBANK: Corpus = Corpus {
    name: "a treebank in CoNLL-U, such as UD English-EWT",
    files: "train.conllu [valid.conllu] [test.conllu]",
    metrics: "action accuracy, correct heads",
};
const LATTICES: Corpus = Corpus {
    name: "characters with dictionary words, such as UD Chinese-GSDSimp",
    files: "train.txt [valid.txt] [test.txt]",
    metrics: "accuracy",
};

const PAIRS: Corpus = Corpus {
    name: "sentences with translations after a tab, such as Tatoeba's",
    files: "train.txt [valid.txt] [test.txt]",
    metrics: "word accuracy, exact sentences",
};

const GRAPHS: Corpus = Corpus {
    name: "graphs with a class in the format of the TU collection, such as MUTAG",
    files: "NAME_A.txt NAME_graph_indicator.txt NAME_graph_labels.txt [NAME_node_labels.txt]",
    metrics: "accuracy",
};

const TEXT: Corpus = Corpus {
    name: "sentences, one per line",
    files: "train.txt [valid.txt] [test.txt]",
    metrics: "likelihood, perplexity",
};

/// Every model, in the order of the benchmarks.
#[rustfmt::skip]
pub const ENTRIES: [Entry; 17] = [
    Entry { name: "mnist", letter: Some("a"), about: "perceptron 784-200-100-10", unit: "examples", hidden: 200, embedding: 0, count: 2000, batch: 32, corpus: MNIST, habits: habits(6, 32, 1e-3, 1000), has_equal_lengths: false, door: door::<classify::Digits>() },
    Entry { name: "treelstm", letter: Some("b"), about: "binary tree LSTM", unit: "trees", hidden: 100, embedding: 0, count: 128, batch: 128, corpus: LISTOPS, habits: habits(8, 32, 2e-3, 800), has_equal_lengths: false, door: door::<classify::Expressions>() },
    Entry { name: "similarity", letter: Some("c"), about: "child-sum tree LSTM on pairs", unit: "pairs", hidden: 150, embedding: 300, count: 256, batch: 256, corpus: SICK, habits: habits(6, 25, 2e-3, 500), has_equal_lengths: false, door: door::<structured::Pairs>() },
    Entry { name: "tagger", letter: Some("d"), about: "BiLSTM tagger", unit: "sentences", hidden: 50, embedding: 128, count: 64, batch: 64, corpus: WIKINER, habits: habits(5, 16, 2e-3, 400), has_equal_lengths: true, door: door::<tag::Words<Tagger>>() },
    Entry { name: "chartagger", letter: None, about: "BiLSTM tagger that spells rare words", unit: "sentences", hidden: 50, embedding: 128, count: 64, batch: 64, corpus: WIKINER, habits: habits(4, 16, 2e-3, 200), has_equal_lengths: false, door: door::<tag::Spelled>() },
    Entry { name: "names", letter: Some("e"), about: "LSTM over the letters of names", unit: "names", hidden: 128, embedding: 0, count: 128, batch: 128, corpus: SURNAMES, habits: habits(8, 64, 4e-3, 1500), has_equal_lengths: false, door: door::<classify::Surnames>() },
    Entry { name: "acceptor", letter: Some("f1"), about: "LSTM acceptor", unit: "sequences", hidden: 100, embedding: 100, count: 64, batch: 64, corpus: SST, habits: habits(6, 32, 2e-3, 800), has_equal_lengths: false, door: door::<classify::Sentences>() },
    Entry { name: "treernn", letter: Some("f2"), about: "tree RNN", unit: "trees", hidden: 300, embedding: 0, count: 64, batch: 64, corpus: SST, habits: habits(6, 32, 5e-4, 400), has_equal_lengths: false, door: door::<classify::Parses>() },
    Entry { name: "parser", letter: Some("g"), about: "stack LSTM parser, actions given", unit: "sentences", hidden: 100, embedding: 100, count: 64, batch: 64, corpus: TREEBANK, habits: habits(4, 16, 2e-3, 200), has_equal_lengths: false, door: door::<structured::Treebank>() },
    Entry { name: "lattice", letter: None, about: "lattice LSTM tagger", unit: "sentences", hidden: 100, embedding: 50, count: 64, batch: 64, corpus: LATTICES, habits: habits(4, 8, 2e-3, 100), has_equal_lengths: false, door: door::<tag::Lattices>() },
    Entry { name: "sentiment", letter: None, about: "tree LSTM, a label at every node", unit: "trees", hidden: 100, embedding: 0, count: 128, batch: 128, corpus: SST_NODES, habits: habits(5, 25, 1e-3, 400), has_equal_lengths: false, door: door::<structured::Phrases>() },
    Entry { name: "transformer", letter: None, about: "transformer encoder tagger", unit: "sentences", hidden: 128, embedding: 0, count: 64, batch: 64, corpus: WIKINER, habits: habits(5, 16, 1e-3, 400), has_equal_lengths: true, door: door::<tag::Words<Transformer>>() },
    Entry { name: "translate", letter: None, about: "transformer encoder and decoder", unit: "sentences", hidden: 128, embedding: 0, count: 64, batch: 64, corpus: PAIRS, habits: habits(8, 32, 2e-3, 2000), has_equal_lengths: false, door: door::<Languages>() },
    Entry { name: "ggnn", letter: None, about: "gated graph network", unit: "graphs", hidden: 64, embedding: 0, count: 128, batch: 128, corpus: GRAPHS, habits: habits(8, 32, 2e-3, 800), has_equal_lengths: false, door: door::<graphs::Graphs<GatedGraphs>>() },
    Entry { name: "gat", letter: None, about: "graph attention network", unit: "graphs", hidden: 64, embedding: 0, count: 128, batch: 128, corpus: GRAPHS, habits: habits(8, 32, 5e-3, 800), has_equal_lengths: false, door: door::<graphs::Graphs<AttentionGraphs>>() },
    Entry { name: "crf", letter: None, about: "BiLSTM tagger with a CRF", unit: "sentences", hidden: 50, embedding: 128, count: 64, batch: 64, corpus: WIKINER, habits: habits(5, 16, 2e-3, 400), has_equal_lengths: true, door: door::<tag::Words<CrfTagger>>() },
    Entry { name: "lm", letter: None, about: "LSTM language model", unit: "sentences", hidden: 256, embedding: 0, count: 100, batch: 100, corpus: TEXT, habits: habits(8, 32, 4e-3, 2000), has_equal_lengths: false, door: door::<Language>() },
];

/// Returns the entry with this name.
///
/// # Errors
/// Returns an error that lists all names if there is no such entry.
pub fn entry(name: &str) -> Result<&'static Entry, OpenError> {
    ENTRIES.iter().find(|entry| entry.name == name).ok_or_else(|| OpenError::Unknown(name.to_owned()))
}

/// Returns the entry with this name or this letter of the comparative benchmarks.
///
/// # Errors
/// As [`entry`].
pub fn entry_or_letter(name: &str) -> Result<&'static Entry, OpenError> {
    ENTRIES.iter().find(|entry| entry.letter == Some(name)).map_or_else(|| entry(name), Ok)
}

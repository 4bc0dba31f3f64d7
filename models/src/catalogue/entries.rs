//! The entries of the catalogue: names, usual sizes and corpora.

use super::OpenError;

/// A model of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Every model, in the order of the benchmarks.
#[rustfmt::skip]
pub const ENTRIES: [Entry; 13] = [
    Entry { name: "mnist", letter: Some("a"), about: "perceptron 784-200-100-10", unit: "examples", hidden: 200, embedding: 0, count: 2000, batch: 32, corpus: MNIST },
    Entry { name: "treelstm", letter: Some("b"), about: "binary tree LSTM", unit: "trees", hidden: 100, embedding: 0, count: 128, batch: 128, corpus: LISTOPS },
    Entry { name: "similarity", letter: Some("c"), about: "child-sum tree LSTM on pairs", unit: "pairs", hidden: 150, embedding: 300, count: 256, batch: 256, corpus: SICK },
    Entry { name: "tagger", letter: Some("d"), about: "BiLSTM tagger", unit: "sentences", hidden: 50, embedding: 128, count: 64, batch: 64, corpus: WIKINER },
    Entry { name: "chartagger", letter: None, about: "BiLSTM tagger that spells rare words", unit: "sentences", hidden: 50, embedding: 128, count: 64, batch: 64, corpus: WIKINER },
    Entry { name: "names", letter: Some("e"), about: "LSTM over the letters of names", unit: "names", hidden: 128, embedding: 0, count: 128, batch: 128, corpus: SURNAMES },
    Entry { name: "acceptor", letter: Some("f1"), about: "LSTM acceptor", unit: "sequences", hidden: 100, embedding: 100, count: 64, batch: 64, corpus: SST },
    Entry { name: "treernn", letter: Some("f2"), about: "tree RNN", unit: "trees", hidden: 300, embedding: 0, count: 64, batch: 64, corpus: SST },
    Entry { name: "parser", letter: Some("g"), about: "stack LSTM parser, actions given", unit: "sentences", hidden: 100, embedding: 100, count: 64, batch: 64, corpus: TREEBANK },
    Entry { name: "lattice", letter: None, about: "lattice LSTM tagger", unit: "sentences", hidden: 100, embedding: 50, count: 64, batch: 64, corpus: LATTICES },
    Entry { name: "sentiment", letter: None, about: "tree LSTM, a label at every node", unit: "trees", hidden: 100, embedding: 0, count: 128, batch: 128, corpus: SST_NODES },
    Entry { name: "transformer", letter: None, about: "transformer encoder tagger", unit: "sentences", hidden: 128, embedding: 0, count: 64, batch: 64, corpus: WIKINER },
    Entry { name: "translate", letter: None, about: "transformer encoder and decoder", unit: "sentences", hidden: 128, embedding: 0, count: 64, batch: 64, corpus: PAIRS },
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

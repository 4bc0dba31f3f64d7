//! A [`Task`] connects a model with a corpus: it reads items, numbers their words, and puts outputs into words.

use super::answer::{Answer, PredictError, Unknown};
use super::chunks::Units;
use super::parts::{Parts, Published};
use crate::Model;
use crate::catalogue::{Opened, Sizes};
use crate::data::DataError;
use crate::parser::greedy::Parsing;
use autobatch::Session;
use autobatch::prelude::ModuleBuilder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// The widths of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) hidden: usize,
    pub(crate) embedding: usize,
}

/// A model on a corpus. The value holds the numbers of words and classes. Checkpoints store it as JSON, so a
/// prediction needs no corpus.
pub(crate) trait Task: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// An instance as the corpus states it.
    type Item: Send + Sync + 'static;
    /// The model.
    type Model: Model + Clone + 'static;

    /// Declares the model with the sizes of the comparative benchmarks, and makes or reads their instances.
    fn benchmark(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened;

    /// Reads the corpus in a folder.
    fn read(folder: &Path) -> Result<Published<Self::Item>, DataError>;

    /// Generates items like those of the corpus.
    fn generate(seed: u64, count: usize) -> Vec<Self::Item>;

    /// The extent of an item in a file.
    const UNITS: Units = Units::Lines;

    /// Reads the items of a file, or of a folder for a corpus of several files per part.
    fn parse(input: Input<'_>) -> Result<Vec<Self::Item>, DataError>;

    /// Numbers the words of the training items and the classes of all items.
    fn learn(parts: &Parts<Self::Item>) -> Self;

    /// Declares the model.
    fn model(&self, m: &mut ModuleBuilder, widths: Widths) -> Self::Model;

    /// Numbers an item. The error describes an item that the model cannot read.
    fn number(&self, item: &Self::Item) -> Result<<Self::Model as Model>::Instance, String>;

    /// Counts the words or letters of an item, and how many the model does not know.
    fn count_unknown(&self, _item: &Self::Item, _unknown: &mut Unknown) {}

    /// Returns the size of an item, by which minibatches may group items.
    fn size(item: &Self::Item) -> usize;

    /// Returns the sentences to parse greedily, if the model is a parser.
    fn parsing(&self, _model: Self::Model, _items: &[Self::Item]) -> Option<Parsing> {
        None
    }

    /// Predicts all items and puts the outputs into words.
    fn predict(
        &self,
        model: Self::Model,
        session: &mut Session,
        items: &[Self::Item],
    ) -> Result<Vec<Answer>, PredictError>;
}

/// The input of a prediction.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The content of a file, with its name for messages.
    Content {
        /// The bytes.
        bytes: &'a [u8],
        /// The name of the file.
        file: &'a str,
    },
    /// A folder.
    Folder(&'a Path),
}

impl<'a> Input<'a> {
    /// Reads the files of a folder. A file is an error.
    pub(super) fn folder<T>(
        self,
        expected: &str,
        read: impl FnOnce(&'a Path) -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        match self {
            Self::Folder(folder) => read(folder),
            Self::Content { file, .. } => {
                Err(DataError::in_file(file, format!("a folder with {expected}"), "a file"))
            }
        }
    }

    /// Parses the content of a file. A folder is an error.
    pub(super) fn file<T>(
        self,
        expected: &str,
        parse: impl FnOnce(&'a [u8], &'a str) -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        match self {
            Self::Content { bytes, file } => parse(bytes, file),
            Self::Folder(path) => Err(DataError::in_file(
                &path.display().to_string(),
                format!("a file with {expected}"),
                "a folder",
            )),
        }
    }
}

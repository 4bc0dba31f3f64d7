//! Models with learnable instances from a corpus or a generator, split into a training part and a validation
//! part.
//!
//! The catalogue serves speed benchmarks and has random labels. The labels here follow from the content of the
//! instances. A lesson reads a corpus from its folder in the published form. Without a corpus,
//! [`generate`](crate::data::generate) makes the same structs, so both use the same vocabulary and numbering
//! code. The training part alone determines the numbers of words.
//!
//! | model | corpus | folder |
//! |---|---|---|
//! | `mnist` | handwritten digits | the two IDX files |
//! | `treelstm` | ListOps | `d8.tsv` |
//! | `similarity` | SICK with dependency parses | `train/`, `valid/` |
//! | `tagger`, `chartagger` | WikiNER | `train.txt`, `valid.txt` |
//! | `names` | names of 18 languages | one file per language |
//! | `acceptor`, `treernn`, `sentiment` | Stanford Sentiment Treebank | `train.txt`, `valid.txt` |
//! | `parser` | a treebank in CoNLL-U | `train.conllu`, `valid.conllu` |
//! | `lattice` | characters with dictionary words | `train.txt` |

mod classify;
mod structured;
mod tag;

use crate::catalogue::{Entry, OpenError, entry};
use crate::data::sampling;
use crate::model::{Bound, Workload};
use crate::parser::greedy::Parsing;
use crate::{Model, catalogue};
use autobatch::prelude::{Module, ModuleBuilder};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The options of a lesson. `None` means the value of [`Habits`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder of the corpus.
    pub data: Option<PathBuf>,
    /// The seed of generated instances.
    pub seed: u64,
    /// The number of training instances. A corpus uses its first instances.
    pub count: Option<usize>,
    /// The width of states.
    pub hidden: Option<usize>,
    /// The width of input vectors.
    pub embedding: Option<usize>,
}

/// The usual training options of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Habits {
    /// The number of epochs.
    pub epochs: u64,
    /// The number of instances per minibatch.
    pub batch: usize,
    /// The learning rate of Adam.
    pub learning_rate: f64,
    /// The number of generated training instances; a fifth of that number is held out.
    pub generated: usize,
}

/// Returns the usual training options of an entry's model.
#[must_use]
pub fn habits(entry: &Entry) -> Habits {
    let (epochs, batch, learning_rate, generated) = match entry.name {
        "a" => (6, 32, 1e-3, 1000),
        "b" => (8, 32, 2e-3, 800),
        "c" => (6, 25, 2e-3, 500),
        "d" => (5, 16, 2e-3, 400),
        "dchar" => (4, 16, 2e-3, 200),
        "e" => (8, 64, 4e-3, 1500),
        "f1" => (6, 32, 2e-3, 800),
        "f2" => (6, 32, 5e-4, 400),
        "g" => (4, 16, 2e-3, 200),
        "lattice" => (4, 8, 2e-3, 100),
        _ => (5, 25, 1e-3, 400),
    };
    Habits { epochs, batch, learning_rate, generated }
}

/// A model with training and validation instances.
pub struct Lesson {
    /// The entry of the model.
    pub entry: &'static Entry,
    /// The usual training options of the model.
    pub habits: Habits,
    /// The parameters and cells of the model.
    pub module: Arc<Module>,
    /// Emits and scores the instances.
    pub workload: Box<dyn Workload>,
    /// The number of training instances; they come first.
    pub train: usize,
    /// The origin of the instances, in words.
    pub source: String,
    /// The size of each instance. Minibatches may group instances of similar size.
    pub sizes: Vec<usize>,
    /// The validation sentences for greedy parsing, if the model is a parser.
    pub parsing: Option<Parsing>,
}

impl fmt::Debug for Lesson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lesson")
            .field("entry", &self.entry.name)
            .field("train", &self.train)
            .field("instances", &self.workload.instances())
            .finish_non_exhaustive()
    }
}

impl Lesson {
    /// Returns the numbers of the training instances.
    #[must_use]
    pub fn train(&self) -> Vec<usize> {
        (0..self.train).collect()
    }

    /// Returns the numbers of the validation instances.
    #[must_use]
    pub fn valid(&self) -> Vec<usize> {
        (self.train..self.workload.instances()).collect()
    }
}

/// Opens a lesson by the name of its model.
///
/// # Errors
/// Returns an error if the name is unknown, a size is out of range, or the corpus cannot be read or is too small.
pub fn open(name: &str, options: &Options) -> Result<Lesson, OpenError> {
    let entry = entry(name)?;
    let widths = catalogue::Options {
        hidden: options.hidden,
        embedding: options.embedding,
        count: options.count,
        ..catalogue::Options::default()
    };
    let (hidden, embedding) = catalogue::widths(entry, &widths)?;
    let mut m = ModuleBuilder::new(entry.alias);
    let mut course = Course { m: &mut m, options, habits: habits(entry), hidden, embedding };
    let taught = match entry.name {
        "a" => classify::digits(&mut course)?,
        "b" => classify::expressions(&mut course)?,
        "c" => structured::similarity(&mut course)?,
        "d" => tag::words(&mut course)?,
        "dchar" => tag::spelled(&mut course)?,
        "e" => classify::names(&mut course)?,
        "f1" => classify::sentences(&mut course)?,
        "f2" => classify::trees(&mut course)?,
        "g" => structured::parser(&mut course)?,
        "lattice" => tag::lattice(&mut course)?,
        _ => structured::sentiment(&mut course)?,
    };
    let Taught { workload, train, sizes, parsing } = taught;
    let source = match &options.data {
        Some(path) => path.display().to_string(),
        None => format!("generated, seed {}", options.seed),
    };
    Ok(Lesson { entry, habits: habits(entry), module: m.build()?, workload, train, source, sizes, parsing })
}

/// The inputs of a lesson.
struct Course<'a> {
    m: &'a mut ModuleBuilder,
    options: &'a Options,
    habits: Habits,
    hidden: usize,
    embedding: usize,
}

/// The parts of a finished lesson.
struct Taught {
    workload: Box<dyn Workload>,
    train: usize,
    sizes: Vec<usize>,
    parsing: Option<Parsing>,
}

/// Training instances and validation instances.
struct Parts<T> {
    train: Vec<T>,
    valid: Vec<T>,
}

impl Course<'_> {
    fn count(&self) -> usize {
        self.options.count.unwrap_or(self.habits.generated)
    }

    /// Reads the parts of a corpus with `read`, or generates them from two seeds with `generate`.
    fn parts<T>(
        &self,
        read: impl FnOnce(&Path) -> Result<Parts<T>, OpenError>,
        generate: impl Fn(u64, usize) -> Vec<T>,
    ) -> Result<Parts<T>, OpenError> {
        let parts = match &self.options.data {
            Some(path) => {
                let mut parts = read(path)?;
                parts.train.truncate(self.options.count.unwrap_or(usize::MAX));
                parts
            }
            None => {
                let (seed, count) = (self.options.seed, self.count());
                let valid = generate(seed ^ 0x5eed_0000_0000_0001, (count / 5).max(2));
                Parts { train: generate(seed, count), valid }
            }
        };
        let to = match (parts.train.is_empty(), parts.valid.is_empty()) {
            (true, _) => "learn from",
            (_, true) => "be measured on",
            (false, false) => return Ok(parts),
        };
        // Generators always make at least one instance.
        Err(OpenError::NoInstances { path: self.options.data.clone().unwrap_or_default(), to })
    }
}

impl<T> Parts<T> {
    /// Holds out `permille` of 1000 items of a corpus that is published in one part. The choice never
    /// changes.
    fn split(items: Vec<T>, permille: u32) -> Self {
        let (train, valid) = sampling::split(items, permille, 1);
        Self { train, valid }
    }

    /// Makes the lesson of these parts.
    fn taught<M: Model + 'static>(
        self,
        model: M,
        number: impl Fn(&T) -> M::Instance,
        size: impl Fn(&T) -> usize,
    ) -> Taught {
        let train = self.train.len();
        let all = || self.train.iter().chain(&self.valid);
        let sizes = all().map(size).collect();
        let instances = all().map(number).collect();
        Taught { workload: Box::new(Bound { model, instances }), train, sizes, parsing: None }
    }
}

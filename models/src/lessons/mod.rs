//! Models with learnable instances from a corpus or a generator, in three parts: for training, for choosing the best
//! epoch, and for the test.
//!
//! The catalogue serves speed benchmarks and has random labels. The labels here follow from the content of the
//! instances. A lesson reads a corpus from its folder in the published form; [`Corpus`](crate::catalogue::Corpus)
//! describes the files. Without a corpus, [`generate`](crate::data::generate) makes the same structs, so both use the
//! same vocabulary and numbering code. The training part alone determines the numbers of words. The
//! [specification](Lesson::specification) of a lesson holds these numbers, so [`Predictor`] needs no corpus.

mod answer;
mod chunks;
pub(crate) mod classify;
pub(crate) mod graphs;
pub(crate) mod language;
mod parts;
pub(crate) mod structured;
pub(crate) mod tag;
mod task;
mod translate;

pub use answer::{Answer, PredictError, Predicted, Unknown};
pub use chunks::{Chunk, Chunks, Units};
pub use parts::CorpusPart;
pub use task::Input;
pub(crate) use task::{Task, Widths};

use crate::catalogue::{Entry, Habits, OpenError, Options, Sizes, entry};
use crate::data::DataError;
use crate::model::{Instances, Workload};
use crate::parser::greedy::Parsing;
use autobatch::Session;
use autobatch::prelude::{Module, ModuleBuilder};
use parts::Parts;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A model with the instances of all parts.
pub struct Lesson {
    /// The entry of the model.
    pub entry: &'static Entry,
    /// The usual training options of the model.
    pub habits: Habits,
    /// The parameters and cells of the model.
    pub module: Arc<Module>,
    /// Emits and scores the instances.
    pub workload: Box<dyn Workload>,
    /// The origin of the instances, in words.
    pub source: String,
    /// The size of each instance. Minibatches may group instances of similar size.
    pub sizes: Vec<usize>,
    /// The sentences of the test part for greedy parsing, if the model is a parser.
    pub parsing: Option<Parsing>,
    /// The widths of the model and the numbers of its words and classes, as JSON; see [`Predictor::new`].
    pub specification: String,
    /// The number of instances of each part. The instances are in the order of [`Part::ALL`].
    counts: [usize; 3],
}

impl fmt::Debug for Lesson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lesson")
            .field("entry", &self.entry.name)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Lesson {
    /// Returns the numbers of the instances of a part.
    #[must_use]
    pub fn part(&self, part: CorpusPart) -> Range<usize> {
        let start: usize = self.counts[..part as usize].iter().sum();
        start..start + self.counts[part as usize]
    }

    /// Returns the numbers of the training instances.
    #[must_use]
    pub fn train(&self) -> Vec<usize> {
        self.part(CorpusPart::Train).collect()
    }
}

/// The widths of a model and its task as JSON. Checkpoints store it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Specification {
    model: String,
    hidden: usize,
    embedding: usize,
    /// The numbers of words and classes.
    task: serde_json::Value,
}

impl Specification {
    fn read(text: &str) -> Result<(Self, &'static Entry), OpenError> {
        let damaged = |error: serde_json::Error| OpenError::Specification(error.to_string());
        let read: Self = serde_json::from_str(text).map_err(damaged)?;
        let entry = entry(&read.model)?;
        Ok((read, entry))
    }

    /// The widths, after a check of their range.
    fn widths(&self, entry: &'static Entry) -> Result<Widths, OpenError> {
        let embedding = (entry.embedding > 0).then_some(self.embedding);
        let options = Options { hidden: Some(self.hidden), embedding, ..Options::default() };
        Ok(Sizes::of(entry, &options)?.widths())
    }
}

/// The options of a lesson, whose instances come from its corpus or its generator.
fn of_lesson(options: &Options) -> Result<Options, OpenError> {
    match &options.instances {
        Some(file) => Err(OpenError::NoLesson(file.clone())),
        None => Ok(options.clone()),
    }
}

/// Opens a lesson by the name of its model.
///
/// # Errors
/// Returns an error if the name is unknown, a size is out of range, or the corpus cannot be read or is too small.
pub fn open(name: &str, options: &Options) -> Result<Lesson, OpenError> {
    let entry = entry(name)?;
    let widths = Sizes::of(entry, &of_lesson(options)?)?.widths();
    (entry.door.lesson)(entry, options, widths, None)
}

/// Opens a lesson whose model has the words, classes and widths of a [specification](Lesson::specification). The
/// options give the instances; their widths are ignored.
///
/// # Errors
/// As [`open`]. Returns an error if the specification is malformed, or if an instance has an unknown class.
pub fn open_trained(specification: &str, options: &Options) -> Result<Lesson, OpenError> {
    let (read, entry) = Specification::read(specification)?;
    let widths = read.widths(entry)?;
    let options = &Options { hidden: None, embedding: None, ..of_lesson(options)? };
    Sizes::of(entry, options)?;
    (entry.door.lesson)(entry, options, widths, Some(read.task))
}

/// Separates the random numbers of the generated parts.
const SALTS: [u64; 2] = [0x5eed_0000_0000_0001, 0x5eed_0000_0000_0002];

/// Reads or generates the parts, and makes the lesson. Without a given task the training part determines it.
pub(crate) fn lesson<T: Task>(
    entry: &'static Entry,
    options: &Options,
    widths: Widths,
    given: Option<serde_json::Value>,
) -> Result<Lesson, OpenError> {
    let parts = parts::<T>(entry, options)?;
    let task = match given {
        None => T::learn(&parts),
        Some(value) => task_of::<T>(value)?,
    };
    let mut m = ModuleBuilder::new(entry.name);
    let model = task.model(&mut m, widths);
    let source = match &options.corpus {
        Some(path) => path.display().to_string(),
        None => format!("generated, seed {}", options.seed),
    };
    let instance = |(number, item)| {
        task.number(item).map_err(|reason| OpenError::Instance { source: source.clone(), number, reason })
    };
    let instances = (1..).zip(parts.all()).map(instance).collect::<Result<Vec<_>, _>>()?;
    let specification = Specification {
        model: entry.name.to_owned(),
        hidden: widths.hidden,
        embedding: widths.embedding,
        task: serde_json::to_value(&task).map_err(|error| OpenError::Specification(error.to_string()))?,
    };
    Ok(Lesson {
        entry,
        habits: entry.habits,
        module: m.build()?,
        sizes: parts.all().map(T::size).collect(),
        parsing: task.parsing(model.clone(), &parts.test),
        counts: [parts.train.len(), parts.development.len(), parts.test.len()],
        workload: Box::new(Instances { model, instances }),
        specification: serde_json::json!(specification).to_string(),
        source,
    })
}

fn task_of<T: Task>(value: serde_json::Value) -> Result<T, OpenError> {
    serde_json::from_value(value).map_err(|error| OpenError::Specification(error.to_string()))
}

/// Reads the parts of the corpus, or generates them.
fn parts<T: Task>(entry: &'static Entry, options: &Options) -> Result<Parts<T::Item>, OpenError> {
    let parts = match &options.corpus {
        Some(folder) => {
            check_folder(entry, folder)?;
            let of_corpus = |error| OpenError::Corpus { entry, error };
            let mut parts = T::read(folder).map_err(of_corpus)?.split();
            parts.train.truncate(options.count.unwrap_or(usize::MAX));
            parts
        }
        None => {
            let (seed, count) = (options.seed, options.count.unwrap_or(entry.habits.generated));
            let [development, test] = SALTS.map(|salt| T::generate(seed ^ salt, (count / 5).max(2)));
            Parts { train: T::generate(seed, count), development, test }
        }
    };
    match parts.empty() {
        None => Ok(parts),
        // Generators always make at least one instance.
        Some(part) => {
            let path = options.corpus.clone().unwrap_or_default();
            Err(OpenError::NoInstances { path, to: part.purpose() })
        }
    }
}

/// Checks that the path of a corpus is a folder.
fn check_folder(entry: &'static Entry, path: &Path) -> Result<(), OpenError> {
    let found = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => "a file".to_owned(),
        Err(error) => error.to_string(),
    };
    let error = DataError::in_file(&path.display().to_string(), "the folder of the corpus", found);
    Err(OpenError::Corpus { entry, error })
}

/// A model that reads items and puts its outputs into words.
pub struct Predictor {
    /// The entry of the model.
    pub entry: &'static Entry,
    /// The parameters and cells of the model.
    pub module: Arc<Module>,
    /// The extent of an instance in an input, by which [`Chunks`] cuts it.
    pub units: Units,
    predict: PredictFn,
}

/// Reads the items of an input and predicts them with a session of the model.
type PredictFn = Box<dyn Fn(&mut Session, Input<'_>) -> Result<Predicted, PredictError> + Send + Sync>;

impl fmt::Debug for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predictor").field("entry", &self.entry.name).finish_non_exhaustive()
    }
}

impl Predictor {
    /// Makes the model of a [specification](Lesson::specification).
    ///
    /// # Errors
    /// Returns an error if the specification is malformed.
    pub fn new(specification: &str) -> Result<Self, OpenError> {
        let (read, entry) = Specification::read(specification)?;
        let widths = read.widths(entry)?;
        (entry.door.predictor)(entry, widths, read.task)
    }

    /// Predicts the items of an input with a session of [`module`](Self::module). The input has the form of the corpus, and
    /// may lack the answers.
    ///
    /// # Errors
    /// Returns an error if the input does not follow the form of the corpus, or if the execution fails.
    pub fn predict(&self, session: &mut Session, input: Input<'_>) -> Result<Predicted, PredictError> {
        (self.predict)(session, input)
    }

    /// Predicts a chunk of a file. Errors name lines and instances of the file.
    ///
    /// # Errors
    /// As [`predict`](Self::predict).
    pub fn predict_chunk(
        &self,
        session: &mut Session,
        chunk: &Chunk,
        file: &str,
    ) -> Result<Predicted, PredictError> {
        let predicted = self.predict(session, Input::Content { bytes: &chunk.bytes, file });
        predicted.map_err(|error| match error {
            PredictError::Data(error) => error.after_lines(chunk.lines_before).into(),
            PredictError::Item { number, reason } => {
                PredictError::Item { number: number + chunk.instances_before, reason }
            }
            PredictError::Execute(error) => PredictError::Execute(error),
        })
    }
}

pub(crate) fn predictor<T: Task>(
    entry: &'static Entry,
    widths: Widths,
    value: serde_json::Value,
) -> Result<Predictor, OpenError> {
    let task = task_of::<T>(value)?;
    let mut m = ModuleBuilder::new(entry.name);
    let model = task.model(&mut m, widths);
    let predict = move |session: &mut Session, input: Input<'_>| {
        let items = T::parse(input)?;
        let mut unknown = Unknown::default();
        items.iter().for_each(|item| task.count_unknown(item, &mut unknown));
        Ok(Predicted { answers: task.predict(model.clone(), session, &items)?, unknown })
    };
    Ok(Predictor { entry, module: m.build()?, units: T::UNITS, predict: Box::new(predict) })
}

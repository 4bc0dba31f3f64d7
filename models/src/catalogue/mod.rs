//! Models by name, with the sizes of the comparative benchmarks and with instances. The instances come from the
//! JSON of the other systems' scripts or from a generator.

mod entries;

pub use entries::{Corpus, ENTRIES, Entry, entry, entry_or_letter};

use crate::acceptor::Acceptor;
use crate::char_tagger::{Alphabet, CharTagger, Word};
use crate::data::generate::{lattices, sentiment as treebank, tagged, translations};
use crate::data::parallel::Languages;
use crate::data::peers::{self, Images, Letters, Pairs, Parses, Sequences, Tagged, Trees};
use crate::data::vocab::Vocab;
use crate::data::{DataError, lattice, wikiner};
use crate::lattice_tagger::{Counts, Lattice, LatticeTagger};
use crate::mnist::Mnist;
use crate::model::{Bound, First, Workload};
use crate::names::Names;
use crate::parser::Parser;
use crate::sentiment::Sentiment;
use crate::similarity::Similarity;
use crate::spinn::Spinn;
use crate::tagger::Tagger;
use crate::transformer::Transformer;
use crate::tree_rnn::TreeRnnClassifier;
use crate::{Model, lessons, parser, similarity, tagger};
use autobatch::ir::EmitError;
use autobatch::prelude::{Module, ModuleBuilder};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The options of a model. `None` means the value of the entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder of the corpus; its training instances replace the generated ones.
    pub corpus: Option<PathBuf>,
    /// A JSON file of instances in the format of the comparative benchmarks; see [`peers`].
    pub instances: Option<PathBuf>,
    /// The seed of generated instances.
    pub seed: u64,
    /// The number of instances to generate.
    pub count: Option<usize>,
    /// The number of instances per graph.
    pub batch: Option<usize>,
    /// The width of states.
    pub hidden: Option<usize>,
    /// The width of input vectors.
    pub embedding: Option<usize>,
    /// The common length of all generated sentences of `tagger` and `transformer`.
    pub same: Option<u32>,
}

/// The maximum width. At this width the weight of one gate takes a gigabyte.
const MAX_WIDTH: usize = 16_384;
/// The maximum number of generated instances.
const MAX_INSTANCES: usize = 1_000_000;

/// The reason why a model cannot be opened.
pub enum OpenError {
    /// No entry has the name.
    Unknown(
        /// The name.
        String,
    ),
    /// A size is out of range, or the model has no such size.
    Size {
        /// The name of the size.
        what: &'static str,
        /// The allowed values.
        expected: String,
        /// The requested value.
        found: usize,
    },
    /// The entry cannot read instances from a file.
    NoFile(
        /// The name of the entry.
        &'static str,
    ),
    /// A part of a corpus is empty.
    NoInstances {
        /// The corpus.
        path: PathBuf,
        /// The purpose of the part.
        to: &'static str,
    },
    /// The JSON file of instances could not be read.
    Data(DataError),
    /// The corpus could not be read.
    Corpus {
        /// The entry of the model.
        entry: &'static Entry,
        /// The reason.
        error: DataError,
    },
    /// The model cannot read an instance.
    Instance {
        /// The origin of the instance.
        source: String,
        /// The number of the instance, from 1.
        number: usize,
        /// The reason.
        reason: String,
    },
    /// The description of a trained model is malformed.
    Specification(
        /// The reason.
        String,
    ),
    /// The emitter rejects the model.
    Emit(EmitError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let names = ENTRIES.map(|entry| entry.name);
                write!(f, "unknown model `{name}`: expected one of {}", names.join(", "))?;
                match entry_or_letter(name) {
                    Ok(entry) => write!(f, "; did you mean {}?", entry.name),
                    Err(_) => Ok(()),
                }
            }
            Self::Size { what, expected, found } => write!(f, "{what} must be {expected}, found {found}"),
            Self::NoFile(name) => {
                write!(
                    f,
                    "model `{name}` has no JSON form of instances; name the folder of its corpus or generate instances"
                )
            }
            Self::NoInstances { path, to } => {
                write!(
                    f,
                    "{}: expected at least one instance to {to}, found none; name another corpus",
                    path.display()
                )
            }
            Self::Data(error) | Self::Corpus { error, .. } => error.fmt(f),
            Self::Instance { source, number, reason } => write!(f, "{source}: instance {number}: {reason}"),
            Self::Specification(reason) => {
                write!(f, "the description of the trained model is malformed: {reason}")
            }
            Self::Emit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

autobatch::ir::debug_as_display!(OpenError);

impl From<DataError> for OpenError {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<EmitError> for OpenError {
    fn from(error: EmitError) -> Self {
        Self::Emit(error)
    }
}

/// A model with instances, ready to execute.
pub struct Problem {
    /// The entry of the model.
    pub entry: &'static Entry,
    /// The parameters and cells of the model.
    pub module: Arc<Module>,
    /// Emits the instances.
    pub workload: Box<dyn Workload>,
    /// The number of instances per graph.
    pub batch: usize,
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Problem")
            .field("entry", &self.entry.name)
            .field("instances", &self.workload.instances())
            .field("batch", &self.batch)
            .finish_non_exhaustive()
    }
}

/// Opens a model by its name.
///
/// # Errors
/// Returns an error if the name is unknown, an option does not fit, or the file cannot be read.
pub fn open(name: &str, options: &Options) -> Result<Problem, OpenError> {
    let entry = entry(name)?;
    let sizes = Sizes::of(entry, options)?;
    if let Some(folder) = &options.corpus {
        return of_corpus(entry, folder, &sizes);
    }
    let mut m = ModuleBuilder::new(entry.name);
    let workload = match entry.name {
        "mnist" => mnist(&mut m, &sizes)?,
        "treelstm" => spinn(&mut m, &sizes)?,
        "similarity" => similarity(&mut m, &sizes)?,
        "tagger" => tagger(&mut m, &sizes)?,
        "chartagger" => char_tagger(&mut m, &sizes)?,
        "names" => names(&mut m, &sizes)?,
        "acceptor" => acceptor(&mut m, &sizes)?,
        "treernn" => tree_rnn(&mut m, &sizes)?,
        "parser" => parser(&mut m, &sizes)?,
        "lattice" => lattice_tagger(&mut m, &sizes)?,
        "sentiment" => sentiment(&mut m, &sizes)?,
        "transformer" => transformer(&mut m, &sizes)?,
        _ => translate(&mut m, &sizes)?,
    };
    Ok(Problem { entry, module: m.build()?, workload, batch: sizes.batch })
}

/// Opens a model with the training instances of its corpus.
fn of_corpus(entry: &'static Entry, folder: &Path, sizes: &Sizes<'_>) -> Result<Problem, OpenError> {
    let Options { seed, count, hidden, embedding, .. } = *sizes.options;
    let count = count.or(sizes.options.batch.filter(|_| entry.count == entry.batch));
    let options = lessons::Options { data: Some(folder.to_owned()), seed, count, hidden, embedding };
    let lesson = lessons::open(entry.name, &options)?;
    let workload = Box::new(First { count: lesson.train().len(), workload: lesson.workload });
    Ok(Problem { entry, module: lesson.module, workload, batch: sizes.batch })
}

/// The sizes of an entry, with the options applied.
struct Sizes<'a> {
    entry: &'static Entry,
    options: &'a Options,
    hidden: usize,
    embedding: usize,
    count: usize,
    batch: usize,
}

impl<'a> Sizes<'a> {
    fn of(entry: &'static Entry, options: &'a Options) -> Result<Self, OpenError> {
        let size = |what, asked: Option<usize>, usual, most| match asked {
            None => Ok(usual),
            Some(size) if (1..=most).contains(&size) => Ok(size),
            Some(found) => Err(OpenError::Size { what, expected: format!("1 to {most}"), found }),
        };
        if let (Some(found), 0) = (options.embedding, entry.embedding) {
            let expected = format!("left out: model `{}` has none of its own", entry.name);
            return Err(OpenError::Size { what: "embedding", expected, found });
        }
        if let (Some(found), true) = (options.same, !["tagger", "transformer"].contains(&entry.name)) {
            let expected = format!("left out: model `{}` has no equal lengths", entry.name);
            return Err(OpenError::Size { what: "same", expected, found: found as usize });
        }
        size("same", options.same.map(|length| length as usize), 1, 1000)?;
        // A step is one graph, except for models whose step is a pass over a data set.
        let one_graph = options.batch.filter(|_| entry.count == entry.batch);
        // The batch size comes first, because it may replace the count.
        let batch = size("batch", options.batch, entry.batch, MAX_INSTANCES)?;
        Ok(Sizes {
            entry,
            options,
            hidden: size("hidden", options.hidden, entry.hidden, MAX_WIDTH)?,
            embedding: size("embedding", options.embedding, entry.embedding, MAX_WIDTH)?,
            count: size("count", options.count.or(one_graph), entry.count, MAX_INSTANCES)?,
            batch,
        })
    }

    /// Reads the instances of the file, or generates instances.
    fn read<W: peers::Workload>(&self, generate: impl FnOnce(u64, usize) -> W) -> Result<W, OpenError> {
        match &self.options.instances {
            Some(path) => Ok(peers::read(path)?),
            None => Ok(generate(self.options.seed, self.count)),
        }
    }

    /// Rejects a file for models that always generate their instances.
    fn no_file(&self) -> Result<(), OpenError> {
        match self.options.instances {
            Some(_) => Err(OpenError::NoFile(self.entry.name)),
            None => Ok(()),
        }
    }
}

/// Returns the widths of states and input vectors with the options applied.
pub(crate) fn widths(entry: &'static Entry, options: &Options) -> Result<(usize, usize), OpenError> {
    let sizes = Sizes::of(entry, options)?;
    Ok((sizes.hidden, sizes.embedding))
}

/// Checks the number of instances to generate or to read.
pub(crate) fn check_count(entry: &'static Entry, count: Option<usize>) -> Result<(), OpenError> {
    Sizes::of(entry, &Options { count, ..Options::default() }).map(|_| ())
}

type Opened = Result<Box<dyn Workload>, OpenError>;

fn bound<M: Model + 'static>(model: M, instances: Vec<M::Instance>) -> Opened {
    Ok(Box::new(Bound { model, instances }))
}

fn mnist(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    let images: Images = sizes.read(|seed, count| Images::generate(seed, count as u32))?;
    bound(Mnist::new(m, sizes.hidden), images.instances().collect())
}

fn spinn(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    let trees: Trees = sizes.read(|seed, count| Trees::generate(seed, count, 20.0, Trees::WORDS))?;
    let model = Spinn::new(m, trees.word_rows(), sizes.hidden, Trees::CLASSES as usize);
    bound(model, trees.instances().map(|(tree, class)| (tree.clone(), class)).collect())
}

fn similarity(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    let pairs: Pairs = sizes.read(Pairs::generate)?;
    let widths = similarity::Widths { embedding: sizes.embedding, memory: sizes.hidden, hidden: 50 };
    bound(Similarity::new(m, pairs.word_rows(), widths), pairs.pairs)
}

fn tagger_widths(sizes: &Sizes<'_>) -> tagger::Widths {
    tagger::Widths { embedding: sizes.embedding, hidden: sizes.hidden, head: 32 }
}

fn tagger(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    let data: Tagged = sizes.read(|seed, count| Tagged::generate(seed, count, sizes.options.same))?;
    let model = Tagger::new(m, data.word_rows(), data.tag_count(), tagger_widths(sizes));
    bound(model, data.words.into_iter().zip(data.tags).collect())
}

/// The tagger spells a word unless it occurs more often than this in a thousand other sentences of the
/// language.
const RARE: u64 = 5;

fn char_tagger(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    sizes.no_file()?;
    let others = tagged::sentences(sizes.options.seed.wrapping_add(1), 1000, tagged::LENGTHS);
    let read: Vec<&str> = others.iter().flat_map(|s| &s.tokens).map(|token| token.word.as_str()).collect();
    let words = Vocab::build(read.iter().copied(), RARE + 1);
    let letters = Vocab::build_chars(read.iter().copied(), 1);
    let word = |token: &wikiner::Token| match words.id(&token.word) {
        0 => Word::Spelled(letters.char_ids(&token.word)),
        known => Word::Known(known),
    };
    let sentences = tagged::sentences(sizes.options.seed, sizes.count, tagged::LENGTHS);
    let numbered = |sentence: &wikiner::Sentence| {
        let tags = sentence.tokens.iter().map(|token| token.tag.index()).collect();
        (sentence.tokens.iter().map(word).collect(), tags)
    };
    let alphabet = Alphabet { words: words.size(), letters: letters.size(), width: 20 };
    let model = CharTagger::new(m, alphabet, wikiner::Tag::COUNT as usize, tagger_widths(sizes));
    bound(model, sentences.iter().map(numbered).collect())
}

fn names(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    let data: Letters = sizes.read(Letters::generate)?;
    let model = Names::new(m, Letters::CHARACTERS as usize, sizes.hidden, Letters::CLASSES as usize);
    bound(model, data.chars.into_iter().zip(data.labels).collect())
}

fn acceptor(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    let data: Sequences = sizes.read(Sequences::generate)?;
    let classes = Sequences::CLASSES as usize;
    let model = Acceptor::new(m, data.word_rows(), sizes.embedding, sizes.hidden, classes);
    bound(model, data.words.into_iter().zip(data.labels).collect())
}

fn tree_rnn(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    let trees: Trees = sizes.read(|seed, count| Trees::generate(seed, count, 20.0, Trees::WORDS))?;
    let model = TreeRnnClassifier::new(m, trees.word_rows(), sizes.hidden, Trees::CLASSES as usize);
    bound(model, trees.instances().map(|(tree, class)| (tree.clone(), class)).collect())
}

fn parser(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    let data: Parses = sizes.read(Parses::generate)?;
    let widths = parser::Widths { embedding: sizes.embedding, action: 20, hidden: sizes.hidden };
    let model = Parser::new(m, Parses::WORDS as usize, widths);
    bound(model, data.words.into_iter().zip(data.actions).collect())
}

fn lattice_tagger(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    sizes.no_file()?;
    let sentences = lattices::sentences(sizes.options.seed, sizes.count, lattices::LENGTHS);
    let spelled: Vec<String> = sentences.iter().map(|s| s.chars.iter().collect()).collect();
    let chars = Vocab::build_chars(spelled.iter().map(String::as_str), 1);
    let texts: Vec<String> =
        sentences.iter().flat_map(|s| s.spans.iter().map(|&span| s.text(span))).collect();
    let words = Vocab::build(texts.iter().map(String::as_str), 1);
    let labels: Vec<String> = sentences.iter().flat_map(|s| &s.labels).map(ToString::to_string).collect();
    let tags = Vocab::build(labels.iter().map(String::as_str), 1);
    let numbered = |(sentence, text): (&lattice::Sentence, &String)| {
        // Words of one character add no information to the character.
        let longer = sentence.spans.iter().filter(|span| span.end - span.start > 1);
        let word = |span: &lattice::Span| {
            (span.start as usize, span.end as usize - 1, words.id(&sentence.text(*span)))
        };
        let tags = sentence.labels.iter().map(|label| tags.id(&label.to_string())).collect();
        Lattice { chars: chars.char_ids(text), words: longer.map(word).collect(), tags }
    };
    let instances = sentences.iter().zip(&spelled).map(numbered).collect();
    let counts = Counts { chars: chars.size(), words: words.size(), tags: tags.size() };
    bound(LatticeTagger::new(m, counts, sizes.embedding, sizes.hidden), instances)
}

fn sentiment(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    sizes.no_file()?;
    let trees = treebank::trees(sizes.options.seed, sizes.count, treebank::LENGTHS);
    let words = Vocab::build(trees.iter().flat_map(|tree| tree.tree.leaves()).map(String::as_str), 1);
    let numbered = |tree: &crate::data::sst::Tree| {
        let labels = tree.labels.iter().map(|&label| u32::from(label)).collect();
        (tree.tree.map(|word| words.id(word)), labels)
    };
    let instances = trees.iter().map(numbered).collect();
    bound(Sentiment::new(m, words.size(), sizes.hidden), instances)
}

fn transformer(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    let data: Tagged = sizes.read(|seed, count| Tagged::generate(seed, count, sizes.options.same))?;
    let model = Transformer::new(m, data.word_rows(), data.tag_count(), sizes.hidden);
    bound(model, data.words.into_iter().zip(data.tags).collect())
}

fn translate(m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    sizes.no_file()?;
    let pairs = translations::pairs(sizes.options.seed, sizes.count);
    let languages = Languages::learn(&pairs, 1);
    bound(languages.translator(m, sizes.hidden), pairs.iter().map(|pair| languages.number(pair)).collect())
}

//! Options of models, and the sizes that follow from them.

use super::entries::Entry;
use super::error::OpenError;
use crate::data::peers;
use crate::lessons::Widths;
use std::path::PathBuf;

/// The options of a model. `None` means the value of the entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The folder of the corpus, whose instances replace the generated ones.
    pub corpus: Option<PathBuf>,
    /// A JSON file of instances in the format of the comparative benchmarks; see [`peers`]. No lesson reads it.
    pub instances: Option<PathBuf>,
    /// The seed of generated instances.
    pub seed: u64,
    /// The number of instances: of a workload all, of a lesson those for training. A corpus uses its first ones.
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

/// The sizes of an entry, with the options applied.
pub(crate) struct Sizes<'a> {
    pub(crate) entry: &'static Entry,
    pub(crate) options: &'a Options,
    pub(crate) hidden: usize,
    pub(crate) embedding: usize,
    pub(crate) count: usize,
    pub(crate) batch: usize,
}

impl<'a> Sizes<'a> {
    pub(crate) fn of(entry: &'static Entry, options: &'a Options) -> Result<Self, OpenError> {
        let size = |what, asked: Option<usize>, usual, most| match asked {
            None => Ok(usual),
            Some(size) if (1..=most).contains(&size) => Ok(size),
            Some(found) => Err(OpenError::Size { what, expected: format!("1 to {most}"), found }),
        };
        if let (Some(found), 0) = (options.embedding, entry.embedding) {
            let expected = format!("left out: model `{}` has none of its own", entry.name);
            return Err(OpenError::Size { what: "embedding", expected, found });
        }
        if let (Some(found), false) = (options.same, entry.has_equal_lengths) {
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

    /// The widths of the model.
    pub(crate) fn widths(&self) -> Widths {
        Widths { hidden: self.hidden, embedding: self.embedding }
    }

    /// Reads the instances of the file, or generates instances.
    pub(crate) fn read<W: peers::Workload>(
        &self,
        generate: impl FnOnce(u64, usize) -> W,
    ) -> Result<W, OpenError> {
        match &self.options.instances {
            Some(path) => Ok(peers::read(path)?),
            None => Ok(generate(self.options.seed, self.count)),
        }
    }

    /// Rejects a file for models that always generate their instances.
    pub(crate) fn no_file(&self) -> Result<(), OpenError> {
        match self.options.instances {
            Some(_) => Err(OpenError::NoFile(self.entry.name)),
            None => Ok(()),
        }
    }
}

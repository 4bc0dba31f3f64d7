//! Models by name: with the sizes of the comparative benchmarks and their instances, or with learnable instances.
//!
//! An [`Entry`] has everything that a program needs to know about a model. [`open`] gives a workload to measure: its
//! instances come from a generator, from the training part of a corpus, or from the JSON of the other systems'
//! scripts. [`lessons`] give a model with something to learn.

mod door;
mod entries;
mod error;
mod options;

pub use entries::{Corpus, ENTRIES, Entry, Habits, entry, entry_or_letter};
pub use error::OpenError;
pub use options::Options;

pub(crate) use door::{Opened, generated, opened};
pub(crate) use options::Sizes;

use crate::lessons;
use crate::model::{First, Workload};
use autobatch::prelude::{Module, ModuleBuilder};
use std::fmt;
use std::sync::Arc;

/// A model with instances, ready to execute.
pub struct OpenModel {
    /// The entry of the model.
    pub entry: &'static Entry,
    /// The parameters and cells of the model.
    pub module: Arc<Module>,
    /// Emits the instances.
    pub workload: Box<dyn Workload>,
    /// The number of instances per graph.
    pub batch: usize,
}

impl fmt::Debug for OpenModel {
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
pub fn open(name: &str, options: &Options) -> Result<OpenModel, OpenError> {
    let entry = entry(name)?;
    let sizes = Sizes::of(entry, options)?;
    if options.corpus.is_some() {
        return of_corpus(&sizes);
    }
    let mut m = ModuleBuilder::new(entry.name);
    let workload = (entry.door.benchmark)(&mut m, &sizes)?;
    Ok(OpenModel { entry, module: m.build()?, workload, batch: sizes.batch })
}

/// Opens a model with the training instances of its corpus.
fn of_corpus(sizes: &Sizes<'_>) -> Result<OpenModel, OpenError> {
    let Sizes { entry, options, .. } = *sizes;
    let count = options.count.or(options.batch.filter(|_| entry.count == entry.batch));
    let lesson = lessons::open(entry.name, &Options { count, same: None, ..options.clone() })?;
    let workload = Box::new(First { count: lesson.train().len(), workload: lesson.workload });
    Ok(OpenModel { entry, module: lesson.module, workload, batch: sizes.batch })
}

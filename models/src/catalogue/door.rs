//! The functions behind an entry, whatever the types of its task.

use super::entries::Entry;
use super::error::OpenError;
use super::options::{Options, Sizes};
use crate::Model;
use crate::lessons::{Lesson, Predictor, Task, Widths, lesson, predictor};
use crate::model::{Instances, Workload};
use autobatch::prelude::ModuleBuilder;
use serde_json::Value as Json;

/// A workload, or the reason why it cannot be opened.
pub(crate) type Opened = Result<Box<dyn Workload>, OpenError>;

/// The functions of a task.
#[derive(Clone, Copy)]
pub(crate) struct Door {
    /// Declares the model, and makes or reads the instances of the comparative benchmarks.
    pub(crate) benchmark: fn(&mut ModuleBuilder, &Sizes<'_>) -> Opened,
    /// Makes a lesson, with the words and classes of a trained model if they are given.
    pub(crate) lesson: fn(&'static Entry, &Options, Widths, Option<Json>) -> Result<Lesson, OpenError>,
    /// Makes the predictor of a trained model.
    pub(crate) predictor: fn(&'static Entry, Widths, Json) -> Result<Predictor, OpenError>,
}

/// The functions of this task.
pub(crate) const fn door<T: Task>() -> Door {
    Door { benchmark: T::benchmark, lesson: lesson::<T>, predictor: predictor::<T> }
}

/// A model with its instances.
pub(crate) fn opened<M: Model + 'static>(model: M, instances: Vec<M::Instance>) -> Opened {
    Ok(Box::new(Instances { model, instances }))
}

/// A task with the instances that it generates. The comparative benchmarks have no instances of it.
pub(crate) fn generated<T: Task>(task: &T, m: &mut ModuleBuilder, sizes: &Sizes<'_>) -> Opened {
    sizes.no_file()?;
    let model = task.model(m, sizes.widths());
    let numbered = |(number, item)| {
        let source = || format!("generated, seed {}", sizes.options.seed);
        task.number(item).map_err(|reason| OpenError::Instance { source: source(), number, reason })
    };
    let items = T::generate(sizes.options.seed, sizes.count);
    opened(model, (1..).zip(&items).map(numbered).collect::<Result<_, _>>()?)
}

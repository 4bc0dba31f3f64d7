//! The binary format of update plans: one record per update, and a pool of the sources and targets they name.

use super::kernels::{KernelWriter, RawKernels};
use super::plans::{read_stores, records, write_stores};
use super::{Blob, Kind, LoadError, Text, open, read_file, seal};
use crate::plan::normal::check_store_names;
use crate::plan::{KernelId, StoreId, Update, UpdatePlan, UpdateSource, Verified};
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Serialize, Deserialize)]
struct RawUpdatePlan<'a> {
    /// The names of the module and of the stores, end to end.
    #[serde(borrow)]
    text: Blob<'a>,
    /// Length of the module's name, bound floats.
    head: Blob<'a>,
    /// As in a plan.
    stores: Blob<'a>,
    kernels: RawKernels<'a>,
    updates: Blob<'a>,
    names: Blob<'a>,
}

impl RawUpdatePlan<'_> {
    fn of(plan: &UpdatePlan) -> Self {
        let UpdatePlan { module, stores, floats, kernels, updates } = plan;
        let mut text = module.clone();
        let stores = write_stores(stores, &mut text);
        let mut kernel_writer = KernelWriter::default();
        kernels.iter().for_each(|kernel| kernel_writer.push(kernel));
        let [records, names] = write(updates);
        Self {
            text: Blob(text.into_bytes().into()),
            head: Blob::words(&[module.len() as u32, *floats]),
            stores: Blob::words(&stores),
            kernels: kernel_writer.finish(),
            updates: Blob::words(&records),
            names: Blob::words(&names),
        }
    }

    fn read(&self) -> Result<UpdatePlan, LoadError> {
        let mut text = Text::new(&self.text)?;
        let mut head = self.head.reader("head")?;
        let [module, floats] = head.array().and_then(|words| head.end().map(|()| words))?;
        let plan = UpdatePlan {
            module: text.take(module)?,
            stores: read_stores(&self.stores, &mut text)?,
            floats,
            kernels: self.kernels.read()?,
            updates: read(&self.updates, &self.names)?,
        };
        text.end()?;
        Ok(plan)
    }
}

impl UpdatePlan {
    /// The update plan as the bytes of an `.abu` file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        seal(Kind::Update, &RawUpdatePlan::of(self), 1 << 12)
    }

    /// The update plan in the bytes of an `.abu` file, verified.
    ///
    /// # Errors
    /// If the bytes are no such file or the plan breaks a rule.
    pub fn from_bytes(bytes: &[u8]) -> Result<Verified<Self>, LoadError> {
        let plan = open::<RawUpdatePlan<'_>>(Kind::Update, bytes)?.read()?;
        check_store_names(&plan.stores).map_err(LoadError::malformed)?;
        Ok(plan.verify()?)
    }

    /// Writes an `.abu` file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        crate::files::write(path.as_ref(), &self.to_bytes())
    }

    /// Reads an `.abu` file.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes), and if the file cannot be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Verified<Self>, LoadError> {
        read_file(Kind::Update, path.as_ref(), Self::from_bytes)
    }
}

/// A record contains kind, kernel, whether only sparse rows are updated, and the numbers of sources
/// and targets. The pool has two words per source or target: its kind and its number.
fn write(updates: &[Update]) -> [Vec<u32>; 2] {
    let (mut records, mut names) = (Vec::with_capacity(5 * updates.len()), Vec::new());
    for update in updates {
        let (kind, sparse) = match update {
            Update::Sumsq { .. } => (0, false),
            Update::Scalars { .. } => (1, false),
            Update::Apply { sparse, .. } => (2, *sparse),
        };
        let kernel = update.kernel().map_or(0, |kernel| kernel.0);
        let sources = update.sources().count() as u32;
        records.extend([kind, kernel, u32::from(sparse), sources, update.targets().len() as u32]);
        for source in update.sources() {
            names.extend(match source {
                UpdateSource::Store(store) => [0, store.0],
                UpdateSource::Scalar(scalar) => [1, scalar],
                UpdateSource::Float(float) => [2, float],
            });
        }
        names.extend(update.targets().iter().flat_map(|target| [0, target.0]));
    }
    [records, names]
}

fn read(updates: &Blob<'_>, names: &Blob<'_>) -> Result<Vec<Update>, LoadError> {
    let mut names = records(names, "names of updates", |words, [kind, number]: [u32; 2]| match kind {
        0 => Ok(UpdateSource::Store(StoreId(number))),
        1 => Ok(UpdateSource::Scalar(number)),
        2 => Ok(UpdateSource::Float(number)),
        _ => Err(words.refused(kind)),
    })?
    .into_iter();
    let made = records(updates, "updates", |words, [kind, kernel, sparse, sources, targets]: [u32; 5]| {
        if u64::from(sources) + u64::from(targets) > names.len() as u64 {
            return Err(words.refused(sources));
        }
        let sources: Vec<UpdateSource> = names.by_ref().take(sources as usize).collect();
        let targets: Vec<UpdateSource> = names.by_ref().take(targets as usize).collect();
        let (kernel, no_targets) = (KernelId(kernel), targets.is_empty());
        match (kind, kernel.0, sparse) {
            (0, 0, 0) if no_targets => Ok(Update::Sumsq { stores: stores(&sources)? }),
            (1, _, 0) if no_targets => Ok(Update::Scalars { kernel, sources }),
            (2, _, 0 | 1) => {
                Ok(Update::Apply { kernel, sparse: sparse == 1, sources, targets: stores(&targets)? })
            }
            _ => Err(words.refused(kind)),
        }
    })?;
    match names.next() {
        None => Ok(made),
        Some(_) => Err(LoadError::malformed("a source or target belongs to no update")),
    }
}

fn stores(names: &[UpdateSource]) -> Result<Vec<StoreId>, LoadError> {
    let store = |name: &UpdateSource| match name {
        UpdateSource::Store(store) => Ok(*store),
        other => Err(LoadError::malformed(format!("{other:?} is not a store"))),
    };
    names.iter().map(store).collect()
}

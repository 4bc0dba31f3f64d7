//! The binary format of updates: one record each, and a pool of the sources and targets they name.

use super::plans::records;
use super::{Blob, LoadError};
use crate::plan::{KernelId, StoreId, Update, UpdateSource};

/// A record contains kind, kernel, whether only sparse rows are updated, and the numbers of sources
/// and targets. The pool has two words per source or target: its kind and its number.
pub(super) fn write(updates: &[Update]) -> [Vec<u32>; 2] {
    let (mut records, mut names) = (Vec::with_capacity(5 * updates.len()), Vec::new());
    for update in updates {
        let (kind, touched) = match update {
            Update::Sumsq { .. } => (0, false),
            Update::Scalars { .. } => (1, false),
            Update::Apply { touched, .. } => (2, *touched),
        };
        let kernel = update.kernel().map_or(0, |kernel| kernel.0);
        let sources = update.sources().count() as u32;
        records.extend([kind, kernel, u32::from(touched), sources, update.targets().len() as u32]);
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

pub(super) fn read(updates: &Blob<'_>, names: &Blob<'_>) -> Result<Vec<Update>, LoadError> {
    let mut names = records(names, "names of updates", |words, [kind, number]: [u32; 2]| match kind {
        0 => Ok(UpdateSource::Store(StoreId(number))),
        1 => Ok(UpdateSource::Scalar(number)),
        2 => Ok(UpdateSource::Float(number)),
        _ => Err(words.refused(kind)),
    })?
    .into_iter();
    let made = records(updates, "updates", |words, [kind, kernel, touched, sources, targets]: [u32; 5]| {
        if u64::from(sources) + u64::from(targets) > names.len() as u64 {
            return Err(words.refused(sources));
        }
        let sources: Vec<UpdateSource> = names.by_ref().take(sources as usize).collect();
        let targets: Vec<UpdateSource> = names.by_ref().take(targets as usize).collect();
        let (kernel, no_targets) = (KernelId(kernel), targets.is_empty());
        match (kind, kernel.0, touched) {
            (0, 0, 0) if no_targets => Ok(Update::Sumsq { stores: stores(&sources)? }),
            (1, _, 0) if no_targets => Ok(Update::Scalars { kernel, sources }),
            (2, _, 0 | 1) => {
                Ok(Update::Apply { kernel, touched: touched == 1, sources, targets: stores(&targets)? })
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

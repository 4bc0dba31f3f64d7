//! The binary format of update plans: one record per update, and a pool of the sources and targets they name.

use super::kernels::RawKernels;
use super::record::{coded, read_all, read_one, write_all};
use super::{Blob, Kind, LoadError, Text, binary_file, open, seal};
use crate::plan::{KernelId, StoreId, Update, UpdatePlan, UpdateSource, Verified};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct RawUpdatePlan<'a> {
    /// The names of the module and of the stores, end to end.
    #[serde(borrow)]
    text: Blob<'a>,
    head: Blob<'a>,
    stores: Blob<'a>,
    kernels: RawKernels<'a>,
    updates: Blob<'a>,
    /// The sources and targets of all updates.
    names: Blob<'a>,
}

coded! { struct Head, 2 words: module, floats }
coded! { struct RawUpdate, 5 words: kind, kernel, sparse, sources, targets }
coded! { enum UpdateSource, 2 words: 0 = Store(store); 1 = Scalar(scalar); 2 = Float(float); }

/// The parts of an update plan that are single values.
struct Head {
    module: String,
    floats: u32,
}

/// An update, with the numbers of its sources and targets, which are records of their own.
struct RawUpdate {
    kind: u32,
    kernel: KernelId,
    sparse: bool,
    sources: u32,
    targets: u32,
}

impl RawUpdatePlan<'_> {
    fn of(plan: &UpdatePlan) -> Self {
        let UpdatePlan { module, stores, floats, kernels, updates } = plan;
        let mut text = String::new();
        let mut names: Vec<UpdateSource> = Vec::new();
        for update in updates {
            names.extend(update.sources());
            names.extend(update.targets().iter().map(|&target| UpdateSource::Store(target)));
        }
        let records: Vec<RawUpdate> = updates.iter().map(RawUpdate::of).collect();
        // Names enter the text in the order of these fields.
        let mut raw = Self {
            head: write_all(&[Head { module: module.clone(), floats: *floats }], &mut text),
            stores: write_all(stores, &mut text),
            kernels: RawKernels::of(kernels),
            updates: write_all(&records, &mut text),
            names: write_all(&names, &mut text),
            text: Blob::default(),
        };
        raw.text = Blob::bytes(text.into_bytes());
        raw
    }

    fn read(&self) -> Result<UpdatePlan, LoadError> {
        let mut text = Text::new(&self.text)?;
        let Head { module, floats } = read_one(&self.head, "head", &mut text)?;
        let stores = read_all(&self.stores, "stores", &mut text)?;
        let kernels = self.kernels.read()?;
        let names: Vec<UpdateSource> = read_all(&self.names, "names of updates", &mut text)?;
        let mut names = names.into_iter();
        let records: Vec<RawUpdate> = read_all(&self.updates, "updates", &mut text)?;
        let updates = records.into_iter().map(|record| record.read(&mut names)).collect::<Result<_, _>>()?;
        if names.next().is_some() {
            return Err(LoadError::malformed("a source or target belongs to no update"));
        }
        text.end()?;
        Ok(UpdatePlan { module, stores, floats, kernels, updates })
    }
}

impl RawUpdate {
    fn of(update: &Update) -> Self {
        let (kind, sparse) = match update {
            Update::Sumsq { .. } => (0, false),
            Update::Scalars { .. } => (1, false),
            Update::Apply { sparse, .. } => (2, *sparse),
        };
        let kernel = update.kernel().unwrap_or(KernelId(0));
        let (sources, targets) = (update.sources().count() as u32, update.targets().len() as u32);
        Self { kind, kernel, sparse, sources, targets }
    }

    /// Takes its sources and targets from the pool.
    fn read(self, names: &mut std::vec::IntoIter<UpdateSource>) -> Result<Update, LoadError> {
        let Self { kind, kernel, sparse, sources, targets } = self;
        if u64::from(sources) + u64::from(targets) > names.len() as u64 {
            return Err(LoadError::malformed("an update has more sources and targets than there are"));
        }
        let sources: Vec<UpdateSource> = names.take(sources as usize).collect();
        let targets: Vec<UpdateSource> = names.take(targets as usize).collect();
        match (kind, kernel.0, sparse) {
            (0, 0, false) if targets.is_empty() => Ok(Update::Sumsq { stores: stores(&sources)? }),
            (1, _, false) if targets.is_empty() => Ok(Update::Scalars { kernel, sources }),
            (2, ..) => Ok(Update::Apply { kernel, sparse, sources, targets: stores(&targets)? }),
            _ => Err(LoadError::malformed(format!("{kind:#x} is not a kind of update with these parts"))),
        }
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
        Ok(plan.verify()?)
    }
}

binary_file!(Kind::Update, UpdatePlan => Verified<UpdatePlan>, ".abu");

fn stores(names: &[UpdateSource]) -> Result<Vec<StoreId>, LoadError> {
    let store = |name: &UpdateSource| match name {
        UpdateSource::Store(store) => Ok(*store),
        other => Err(LoadError::malformed(format!("{other:?} is not a store"))),
    };
    names.iter().map(store).collect()
}

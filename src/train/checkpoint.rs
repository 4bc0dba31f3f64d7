//! Checkpoints: everything that the next step depends on, in one safetensors file.
//!
//! Parameters stand under their own names, so any reader of safetensors finds the model. The optimiser's
//! states stand under `optimizer:name`, which no parameter can be called. The metadata entry is JSON:
//! version, module, optimiser, frozen parameters, steps, seed, [`Progress`], and a hash over all of it and
//! every array. Safetensors detects a truncated file; the hash detects a flipped bit.
//!
//! A checkpoint is written beside its target, synced and renamed, and its folder is synced. A test kills
//! the writer at random moments.

use crate::mirror::Trained;
use crate::train::arrays::{Array, Arrays, little_endian, to_bytes};
use crate::train::checkpoint_error::CheckpointError;
use crate::train::files::{array_of, arrays as weights_arrays, extents, read_file, weights_of};
use crate::train::trainer::Trainer;
use autobatch_ir::files::replace;
use autobatch_ir::hash::{StructureHash, hash_bytes};
use autobatch_ir::{States, Weights};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const KIND: &str = "checkpoint";
const VERSION: u32 = 1;
/// The largest number of steps and updates in a file, so that later steps can still be counted.
const MAX_STEPS: u64 = 1 << 62;
/// The prefix of the names of optimiser arrays.
pub(crate) const STATE: &str = "optimizer:";

/// The position in the data. Samplers are functions of the epoch, so this is all that training needs to
/// continue with the next minibatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Progress {
    /// The epoch, from 0.
    pub epoch: u64,
    /// The number of minibatches of the epoch that were stepped.
    pub batches: u64,
}

/// The metadata of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    kind: String,
    version: u32,
    module: String,
    optimizer: String,
    /// The number of updates that the optimiser made.
    updates: u64,
    steps: u64,
    seed: u64,
    progress: Progress,
    /// The frozen parameters, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    frozen: Vec<String>,
    /// The settings of the optimiser, and the number of shards; none in files of earlier versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<String, String>,
    /// See [`Trainer::set_note`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    notes: BTreeMap<String, String>,
    /// The hash of everything else, in hexadecimal digits.
    hash: String,
}

impl Head {
    /// Hashes the metadata without its hash, and the arrays by name, shape and bytes.
    fn hash_with<'a>(&self, arrays: impl Iterator<Item = (&'a str, &'a [usize], &'a [f32])>) -> String {
        let bare = Head { hash: String::new(), ..self.clone() };
        let text = serde_json::to_string(&bare).expect("numbers and names have a JSON form");
        let mut hash = StructureHash::default();
        hash.push(hash_bytes(text.as_bytes()));
        for (name, shape, values) in arrays {
            hash.push(hash_bytes(name.as_bytes()));
            shape.iter().for_each(|&extent| hash.push(extent as u64));
            hash.push(hash_bytes(&little_endian(values)));
        }
        format!("{:032x}", hash.value())
    }
}

/// The one field that is read before the version is known.
#[derive(Deserialize)]
struct Announced {
    kind: String,
    version: u32,
}

/// Writes a checkpoint. In a group, rank 0 writes the states of all ranks, and all ranks return its error.
pub(crate) fn save(trainer: &Trainer, path: &Path) -> Result<(), CheckpointError> {
    let trained = trainer.session.trained().map_err(|error| CheckpointError::Device(error.to_string()))?;
    let of_ranks = |error: crate::Error| CheckpointError::Ranks(error.to_string());
    let states = trainer.whole_states(trained).map_err(of_ranks)?;
    let written = match trainer.rank() {
        0 => write(trainer, path, &trained.weights, &states),
        _ => Ok(()),
    };
    let told = trainer.of_rank_0(written.as_ref().err().map(ToString::to_string)).map_err(of_ranks);
    written.and(told)
}

fn write(trainer: &Trainer, path: &Path, weights: &Weights, states: &States) -> Result<(), CheckpointError> {
    let mut arrays = weights_arrays(weights);
    for state in states.iter() {
        let name = format!("{STATE}{}", state.name());
        arrays.push(Array { name, shape: extents(state.ty()), values: state.values() });
    }
    let mut head = Head {
        kind: KIND.to_owned(),
        version: VERSION,
        module: trainer.session.module().name.clone(),
        optimizer: trainer.updater.name().to_owned(),
        updates: states.updates(),
        steps: trainer.steps(),
        seed: trainer.seed,
        progress: trainer.progress(),
        frozen: trainer.frozen(),
        settings: trainer.settings(),
        notes: trainer.notes().clone(),
        hash: String::new(),
    };
    // Files keep arrays in the order of their names.
    arrays.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    head.hash = head.hash_with(arrays.iter().map(|array| (&*array.name, &*array.shape, array.values)));
    let remark = serde_json::to_string(&head).map_err(CheckpointError::damaged)?;
    let bytes = to_bytes(&arrays, Some(remark)).map_err(CheckpointError::unwritten)?;
    replace(path, &bytes).map_err(|error| CheckpointError::Io {
        path: path.to_owned(),
        error,
        is_read: false,
    })
}

/// Loads a checkpoint. In a group, all ranks read the file and compare what they read. A refused checkpoint leaves the trainer
/// unchanged, on all ranks.
pub(crate) fn load(trainer: &mut Trainer, path: &Path) -> Result<(), CheckpointError> {
    let read = read_file(path, |bytes| take(trainer, bytes));
    let own = match &read {
        Ok((_, head)) => format!("a checkpoint of step {} with hash {}", head.steps, head.hash),
        Err(error) => format!("none: {error}"),
    };
    let all = trainer.texts_of_ranks(&own).map_err(|error| CheckpointError::Ranks(error.to_string()))?;
    let (trained, head) = read?;
    if let Some((rank, found)) = all.into_iter().enumerate().find(|(_, found)| *found != own) {
        return Err(CheckpointError::OtherRank { rank, found, own });
    }
    trainer.restore(trained, head.steps, head.seed, head.progress, head.notes);
    trainer.compare_settings(&head.settings);
    Ok(())
}

/// Returns the notes of a checkpoint, which [`Trainer::set_note`] set. A program can store the description of its model
/// in a note, and read it before it builds the module.
///
/// # Errors
/// The file cannot be read, is damaged, or is no checkpoint.
pub fn read_notes(path: impl AsRef<Path>) -> Result<BTreeMap<String, String>, CheckpointError> {
    read_file(path.as_ref(), |bytes| {
        let arrays = Arrays::read(bytes).map_err(CheckpointError::damaged)?;
        Ok(head_of(&arrays)?.notes)
    })
}

/// Reads the state of a trainer from a checkpoint.
fn take(trainer: &mut Trainer, bytes: &[u8]) -> Result<(Trained, Head), CheckpointError> {
    let arrays = Arrays::read(bytes).map_err(CheckpointError::damaged)?;
    let head = head_of(&arrays)?;
    let expected = trainer.updater.name();
    if head.optimizer != expected {
        let expected = expected.to_owned();
        return Err(CheckpointError::OtherOptimizer { expected, found: head.optimizer });
    }
    let module = Arc::clone(trainer.session.module());
    let own = |name: &str| module.param(name).is_some() || name.starts_with(STATE);
    if let Some(name) = arrays.names().into_iter().find(|name| !own(name)) {
        return Err(CheckpointError::Unknown { name });
    }
    let weights = weights_of(&arrays, &module)?;
    let own = &trainer.session.host_copy().states;
    let mut states = own.clone();
    for state in own.iter() {
        let values = array_of(&arrays, &format!("{STATE}{}", state.name()), &extents(state.ty()))?;
        states.set(state.name(), &values).map_err(CheckpointError::damaged)?;
    }
    states.set_updates(head.updates);
    let foreign =
        |name: &String| name.strip_prefix(STATE).is_some_and(|name| !trainer.updater.has_state(name));
    if let Some(name) = arrays.names().into_iter().find(foreign) {
        return Err(CheckpointError::Unknown { name });
    }
    let frozen = trainer.frozen();
    if head.frozen != frozen {
        let alone = |these: &[String], others: &[String]| {
            these.iter().filter(|name| !others.contains(name)).cloned().collect::<Vec<_>>()
        };
        let (here, there) = (alone(&frozen, &head.frozen), alone(&head.frozen, &frozen));
        return Err(CheckpointError::OtherFrozen { here, there });
    }
    Ok((Trained { weights: Arc::new(weights), states }, head))
}

/// Checks that a checkpoint of the supported version is undamaged.
pub(crate) fn examine(arrays: &Arrays<'_>) -> Result<(), CheckpointError> {
    match head_of(arrays) {
        Ok(_) | Err(CheckpointError::Version { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns the metadata, after comparing its hash with the content.
fn head_of(arrays: &Arrays<'_>) -> Result<Head, CheckpointError> {
    let remark = arrays.remark().ok_or(CheckpointError::NoCheckpoint)?;
    let announced: Announced = serde_json::from_str(remark).map_err(CheckpointError::damaged)?;
    if announced.kind != KIND {
        return Err(CheckpointError::NoCheckpoint);
    }
    if announced.version != VERSION {
        return Err(CheckpointError::Version { found: announced.version, known: VERSION });
    }
    let head: Head = serde_json::from_str(remark).map_err(CheckpointError::damaged)?;
    let mut all = Vec::new();
    for name in arrays.names() {
        match arrays.get(&name) {
            Some(Ok((shape, values))) => all.push((name, shape, values)),
            Some(Err(found)) => return Err(CheckpointError::Numbers { name, found: found.to_string() }),
            None => return Err(CheckpointError::Missing { name }),
        }
    }
    let hash = head.hash_with(all.iter().map(|(name, shape, values)| (&**name, &**shape, &**values)));
    if hash != head.hash {
        return Err(CheckpointError::damaged("the content does not match its hash"));
    }
    let most = head.steps.max(head.updates);
    if most > MAX_STEPS {
        return Err(CheckpointError::damaged(format!(
            "it counts {most} steps, more than any training makes"
        )));
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use autobatch_ir::{Init, ModuleBuilder};
    use autobatch_nn::optim::Sgd;

    #[test]
    fn a_checkpoint_with_too_many_steps_is_refused() {
        let mut m = ModuleBuilder::new("m");
        m.param("w", [2], Init::ZEROS);
        let mut trainer = Trainer::new(m.build().unwrap(), Sgd::new(0.1)).unwrap();
        let path = std::env::temp_dir().join(format!("autobatch-steps-{}.safetensors", std::process::id()));
        trainer.save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let sound = head_of(&Arrays::read(&bytes).unwrap()).unwrap();
        let values = [0.0; 2];
        for (steps, updates, refused) in [(1, 1, false), (u64::MAX, 1, true), (1, u64::MAX, true)] {
            let mut head = Head { steps, updates, ..sound.clone() };
            head.hash = head.hash_with([("w", &[2][..], &values[..])].into_iter());
            let arrays = [Array { name: "w".to_owned(), shape: vec![2], values: &values }];
            let bytes = to_bytes(&arrays, Some(serde_json::to_string(&head).unwrap())).unwrap();
            std::fs::write(&path, bytes).unwrap();
            let loaded = trainer.load(&path).map_err(|error| error.to_string());
            assert_eq!(
                loaded.as_ref().is_err_and(|error| error.contains("more than any training makes")),
                refused,
                "{loaded:?}"
            );
        }
        std::fs::remove_file(&path).unwrap();
    }
}

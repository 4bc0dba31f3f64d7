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
use crate::train::arrays::{Arrays, Named, header, little_endian};
use crate::train::checkpoint_error::CheckpointError;
use crate::train::files::{array, array_of, extents, read_file, weights_of};
use crate::train::trainer::Trainer;
use autobatch_ir::files::replace_by;
use autobatch_ir::hash::{StructureHash, hash_bytes};
use autobatch_ir::id::ParamId;
use autobatch_ir::types::Type;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{BufWriter, Error, ErrorKind, Seek, Write};
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

/// The hash of a checkpoint: of its metadata without the hash, and of its arrays by name, shape and bytes.
struct ContentHash(StructureHash);

impl ContentHash {
    /// As many digits as a hash has.
    const NONE: &str = "00000000000000000000000000000000";

    fn new(head: &Head) -> Self {
        let bare = Head { hash: String::new(), ..head.clone() };
        let text = serde_json::to_string(&bare).expect("numbers and names have a JSON form");
        let mut hash = StructureHash::default();
        hash.push(hash_bytes(text.as_bytes()));
        Self(hash)
    }

    fn push(&mut self, name: &str, shape: &[usize], bytes: &[u8]) {
        self.0.push(hash_bytes(name.as_bytes()));
        shape.iter().for_each(|&extent| self.0.push(extent as u64));
        self.0.push(hash_bytes(bytes));
    }

    fn digits(&self) -> String {
        format!("{:032x}", self.0.value())
    }
}

/// The one field that is read before the version is known.
#[derive(Deserialize)]
struct Announced {
    kind: String,
    version: u32,
}

/// An array of a checkpoint. States that are divided among ranks have no values here.
type Content<'a> = (Named, Option<&'a [f32]>);

/// Writes a checkpoint. In a group, rank 0 writes the states of all ranks, one after the other, and all ranks return its error.
pub(crate) fn save(trainer: &Trainer, path: &Path) -> Result<(), CheckpointError> {
    let trained = trainer.session.trained().map_err(|error| CheckpointError::Device(error.to_string()))?;
    let mut states = trainer.collected_states(&trained.states);
    let written = match trainer.rank() {
        0 => write(trainer, path, trained, &mut states),
        _ => Ok(()),
    };
    // Whether rank 0 could write or not, all ranks take all states.
    let left = states.try_for_each(|state| state.map(drop)).map_err(of_ranks);
    let told = trainer.of_rank_0(written.as_ref().err().map(ToString::to_string)).map_err(of_ranks);
    written.and(left).and(told)
}

fn of_ranks(error: crate::Error) -> CheckpointError {
    CheckpointError::Ranks(error.to_string())
}

fn write(
    trainer: &Trainer,
    path: &Path,
    trained: &Trained,
    collected: &mut dyn Iterator<Item = crate::Result<Vec<f32>>>,
) -> Result<(), CheckpointError> {
    let mut head = Head {
        kind: KIND.to_owned(),
        version: VERSION,
        module: trainer.session.module().name.clone(),
        optimizer: trainer.updater.name().to_owned(),
        updates: trained.states.updates(),
        steps: trainer.steps(),
        seed: trainer.seed,
        progress: trainer.progress(),
        frozen: trainer.frozen(),
        settings: trainer.settings(),
        notes: trainer.notes().clone(),
        hash: ContentHash::NONE.to_owned(),
    };
    let contents = contents(trainer, trained);
    let header = |head: &Head| {
        let remark = serde_json::to_string(head).map_err(CheckpointError::damaged)?;
        header(contents.iter().map(|content| &content.0), Some(remark)).map_err(CheckpointError::unwritten)
    };
    let first = header(&head)?;
    // An error that is none of the system's ends the write as well.
    let mut failed = None;
    let mut fail = |error| {
        failed = Some(error);
        Error::from(ErrorKind::Other)
    };
    let written = replace_by(path, |file| {
        let mut hash = ContentHash::new(&head);
        let mut file = BufWriter::new(file);
        file.write_all(&first)?;
        for ((name, shape), values) in &contents {
            let state;
            let values = match values {
                Some(values) => values,
                None => {
                    let next = collected.next().transpose().map_err(|error| fail(of_ranks(error)))?;
                    state = next.unwrap_or_default();
                    &state[..]
                }
            };
            let bytes = little_endian(values);
            hash.push(name, shape, &bytes);
            file.write_all(&bytes)?;
        }
        // The hash is known at the end. It has as many digits as those that were written.
        head.hash = hash.digits();
        let last = header(&head).map_err(&mut fail)?;
        file.rewind()?;
        file.write_all(&last)?;
        file.flush()
    });
    let io = |error| CheckpointError::Io { path: path.to_owned(), error, is_read: false };
    written.map_err(|error| failed.unwrap_or_else(|| io(error)))
}

/// The arrays of a checkpoint in the order of their names, as files keep them.
fn contents<'a>(trainer: &Trainer, Trained { weights, states }: &'a Trained) -> Vec<Content<'a>> {
    let named = |name: &str, ty: Type| (format!("{STATE}{name}"), extents(ty));
    let params = weights.iter().map(|param| {
        let (named, values) = array(param);
        (named, Some(values))
    });
    let mut contents: Vec<Content<'a>> = params.collect();
    match trainer.updater.divided_states() {
        [] => contents
            .extend(states.iter().map(|state| (named(state.name(), state.ty()), Some(state.values())))),
        divided => {
            let module = trainer.session.module();
            let ty = |param: ParamId| module.params[param.index()].ty;
            contents.extend(divided.iter().map(|state| (named(&state.name, ty(state.param)), None)));
        }
    }
    contents.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    contents
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
        let whole = module.params[state.param().index()].ty;
        let values = array_of(&arrays, &format!("{STATE}{}", state.name()), &extents(whole))?;
        let elements = trainer.updater.own_elements(state.param(), values.len());
        states.set(state.name(), &values[elements]).map_err(CheckpointError::damaged)?;
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
    let mut hash = ContentHash::new(&head);
    all.iter().for_each(|(name, shape, values)| hash.push(name, shape, &little_endian(values)));
    if hash.digits() != head.hash {
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
            let named = ("w".to_owned(), vec![2]);
            let mut hash = ContentHash::new(&head);
            hash.push(&named.0, &named.1, &little_endian(&values));
            head.hash = hash.digits();
            let mut bytes =
                header([&named].into_iter(), Some(serde_json::to_string(&head).unwrap())).unwrap();
            bytes.extend_from_slice(&little_endian(&values));
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

//! Training on several processes: their agreement, and a common end.

use super::trace::Trace;
use super::{End, Stop};
use crate::args::TrainArgs;
use crate::failure::Failure;
use crate::ranks::Ranks;
use autobatch::Trainer;
use autobatch::distributed::{Observed, Record};
use autobatch::ir::hash::{StructureHash, hash_bytes};
use autobatch_models::lessons::{CorpusPart, Lesson};
use std::path::Path;

/// The trainer of this process.
pub(super) struct Joined {
    pub(super) trainer: Trainer,
    pub(super) shards: Option<usize>,
    /// Its trace, if one is wanted.
    pub(super) trace: Option<Trace>,
}

/// Connects the trainer with those of the other processes.
pub(super) fn join(
    trainer: Trainer,
    args: &TrainArgs,
    lesson: &Lesson,
    ranks: &Ranks,
) -> Result<Joined, Failure> {
    let group = ranks.group();
    let mut record = Record::default();
    let wanted = args.shards.map(|shards| shards as usize).or(args.divide_states.then_some(Trainer::SHARDS));
    let Some(shards) = wanted.or(group.is_some().then_some(Trainer::SHARDS)) else {
        let trace = args.trace.is_some().then(|| Trace::new(0, record));
        return Ok(Joined { trainer, shards: None, trace });
    };
    let mut trainer = trainer.shards(shards);
    if let Some(group) = group {
        let corpus = corpus(args, lesson)?;
        // The ranks have read the corpus from different disks, so they come at different times.
        ranks.broadcast(&[])?;
        trainer = match args.trace.is_some() {
            true => {
                let (group, own) = Observed::new(group);
                record = own;
                trainer.group(group)?
            }
            false => trainer.group(group)?,
        };
        trainer.agree("the options", format!("{args:?}"))?;
        trainer.agree("the corpus", corpus)?;
    }
    let trainer = if args.divide_states { trainer.divide_states()? } else { trainer };
    let trace = args.trace.is_some().then(|| Trace::new(ranks.rank(), record));
    Ok(Joined { trainer, shards: Some(shards), trace })
}

/// A hash of the instances: their specification, their sizes, and the files of the corpus.
fn corpus(args: &TrainArgs, lesson: &Lesson) -> Result<String, Failure> {
    let mut hash = StructureHash::default();
    hash.push(hash_bytes(lesson.specification.as_bytes()));
    CorpusPart::ALL.iter().for_each(|&part| hash.push(lesson.part(part).len() as u64));
    lesson.sizes.iter().for_each(|&size| hash.push(size as u64));
    if let Some(folder) = &args.model.data {
        let unread = |error: std::io::Error| Failure::input(format!("{folder}: {error}"));
        push_files(Path::new(folder), &mut hash).map_err(unread)?;
    }
    Ok(format!("the hash {:032x}", hash.value()))
}

/// Hashes the files of a folder and of its folders, in the order of their names.
fn push_files(folder: &Path, hash: &mut StructureHash) -> std::io::Result<()> {
    let entries = std::fs::read_dir(folder)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        hash.push(hash_bytes(path.file_name().unwrap_or_default().as_encoded_bytes()));
        match path.is_dir() {
            true => push_files(&path, hash)?,
            false => hash.push(hash_bytes(&std::fs::read(&path)?)),
        }
    }
    Ok(())
}

/// The signal of a process that has a reason to stop an epoch. All processes stop after the step that carries it, for the largest
/// signal of all.
pub(super) fn signal(own: Option<Stop>) -> u8 {
    match own {
        None | Some(Stop::End(End::Complete)) => 0,
        Some(Stop::Save) => 1,
        Some(Stop::End(End::OutOfTime)) => 2,
        Some(Stop::End(End::Interrupted)) => 3,
    }
}

/// The reason to stop that the largest signal of all processes gives.
pub(super) fn stop_of(signal: u8) -> Option<Stop> {
    match signal {
        0 => None,
        1 => Some(Stop::Save),
        2 => Some(Stop::End(End::OutOfTime)),
        _ => Some(Stop::End(End::Interrupted)),
    }
}

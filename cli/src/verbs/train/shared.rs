//! Training on several processes: their agreement, and a common end.

use super::End;
use crate::args::TrainArgs;
use crate::failure::Failure;
use crate::ranks::Ranks;
use autobatch::Trainer;
use autobatch::ir::hash::{StructureHash, hash_bytes};
use autobatch_models::lessons::{CorpusPart, Lesson};
use std::path::Path;

/// Connects the trainer with those of the other processes. Returns it with the number of shards.
pub(super) fn join(
    trainer: Trainer,
    args: &TrainArgs,
    lesson: &Lesson,
    ranks: &Ranks,
) -> Result<(Trainer, Option<usize>), Failure> {
    let group = ranks.group();
    let wanted = args.shards.map(|shards| shards as usize).or(args.divide_states.then_some(Trainer::SHARDS));
    let Some(shards) = wanted.or(group.is_some().then_some(Trainer::SHARDS)) else {
        return Ok((trainer, None));
    };
    let mut trainer = trainer.shards(shards);
    if let Some(group) = group {
        let corpus = corpus(args, lesson)?;
        // The ranks have read the corpus from different disks, so they come at different times.
        ranks.broadcast(&[])?;
        trainer = trainer.group(group)?;
        trainer.agree("the options", format!("{args:?}"))?;
        trainer.agree("the corpus", corpus)?;
    }
    Ok((if args.divide_states { trainer.divide_states()? } else { trainer }, Some(shards)))
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

/// Returns the reason to end now if a process has one, so that all processes end after the same step.
pub(super) fn first_end(own: Option<End>, trainer: &Trainer) -> Result<Option<End>, Failure> {
    if !trainer.on_any_rank(own.is_some())? {
        return Ok(None);
    }
    let interrupted = trainer.on_any_rank(own == Some(End::Interrupted))?;
    Ok(Some(if interrupted { End::Interrupted } else { End::OutOfTime }))
}

//! `map`: predicts many files into shards of JSON Lines.
//!
//! Each input file is a shard. A shard is written to a temporary file, synced and renamed, so it is whole or absent. The
//! manifest names the parameters and the shards. A run into the folder of an interrupted run makes the missing shards
//! only, and ends with the files of an undisturbed run. Several processes take shards by demand: a process claims the next
//! missing shard by creating a file, which only one process can.

use super::predict::note_unknown;
use crate::args::MapArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::read;
use crate::progress::Waiting;
use crate::ranks::Ranks;
use crate::trained::{check_model, malformed, session, specification};
use autobatch::Session;
use autobatch::ir::hash::hash_bytes;
use autobatch_inspector::text::plural;
use autobatch_ir::files::replace;
use autobatch_models::lessons::{Input, PredictError, Predicted, Predictor};
use serde_json::json;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The name of the manifest in the folder.
const MANIFEST: &str = "manifest.json";

/// Predicts every file that has no shard yet.
pub fn map(args: &MapArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    Ranks::join()?.run(console, |ranks, console| {
        let specification = specification(&args.trained)?;
        let predictor = Predictor::new(&specification).map_err(|error| malformed(&args.trained, error))?;
        check_model(&args.trained, predictor.entry)?;
        let mut session = session(&args.trained, &predictor.module)?;
        let folder = Folder::open(args, ranks)?;
        let waiting = (ranks.rank() == 0).then(|| Waiting::new("predicting"));
        for number in 0..args.data.len() {
            if folder.claims(number)? {
                let text = predicted(&predictor, &mut session, &args.data[number])?;
                folder.write(&folder.shard(number), text.as_bytes())?;
            }
        }
        drop(waiting);
        let missing = folder.end(args.data.len(), ranks)?;
        if ranks.rank() == 0 {
            print(args, &folder, missing, console)?;
        }
        Ok(Answer::Yes)
    })
}

/// The answers to the instances of a file, one JSON object per line.
fn predicted(predictor: &Predictor, session: &mut Session, file: &str) -> Result<String, Failure> {
    let bytes = read(file)?;
    let answers = predictor.predict(session, Input::Content { bytes: &bytes, file });
    let Predicted { answers, unknown } = answers.map_err(|error| match error {
        PredictError::Item { .. } => Failure::input(format!("{file}: {error}")),
        _ => Failure::input(error.to_string()),
    })?;
    note_unknown(&unknown);
    let mut text = String::new();
    for answer in answers {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", answer.json);
    }
    Ok(text)
}

/// The folder of a run.
struct Folder {
    path: PathBuf,
    /// The folder of the claims of this run. A new run removes old ones, so claims of killed processes do not count.
    claims: PathBuf,
    /// The number of shards that existed before this run.
    existing: usize,
}

impl Folder {
    /// Opens the folder. Rank 0 writes the manifest, or compares it with that of an interrupted run.
    fn open(args: &MapArgs, ranks: &Ranks) -> Result<Self, Failure> {
        let path = PathBuf::from(&args.output);
        let failed = |error: std::io::Error| Failure::output(&args.output, &error);
        let mut run = String::new();
        if ranks.rank() == 0 {
            std::fs::create_dir_all(&path).map_err(failed)?;
            run = format!(".claims-{}", std::process::id());
            for entry in std::fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                if entry.file_name().to_string_lossy().starts_with(".claims-") {
                    std::fs::remove_dir_all(entry.path()).map_err(failed)?;
                }
            }
            std::fs::create_dir(path.join(&run)).map_err(failed)?;
            check_manifest(args, &path.join(MANIFEST))?;
        }
        let run = ranks.broadcast(run.as_bytes())?;
        let claims = path.join(String::from_utf8_lossy(&run).into_owned());
        let mut folder = Self { path, claims, existing: 0 };
        folder.existing = (0..args.data.len()).filter(|&number| folder.shard(number).exists()).count();
        ranks.broadcast(&[])?;
        Ok(folder)
    }

    /// The path of a shard.
    fn shard(&self, number: usize) -> PathBuf {
        self.path.join(shard_name(number))
    }

    /// Returns whether this process makes the shard: it does not exist, and no other process claimed it.
    fn claims(&self, number: usize) -> Result<bool, Failure> {
        if self.shard(number).exists() {
            return Ok(false);
        }
        let claim = self.claims.join(number.to_string());
        match File::create_new(&claim) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(Failure::output(&claim.display().to_string(), &error)),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        replace(path, bytes).map_err(|error| Failure::output(&path.display().to_string(), &error))
    }

    /// Waits for all processes and removes the claims. Returns the number of shards that are missing.
    fn end(&self, shards: usize, ranks: &Ranks) -> Result<usize, Failure> {
        ranks.broadcast(&[])?;
        if ranks.rank() == 0 {
            let removed = std::fs::remove_dir_all(&self.claims);
            removed.map_err(|error| Failure::output(&self.claims.display().to_string(), &error))?;
        }
        Ok((0..shards).filter(|&number| !self.shard(number).exists()).count())
    }
}

fn shard_name(number: usize) -> String {
    format!("part-{number:05}.jsonl")
}

/// Writes the manifest. An existing one must belong to the same run: equal parameters and files.
fn check_manifest(args: &MapArgs, path: &Path) -> Result<(), Failure> {
    let weights = hash_bytes(&read(&args.trained.weights)?);
    let mut shards = Vec::with_capacity(args.data.len());
    for (number, file) in args.data.iter().enumerate() {
        let found = std::fs::metadata(file).map_err(|error| Failure::input(format!("{file}: {error}")))?;
        if !found.is_file() {
            return Err(
                Failure::input(format!("{file}: expected a file")).help("name the files of the folder")
            );
        }
        shards.push(json!({ "shard": shard_name(number), "input": file, "bytes": found.len() }));
    }
    let text = json!({ "model": args.trained.name, "weights": format!("{weights:016x}"), "shards": shards });
    let text = format!("{text:#}\n");
    let output = |error: std::io::Error| Failure::output(&path.display().to_string(), &error);
    match std::fs::read_to_string(path) {
        Ok(found) if found == text => Ok(()),
        Ok(_) => {
            let message = format!("{} belongs to a run with other parameters or files", path.display());
            Err(Failure::usage(message)
                .help("name an empty folder with -o, or repeat the command of that run"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => replace(path, text.as_bytes()).map_err(output),
        Err(error) => Err(output(error)),
    }
}

fn print(args: &MapArgs, folder: &Folder, missing: usize, console: &mut Console<'_>) -> Result<(), Failure> {
    let (shards, existing) = (args.data.len(), folder.existing);
    if missing > 0 {
        let message = format!("{missing} of {shards} shards in {} disappeared", args.output);
        return Err(Failure::input(message).help("run the command again"));
    }
    if args.trained.json {
        let report = json!({ "folder": args.output, "shards": shards, "existing": existing });
        writeln!(console, "{report:#}")?;
        return Ok(());
    }
    let count = plural(shards as u64, "shard");
    writeln!(console, "{count} in {}, of which {existing} existed before", args.output)?;
    Ok(())
}

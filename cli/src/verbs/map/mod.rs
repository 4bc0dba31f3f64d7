//! `map`: predicts inputs of any size into shards of JSON Lines or Parquet.
//!
//! Every process reads all inputs and cuts them into [chunks](autobatch_models::lessons::Chunks) of equal numbers of instances; it
//! predicts those that it claims in the [folder] of the run. So memory does not depend on the sizes of files.

mod folder;
mod form;
mod inputs;

use super::predict::{failed, note_unknown};
use crate::args::MapArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::progress::Streaming;
use crate::ranks::Ranks;
use crate::trained::{check_model, malformed, session, specification};
use autobatch::Session;
use autobatch::ir::hash::hash_bytes;
use autobatch_inspector::text::plural;
use autobatch_models::lessons::{Chunk, Chunks, Predicted, Predictor, Unknown};
use folder::{Folder, Record, Totals, hash_of};
use inputs::{Source, sources};
use serde_json::json;
use std::io::Write;

/// Predicts all shards that do not exist yet.
pub fn map(args: &MapArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    Ranks::join()?.run(console, |ranks, console| {
        let specification = specification(&args.trained)?;
        let predictor = Predictor::new(&specification).map_err(|error| malformed(&args.trained, error))?;
        check_model(&args.trained, predictor.entry)?;
        args.form.check()?;
        check_output(args)?;
        let sources = sources(&args.data)?;
        if ranks.size() > 1 && sources.iter().any(|source| source.bytes.is_none()) {
            return Err(Failure::usage("several processes cannot read one stream")
                .help("name files, or start one process"));
        }
        let session = session(&args.trained, &predictor.module)?;
        let module = hash_bytes(&predictor.module.to_bytes());
        let inputs: Vec<&str> = sources.iter().map(|source| &*source.path).collect();
        let folder = Folder::open(args, module, &inputs, ranks)?;
        let bytes = sources.iter().map(|source| source.bytes).sum();
        let progress = (ranks.rank() == 0).then(|| Streaming::new("predicting", bytes));
        let mut run = Run {
            args,
            predictor,
            session,
            folder,
            progress,
            shards: Vec::new(),
            unknown: Unknown::default(),
        };
        sources.iter().try_for_each(|source| run.source(source))?;
        drop(run.progress.take());
        note_unknown(&run.unknown);
        let totals = run.folder.end(&run.shards, ranks)?;
        if ranks.rank() == 0 {
            print(args, totals, console)?;
        }
        Ok(Answer::Yes)
    })
}

/// Rejects an output folder whose files are inputs: the next run would predict the shards of this one.
fn check_output(args: &MapArgs) -> Result<(), Failure> {
    let output = std::fs::canonicalize(&args.output).ok();
    let is_output = |word: &&String| output.is_some() && std::fs::canonicalize(word).ok() == output;
    match args.data.iter().find(is_output) {
        Some(folder) => Err(Failure::usage(format!("{folder} is both an input and the output"))
            .help("name another folder with -o")),
        None => Ok(()),
    }
}

/// A run on one process.
struct Run<'a> {
    args: &'a MapArgs,
    predictor: Predictor,
    session: Session,
    folder: Folder,
    progress: Option<Streaming>,
    /// The names of all shards so far.
    shards: Vec<String>,
    unknown: Unknown,
}

impl Run<'_> {
    /// Cuts an input into chunks, and makes the shards of those that this process claims.
    fn source(&mut self, source: &Source) -> Result<(), Failure> {
        let mut chunks = Chunks::new(source.open()?, self.predictor.units, self.args.shard as usize);
        let before = self.shards.len();
        while let Some(chunk) = chunks.next_chunk().map_err(|error| source.unreadable(&error))? {
            let shard = source.shard(self.shards.len() - before, self.args.form.extension());
            if self.folder.claims(&shard)? {
                self.shard(source, &shard, &chunk)?;
            }
            if let Some(progress) = &self.progress {
                progress.passed(chunk.bytes.len() as u64, chunk.instances.unwrap_or(0) as u64);
            }
            self.shards.push(shard);
        }
        Ok(())
    }

    /// Makes a shard, unless an earlier run made it.
    fn shard(&mut self, source: &Source, shard: &str, chunk: &Chunk) -> Result<(), Failure> {
        let read = hash_of(&chunk.bytes);
        if self.folder.holds(shard, &read) {
            return Ok(());
        }
        let file = source.shown();
        let predicted = self.predictor.predict_chunk(&mut self.session, chunk, file);
        let Predicted { answers, unknown } = predicted.map_err(|error| failed(&error, file))?;
        self.unknown.add(unknown);
        let bytes = self.args.form.bytes_of(&answers)?;
        let record = Record {
            shard: shard.to_owned(),
            input: source.path.clone(),
            first: chunk.instances_before,
            instances: answers.len(),
            read,
            written: String::new(),
            run: String::new(),
        };
        self.folder.write(record, &bytes)
    }
}

fn print(args: &MapArgs, totals: Totals, console: &mut Console<'_>) -> Result<(), Failure> {
    let Totals { shards, instances, existing } = totals;
    if args.trained.json {
        let report =
            json!({ "folder": args.output, "shards": shards, "instances": instances, "existing": existing });
        writeln!(console, "{report:#}")?;
        return Ok(());
    }
    let (count, of) = (plural(shards as u64, "shard"), plural(instances as u64, "instance"));
    writeln!(console, "{count} of {of} in {}, of which {existing} existed before", args.output)?;
    Ok(())
}

//! The folder of a run of `map`: shards, their records, and the manifest.
//!
//! A shard is written to a temporary file, synced and renamed, so it is whole or absent; then its *record* is written: the hashes of
//! what was read and written. At the end the records become the manifest. The folder may hold shards of an interrupted or complete
//! run. A shard stays if its record fits the present input and the bytes of the shard; otherwise it is made again.
//!
//! Several processes take shards by demand: a process claims a shard by creating a file, which only one process can.

use crate::args::MapArgs;
use crate::failure::Failure;
use crate::files::read;
use crate::ranks::Ranks;
use autobatch_ir::files::replace;
use autobatch_ir::hash::hash_bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs::{File, create_dir, create_dir_all, read_dir, read_to_string, remove_dir_all};
use std::hash::{BuildHasher, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The name of the manifest.
const MANIFEST: &str = "manifest.json";
/// The name of the folder of records.
const RECORDS: &str = ".records";
/// The name of the shards of a complete earlier run, in the folder of records.
const EARLIER: &str = "earlier";
/// The beginning of the names of folders of claims.
const CLAIMS: &str = ".claims-";

/// A shard as the manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) shard: String,
    pub(super) input: String,
    /// The instances of the input before the shard.
    pub(super) first: usize,
    pub(super) instances: usize,
    /// The hash of the bytes of the input.
    pub(super) read: String,
    /// The hash of the bytes of the shard.
    pub(super) written: String,
    /// The run that made it. The manifest does not say it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) run: String,
}

/// A hash in hexadecimal digits.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    format!("{:016x}", hash_bytes(bytes))
}

/// The description of a run, by which another one may continue it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    model: String,
    module: String,
    weights: String,
    form: String,
    /// The instances of a shard.
    instances: usize,
    /// The hash of the paths of all inputs.
    inputs: String,
}

/// The manifest of a run.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    #[serde(flatten)]
    head: Head,
    complete: bool,
    shards: Vec<Record>,
}

/// The folder of a run.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The name of this run, which is that of its folder of claims. A new run removes old ones, so claims of killed processes do not
    /// count.
    run: String,
    head: Head,
    /// The shards of a complete earlier run, by name.
    earlier: HashMap<String, Record>,
}

/// The shards of a complete run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) shards: usize,
    pub(super) instances: usize,
    /// The shards that existed before this run.
    pub(super) existing: usize,
}

impl Folder {
    /// Opens the folder. Rank 0 writes the manifest, or compares it with that of an earlier run.
    pub(super) fn open(args: &MapArgs, module: u64, inputs: &[&str], ranks: &Ranks) -> Result<Self, Failure> {
        let mut folder = Self {
            path: PathBuf::from(&args.output),
            run: String::new(),
            earlier: HashMap::new(),
            head: Head {
                model: args.trained.name.clone(),
                module: format!("{module:016x}"),
                weights: hash_of(&read(&args.trained.weights)?),
                form: args.form.extension().to_owned(),
                instances: args.shard as usize,
                inputs: hash_of(inputs.join("\n").as_bytes()),
            },
        };
        if ranks.rank() == 0 {
            // Another run of this folder has another name, even in this process.
            folder.run = format!("{CLAIMS}{:016x}", RandomState::new().build_hasher().finish());
            folder.begin()?;
        }
        folder.run = String::from_utf8_lossy(&ranks.broadcast(folder.run.as_bytes())?).into_owned();
        if let Ok(text) = read_to_string(folder.record_path(EARLIER)) {
            // A list that cannot be read is none: its shards are made again.
            let records: Vec<Record> = serde_json::from_str(&text).unwrap_or_default();
            folder.earlier = records.into_iter().map(|record| (record.shard.clone(), record)).collect();
        }
        Ok(folder)
    }

    /// Prepares the folder for a run.
    fn begin(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::output(&self.path.display().to_string(), &error);
        create_dir_all(&self.path).map_err(failed)?;
        for entry in read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_string_lossy().starts_with(CLAIMS) {
                remove_dir_all(entry.path()).map_err(failed)?;
            }
        }
        let earlier = self.earlier_manifest()?;
        create_dir_all(self.path.join(RECORDS)).map_err(failed)?;
        create_dir(self.path.join(&self.run)).map_err(failed)?;
        // A complete run has records in its manifest alone, which this run replaces.
        if let Some(manifest) = earlier.filter(|manifest| manifest.complete) {
            self.replace(&self.record_path(EARLIER), format!("{}\n", json!(manifest.shards)).as_bytes())?;
        }
        self.write_manifest(false, Vec::new())
    }

    /// Reads the manifest of an earlier run into this folder, which must be one of the same parameters.
    fn earlier_manifest(&self) -> Result<Option<Manifest>, Failure> {
        let path = self.path.join(MANIFEST);
        let text = match read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::output(&path.display().to_string(), &error)),
        };
        let help = "name an empty folder with -o, or repeat the command of that run";
        let manifest: Manifest = serde_json::from_str(&text).map_err(|error| {
            Failure::usage(format!("{} is no manifest of this version: {error}", path.display())).help(help)
        })?;
        match manifest.head == self.head {
            true => Ok(Some(manifest)),
            false => {
                let message = format!(
                    "{} belongs to a run with other parameters, inputs, sizes or forms of shards",
                    path.display()
                );
                Err(Failure::usage(message).help(help))
            }
        }
    }

    /// Returns whether this process may make a shard: no other process claimed it.
    pub(super) fn claims(&self, shard: &str) -> Result<bool, Failure> {
        let claim = self.path.join(&self.run).join(shard);
        match File::create_new(&claim) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(Failure::output(&claim.display().to_string(), &error)),
        }
    }

    /// Whether an earlier run made the shard from these bytes of the input, and its file is as that run left it.
    pub(super) fn holds(&self, shard: &str, read: &str) -> bool {
        let Some(record) = self.record(shard) else { return false };
        record.read == read
            && std::fs::read(self.path.join(shard)).is_ok_and(|bytes| hash_of(&bytes) == record.written)
    }

    /// Writes a shard and its record.
    pub(super) fn write(&self, mut record: Record, bytes: &[u8]) -> Result<(), Failure> {
        record.written = hash_of(bytes);
        record.run.clone_from(&self.run);
        self.replace(&self.path.join(&record.shard), bytes)?;
        self.write_record(&record)
    }

    /// Waits for all processes, and makes the manifest of the named shards, in this order.
    pub(super) fn end(&self, shards: &[String], ranks: &Ranks) -> Result<Totals, Failure> {
        ranks.broadcast(&[])?;
        if ranks.rank() > 0 {
            return Ok(Totals::default());
        }
        let mut totals = Totals { shards: shards.len(), ..Totals::default() };
        let mut records = Vec::with_capacity(shards.len());
        for shard in shards {
            let Some(mut record) = self.record(shard).filter(|_| self.path.join(shard).exists()) else {
                let message = format!("{shard} in {} disappeared", self.path.display());
                return Err(Failure::input(message).help("run the command again"));
            };
            totals.instances += record.instances;
            totals.existing += usize::from(record.run != self.run);
            record.run.clear();
            records.push(record);
        }
        self.write_manifest(true, records)?;
        for folder in [RECORDS, &self.run] {
            let path = self.path.join(folder);
            remove_dir_all(&path).map_err(|error| Failure::output(&path.display().to_string(), &error))?;
        }
        Ok(totals)
    }

    fn record_path(&self, shard: &str) -> PathBuf {
        self.path.join(RECORDS).join(format!("{shard}.json"))
    }

    /// The record of a shard, of this run or of an earlier one. One that cannot be read is none: its shard is made again.
    fn record(&self, shard: &str) -> Option<Record> {
        match read_to_string(self.record_path(shard)) {
            Ok(text) => serde_json::from_str(&text).ok(),
            Err(_) => self.earlier.get(shard).cloned(),
        }
    }

    fn write_record(&self, record: &Record) -> Result<(), Failure> {
        self.replace(&self.record_path(&record.shard), format!("{}\n", json!(record)).as_bytes())
    }

    fn write_manifest(&self, complete: bool, shards: Vec<Record>) -> Result<(), Failure> {
        let text = format!("{:#}\n", json!(Manifest { head: self.head.clone(), complete, shards }));
        self.replace(&self.path.join(MANIFEST), text.as_bytes())
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        replace(path, bytes).map_err(|error| Failure::output(&path.display().to_string(), &error))
    }
}

//! The command line of the bench, for its own program and for the verbs `bench` and `sweep` of `autobatch`.

use crate::{BenchError, Mode, Options, Sweep, dump, effort, pairs, run, sweep};
use autobatch_models::catalogue;
use autobatch_planner::schedule::Policy;
use std::path::PathBuf;
use std::time::Duration;

/// Times whole steps: emit, plan, verify, execute, read.
#[derive(clap::Args, Clone, Debug)]
pub struct BenchArgs {
    /// a b c d dchar e f1 f2 g lattice sst; before it perhaps `sweep` (batch sizes), `peak` (share of the processor's) or
    /// `threads` (one against several)
    #[arg(num_args = 1..=2, required_unless_present = "device")]
    pub workload: Vec<String>,
    /// Instances as the scripts of other systems write them with --dump-data
    #[arg(long)]
    pub data: Option<PathBuf>,
    /// infer or train
    #[arg(long, default_value = "infer")]
    pub mode: String,
    /// How wide states are
    #[arg(long)]
    pub hidden: Option<usize>,
    /// How wide word vectors are
    #[arg(long, alias = "emb")]
    pub embedding: Option<usize>,
    /// Instances in a graph; for sweep several, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub batch: Vec<usize>,
    /// Instances to generate
    #[arg(long)]
    pub count: Option<usize>,
    /// Length of all generated sentences of d
    #[arg(long)]
    pub same: Option<u32>,
    /// Seed of generated instances
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Threads that execute; 0 means one a core
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Turns of each variant
    #[arg(long, default_value_t = 7)]
    pub rounds: usize,
    /// Milliseconds that a turn repeats the step for
    #[arg(long, default_value_t = 100)]
    pub turn: u64,
    /// How batches are chosen
    #[arg(long, default_value = "auto")]
    pub policy: String,
    /// Leave out one by one
    #[arg(long)]
    pub alone: bool,
    /// Update only those rows of tables that the minibatch looked up
    #[arg(long)]
    pub sparse_rows: bool,
    /// Split executing into packing, forward, reverse, reductions, update
    #[arg(long)]
    pub phases: bool,
    /// Refuse plans whose slabs take more bytes: 1000000, 64KiB, 512MiB, 2GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory_limit: Option<u64>,
    /// Times products, moves and models on a GPU instead: gpu, gpu:0, gpu:part-of-a-name; with
    /// --hidden, products of this size; of models that are named, the host's share of 16 small instances alone
    #[arg(long)]
    pub device: Option<String>,
    /// Measure nothing: write one step's weights (drawn afresh), outputs and gradients into this folder
    #[arg(long, value_name = "FOLDER")]
    pub dump: Option<PathBuf>,
    /// Print one line of JSON only
    #[arg(long)]
    pub json: bool,
}

impl BenchArgs {
    /// What they ask to measure.
    ///
    /// # Errors
    /// If a word is unknown.
    pub fn options(&self) -> Result<Options, BenchError> {
        let Self { hidden, embedding, count, same, seed, threads, rounds, .. } = *self;
        let batch = self.batch.first().copied();
        let data = self.data.clone();
        Ok(Options {
            sizes: catalogue::Options { data, seed, count, batch, hidden, embedding, same },
            mode: self.mode.parse::<Mode>()?,
            threads,
            rounds,
            turn: Duration::from_millis(self.turn),
            policy: self.policy.parse::<Policy>()?,
            one_by_one: !self.alone,
            sparse_rows: self.sparse_rows,
            phases: self.phases,
            memory_limit: self.memory_limit,
        })
    }

    /// Refuses the options that `what` does not heed.
    fn refuse_unused(&self, what: &str) -> Result<(), BenchError> {
        let (is_sweep, is_plain) = (what == "sweep", !["sweep", "peak", "threads"].contains(&what));
        let options = [
            ("a second number of --batch", self.batch.len() > 1 && !is_sweep),
            ("--dump", self.dump.is_some() && !is_plain),
            ("--phases", self.phases && !is_plain),
            ("--device", self.device.as_deref().is_some_and(|device| device != "cpu") && !is_plain),
        ];
        match options.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(BenchError::Unused { option, what: what.to_owned() }),
            None => Ok(()),
        }
    }

    /// Measures batch sizes: those asked for, or powers of two.
    ///
    /// # Errors
    /// As [`sweep`], or if another option is of no use here.
    pub fn sweep(&self, name: &str) -> Result<Sweep, BenchError> {
        self.refuse_unused("sweep")?;
        let usual = [1, 2, 4, 8, 16, 32, 64, 128, 256];
        let batches = if self.batch.is_empty() { &usual[..] } else { &self.batch };
        sweep(name, batches, &self.options()?)
    }

    /// Measures what the words say, and says it in words or JSON.
    ///
    /// # Errors
    /// If the words make no sense, or as what they ask for.
    pub fn answer(&self) -> Result<String, BenchError> {
        if let Some(what) = self.workload.first() {
            self.refuse_unused(what)?;
        }
        if let Some(device) = self.device.as_deref().filter(|device| *device != "cpu") {
            #[cfg(feature = "gpu")]
            return crate::gpu::report(device, self.hidden, &self.workload);
            #[cfg(not(feature = "gpu"))]
            return Err(BenchError::Gpu(format!("{device}: build the bench with --features gpu")));
        }
        let options = self.options()?;
        let chosen = |text: String, json: String| if self.json { json } else { text };
        match self.workload.as_slice() {
            [verb, name] if verb == "sweep" => {
                let sweep = self.sweep(name)?;
                Ok(chosen(sweep.to_string(), sweep.to_json()))
            }
            [verb, name] if verb == "peak" => {
                let effort = effort(name, &options)?;
                Ok(chosen(effort.to_string(), effort.to_json()))
            }
            [verb, name] if verb == "threads" => {
                let pairs = pairs(name, &options)?;
                Ok(chosen(pairs.to_string(), pairs.to_json()))
            }
            [verb] if ["sweep", "peak", "threads"].contains(&verb.as_str()) => {
                Err(BenchError::Verb(verb.clone()))
            }
            [name] if let Some(folder) = &self.dump => {
                let paths = dump(name, &options.sizes, folder)?;
                Ok(paths.map(|path| format!("wrote {}", path.display())).join("\n"))
            }
            [name] => {
                let report = run(name, &options)?;
                Ok(chosen(format!("{report}{}", report.agreed_line()), report.to_json()))
            }
            _ => Err(BenchError::Verb(self.workload.join(" "))),
        }
    }
}

/// A number of bytes, alone or with a unit.
///
/// # Errors
/// If it is none, or more than a number holds.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 3] = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = UNITS.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let number = digits.trim_end().parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number of bytes, or one of KiB, MiB or GiB, such as 512MiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn bytes_have_units() {
        let all = ["7", "64KiB", "512 MiB", "1GiB"].map(parse_bytes);
        assert_eq!(all, [Ok(7), Ok(64 << 10), Ok(512 << 20), Ok(1 << 30)]);
        for wrong in ["", "KiB", "1GB", "-1", "99999999999999GiB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}

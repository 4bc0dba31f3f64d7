//! The options of measurements, for this program and for the verbs `bench` and `sweep` of `autobatch`.

use crate::{BenchError, Mode, Options, Sweep, dump, effort, latency, pairs, run, sweep};
use autobatch::Device;
use autobatch_models::catalogue;
use autobatch_planner::schedule::Policy;
use clap::builder::{PossibleValue, PossibleValuesParser};
use std::path::PathBuf;
use std::time::Duration;

/// Times complete steps: emit, plan, verify, execute, read.
#[derive(clap::Args, Clone, Debug)]
pub struct BenchArgs {
    /// The model, optionally after the name of a measurement. The comparative benchmarks name models by letters:
    /// `a` to `g`
    #[arg(num_args = 1..=2, required_unless_present = "device", value_name = "MODEL", value_parser = words())]
    pub workload: Vec<String>,
    /// The instances, sizes and rounds of the measurement.
    #[command(flatten)]
    pub step: StepArgs,
    /// Split the execution into packing, forward, reverse, reductions and update
    #[arg(long)]
    pub phases: bool,
    /// Execute on a GPU: gpu, gpu:0, gpu:part-of-a-name. Without a model, time products, copies and two models; --hidden
    /// sets the size of products
    #[arg(long)]
    pub device: Option<String>,
    /// Instead of measuring, write the random weights, outputs and gradients of one step into this folder
    #[arg(long, value_name = "FOLDER")]
    pub dump: Option<PathBuf>,
}

/// The steps that a measurement repeats: instances, sizes, rounds.
#[derive(clap::Args, Clone, Debug)]
pub struct StepArgs {
    /// Folder of the model's corpus [default: generated instances]
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    pub data: Option<PathBuf>,
    /// JSON file of instances as lists of numbers, as the scripts in bench/peers write it with --dump-data
    #[arg(long, value_name = "FILE.json", conflicts_with = "data", value_hint = clap::ValueHint::FilePath)]
    pub peer_data: Option<PathBuf>,
    /// Mode: infer or train
    #[arg(long, default_value = "infer", value_parser = ["infer", "train"])]
    pub mode: String,
    /// Width of hidden states [default: the model's]
    #[arg(long)]
    pub hidden: Option<usize>,
    /// Width of word vectors [default: the model's]
    #[arg(long, alias = "emb")]
    pub embedding: Option<usize>,
    /// Number of instances per graph [default: the model's]; `sweep` takes several numbers with commas between them
    #[arg(long, value_delimiter = ',')]
    pub batch: Vec<usize>,
    /// Number of instances to generate [default: the model's]
    #[arg(long)]
    pub count: Option<usize>,
    /// Generate sentences of this one length; model tagger only
    #[arg(long, value_name = "LENGTH")]
    pub same: Option<u32>,
    /// Seed of generated instances
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of threads that execute; 0 means one per core
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Number of rounds of each variant: batched, unbatched, repeated
    #[arg(long, default_value_t = 7)]
    pub rounds: usize,
    /// Duration of a round in milliseconds; a round repeats the step
    #[arg(long, value_name = "MS", default_value_t = 100)]
    pub turn: u64,
    /// Batching policy
    #[arg(long, default_value = "auto")]
    pub policy: String,
    /// Measure the batched variant alone
    #[arg(long)]
    pub alone: bool,
    /// Sparse rows: update only the rows of tables that the minibatch looked up
    #[arg(long)]
    pub sparse_rows: bool,
    /// Maximum memory of executing a plan, with its parameters and temporaries: 1000000, 64KiB, 512MiB, 2GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    pub memory_limit: Option<u64>,
    /// Print only one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The measurements that may precede a model, with their help.
const MEASUREMENTS: [(&str, &str); 6] = [
    ("sweep", "before a model: time several batch sizes"),
    ("peak", "before a model: time its kinds of work, beside the peak of the processor"),
    ("threads", "before a model: compare one thread with several"),
    ("predict", "alone or before a model: predict the time of the first graph on cards, without a GPU"),
    (
        "latency",
        "before a model: time calls of one instance each, 1000 per round, with a cached and with a new plan",
    ),
    ("host", "before a model, with --device: time the host's part of 16 small instances"),
];

fn is_measurement(word: &str) -> bool {
    MEASUREMENTS.iter().any(|&(name, _)| name == word)
}

/// The words before options: measurements and models. The letters of models are hidden in help.
fn words() -> PossibleValuesParser {
    let model = |entry: &catalogue::Entry| {
        PossibleValue::new(entry.name).aliases(entry.letter.as_slice().iter().copied()).help(entry.about)
    };
    let measurements = MEASUREMENTS.map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(catalogue::ENTRIES.iter().map(model).chain(measurements))
}

impl StepArgs {
    /// The options of a measurement.
    ///
    /// # Errors
    /// If the mode or the policy is unknown.
    fn options(&self, phases: bool) -> Result<Options, BenchError> {
        let Self { hidden, embedding, count, same, seed, threads, rounds, .. } = *self;
        let batch = self.batch.first().copied();
        let (corpus, instances) = (self.data.clone(), self.peer_data.clone());
        Ok(Options {
            sizes: catalogue::Options { corpus, instances, seed, count, batch, hidden, embedding, same },
            mode: self.mode.parse::<Mode>()?,
            device: Device::Cpu,
            threads,
            rounds,
            turn: Duration::from_millis(self.turn),
            policy: self.policy.parse::<Policy>()?,
            variants: !self.alone,
            sparse_rows: self.sparse_rows,
            phases,
            memory_limit: self.memory_limit,
        })
    }

    /// Measures the requested batch sizes, or powers of two by default.
    ///
    /// # Errors
    /// As [`sweep`].
    pub fn sweep(&self, name: &str) -> Result<Sweep, BenchError> {
        let default = [1, 2, 4, 8, 16, 32, 64, 128, 256];
        let batches = if self.batch.is_empty() { &default[..] } else { &self.batch };
        sweep(name, batches, &self.options(false)?)
    }
}

impl BenchArgs {
    /// Rejects options that the measurement does not use.
    fn reject_unused(&self, measurement: &str) -> Result<(), BenchError> {
        let (is_sweep, is_plain) = (measurement == "sweep", !is_measurement(measurement));
        let options = [
            ("a second number of --batch", self.step.batch.len() > 1 && !is_sweep),
            ("--dump", self.dump.is_some() && !is_plain),
            ("--phases", self.phases && !is_plain),
            ("--device", self.device.is_some() && !is_plain && measurement != "host"),
            ("--memory-limit", self.step.memory_limit.is_some() && measurement == "latency"),
            // Other measurements execute plans and make no update.
            ("--sparse-rows", self.step.sparse_rows && !is_plain && !is_sweep),
        ];
        match options.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(BenchError::Unused { option, measurement: measurement.to_owned() }),
            None => Ok(()),
        }
    }

    /// Makes the requested measurement and returns the report as text or JSON.
    ///
    /// # Errors
    /// If the arguments are invalid or the measurement fails.
    pub fn answer(&self) -> Result<String, BenchError> {
        if let Some(measurement) = self.workload.first() {
            self.reject_unused(measurement)?;
        }
        let (verbs, models): (Vec<&String>, Vec<&String>) =
            self.workload.iter().partition(|word| is_measurement(word));
        let models = models.into_iter().map(|name| Ok(catalogue::entry_or_letter(name)?.name));
        let models = models.collect::<Result<Vec<&str>, BenchError>>()?;
        let device: Device = match self.device.as_deref() {
            Some(word) => word.parse().map_err(|error| BenchError::Gpu(format!("{error}")))?,
            None => Device::Cpu,
        };
        #[cfg(feature = "gpu")]
        if let Device::Gpu(selector) = &device {
            let of_cpu =
                [("--dump", self.dump.is_some()), ("--memory-limit", self.step.memory_limit.is_some())];
            if let Some((option, _)) = of_cpu.into_iter().find(|(_, is_given)| *is_given) {
                return Err(BenchError::Unused { option, measurement: "GPUs".to_owned() });
            }
            match (verbs.as_slice(), models.as_slice()) {
                ([], []) => return crate::gpu::device(selector, self.step.hidden),
                ([verb], names) if *verb == "host" => return crate::gpu::host(selector, names),
                _ => {}
            }
        }
        let options = Options { device, ..self.step.options(self.phases)? };
        let select = |text: String, json: String| if self.step.json { json } else { text };
        let verbs: Vec<&str> = verbs.into_iter().map(String::as_str).collect();
        match (verbs.as_slice(), models.as_slice()) {
            (["sweep"], [name]) => {
                let sweep = self.step.sweep(name)?;
                Ok(select(sweep.to_string(), sweep.to_json()))
            }
            (["peak"], [name]) => {
                let effort = effort(name, &options)?;
                Ok(select(effort.to_string(), effort.to_json()))
            }
            #[cfg(feature = "gpu")]
            (["predict"], names) => {
                let predictions = crate::predict(names, &options)?;
                Ok(select(predictions.to_string(), predictions.to_json()))
            }
            #[cfg(not(feature = "gpu"))]
            (["predict"], _) => {
                let reason = "this build cannot compile plans for GPUs: build with the feature gpu";
                Err(BenchError::Gpu(reason.to_owned()))
            }
            (["threads"], [name]) => {
                let pairs = pairs(name, &options)?;
                Ok(select(pairs.to_string(), pairs.to_json()))
            }
            (["latency"], [name]) => {
                let latency = latency(name, &options)?;
                Ok(select(latency.to_string(), latency.to_json()))
            }
            ([], [name]) if let Some(folder) = &self.dump => {
                let paths = dump(name, &options.sizes, folder)?;
                Ok(paths.map(|path| format!("wrote {}", path.display())).join("\n"))
            }
            ([], [name]) => {
                let report = run(name, &options)?;
                let differs = report.same_bits.is_some_and(|same| !same.equal);
                let text = select(report.to_string(), report.to_json());
                if differs { Err(BenchError::Bits(text)) } else { Ok(text) }
            }
            _ => Err(BenchError::Verb(self.workload.join(" "))),
        }
    }
}

/// Parses a number of bytes with an optional unit.
///
/// # Errors
/// If the text is malformed or the number overflows.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 3] = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = UNITS.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let number = digits.trim_end().parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number of bytes, optionally in KiB, MiB or GiB, such as 512MiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn numbers_of_bytes_have_units() {
        let all = ["7", "64KiB", "512 MiB", "1GiB"].map(parse_bytes);
        assert_eq!(all, [Ok(7), Ok(64 << 10), Ok(512 << 20), Ok(1 << 30)]);
        for wrong in ["", "KiB", "1GB", "-1", "99999999999999GiB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}

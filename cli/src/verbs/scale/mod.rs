//! `scale`: predicts how training scales with the number of ranks.
//!
//! The work of a rank is measured: the command makes training steps as one rank of a group whose other ranks send what it
//! sends. A [model of the network](network) adds the messages of these steps. On two ranks the command measures the network too,
//! and real steps beside the prediction.

mod network;

use crate::args::ScaleArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::ranks::Ranks;
use autobatch::distributed::{Group, Observed, Operation, Simulated};
use autobatch::prelude::*;
use autobatch::sampling::balanced;
use autobatch::train::Bar;
use autobatch_models::lessons::{self, Lesson};
use network::{Network, median};
use serde_json::{Value as Json, json};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The efficiency below which more ranks are called a waste.
const HALF: f64 = 0.5;

/// A prediction for a number of ranks.
struct Row {
    ranks: usize,
    /// The time of what one rank computes in a step.
    compute: Duration,
    /// The time of a step.
    step: Duration,
    /// The bytes that one rank sends in a step.
    sent: usize,
}

/// Predicts how training scales.
pub fn scale(args: &ScaleArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    Ranks::join()?.run(console, |ranks, console| {
        if ranks.size() > 2 {
            let message = format!("scale measures on one rank or two, found {}", ranks.size());
            return Err(Failure::usage(message).help("start it as mpirun -n 2 autobatch scale ..."));
        }
        let lesson = lessons::open(&args.model.name, &args.model.lesson(args.count))?;
        let scaling = Scaling::new(args, &lesson)?;
        let measured = ranks.group().map(|mut group| Network::measure(&mut group)).transpose()?;
        let network = Network {
            latency: args.latency.map_or_else(|| measured.map_or(20e-6, |it| it.latency), |us| us * 1e-6),
            bandwidth: args.bandwidth.map_or_else(|| measured.map_or(1e9, |it| it.bandwidth), |gb| gb * 1e9),
        };
        // Two ranks compute at the same time, as those of a training do.
        let mut rows = vec![scaling.plain(ranks)?];
        let mut bar = match ranks.rank() {
            0 => Bar::new("ranks", scaling.counts().count()),
            _ => Bar::hidden(),
        };
        for count in scaling.counts() {
            rows.push(scaling.simulated(count, network)?);
            bar.advance(&format!("{count} ranks"));
        }
        drop(bar);
        let real = ranks.group().map(|group| scaling.real(group)).transpose()?;
        let report = Report { args, lesson: &lesson, network, is_measured: measured.is_some(), rows, real };
        let batch = scaling.batch;
        match args.json {
            true => writeln!(console, "{:#}", report.json(batch, console))?,
            false => report.print(batch, console)?,
        }
        Ok(Answer::Yes)
    })
}

/// The steps to measure.
struct Scaling<'a> {
    args: &'a ScaleArgs,
    lesson: &'a Lesson,
    batch: usize,
    /// The first minibatch warms up.
    minibatches: Vec<Vec<usize>>,
}

impl<'a> Scaling<'a> {
    fn new(args: &'a ScaleArgs, lesson: &'a Lesson) -> Result<Self, Failure> {
        let train = lesson.train();
        let batch = args.batch.map_or(lesson.habits.batch, |batch| batch as usize);
        if batch > train.len() {
            let message = format!("--batch {batch} is more than the {} training instances", train.len());
            return Err(Failure::usage(message).help("pass a smaller --batch or a larger --count"));
        }
        let minibatches = (0..=u64::from(args.rounds)).map(|round| {
            let mut batches = train.batches(batch).shuffled(args.model.seed.wrapping_add(round));
            batches.next().unwrap_or_default().into_iter().copied().collect()
        });
        Ok(Self { args, lesson, batch, minibatches: minibatches.collect() })
    }

    /// The numbers of ranks: powers of two, so that all ranks have equal shares.
    fn counts(&self) -> impl Iterator<Item = usize> + use<> {
        let most = self.batch.min(self.args.ranks as usize);
        (1..).map(|power| 1 << power).take_while(move |&count| count <= most)
    }

    fn trainer(&self) -> Result<Trainer, Failure> {
        let ScaleArgs { model, threads, .. } = self.args;
        let options = SessionOptions {
            device: model.device.clone(),
            policy: model.policy.clone(),
            threads: *threads,
            seed: model.seed,
            ..SessionOptions::default()
        };
        let module = Arc::clone(&self.lesson.module);
        let weights = Weights::try_init(&module, model.seed).map_err(autobatch::Error::from)?;
        let optimizer = Adam::new(self.lesson.habits.learning_rate);
        Ok(Trainer::with_options(module, optimizer, Arc::new(weights), options)?)
    }

    /// Makes a step for each minibatch, in the order that `arranged` gives its instances. Returns the times of all but the first.
    fn steps(
        &self,
        trainer: &mut Trainer,
        arranged: impl Fn(Vec<usize>) -> Vec<usize>,
        mut after: impl FnMut(Duration),
    ) -> Result<(), Failure> {
        let workload = &self.lesson.workload;
        for (number, minibatch) in self.minibatches.iter().enumerate() {
            let items = arranged(minibatch.clone());
            let start = Instant::now();
            trainer.step(&items, |g, &instance| workload.loss(g, instance))?;
            let time = start.elapsed();
            after(if number == 0 { Duration::ZERO } else { time });
        }
        Ok(())
    }

    /// Measures one process that trains alone, without shards. The other rank waits.
    fn plain(&self, ranks: &Ranks) -> Result<Row, Failure> {
        let mut times = Vec::new();
        if ranks.rank() == 0 {
            self.steps(&mut self.trainer()?, |items| items, |time| times.push(time))?;
        }
        ranks.broadcast(&[])?;
        let step = median(times.get_mut(1..).unwrap_or_default());
        Ok(Row { ranks: 1, compute: step, step, sent: 0 })
    }

    /// The shards of a training on this number of ranks.
    fn shards(&self, ranks: usize) -> usize {
        let shards = ranks.max(Trainer::SHARDS);
        if shards <= self.batch { shards } else { ranks }
    }

    /// Measures one rank among others that do not exist.
    fn simulated(&self, count: usize, network: Network) -> Result<Row, Failure> {
        let (group, record) = Observed::new(Simulated::among(count));
        let shards = self.shards(count);
        let mut trainer = self.trainer()?.shards(shards).group(group)?;
        drop(record.take());
        let size = |&item: &usize| self.lesson.sizes[item] as u64;
        let heaviest_first = |items: Vec<usize>| {
            let mut items = balanced(items, shards, size);
            let (length, own) = (items.len(), |rank: usize| items.len() * rank / count);
            let of = |rank: usize| items[own(rank)..own(rank + 1)].iter().map(size).sum::<u64>();
            let heaviest = (0..count).max_by_key(|&rank| of(rank)).unwrap_or(0);
            let start = own(heaviest);
            items.rotate_left(start % length.max(1));
            items
        };
        let mut rows = Vec::new();
        self.steps(&mut trainer, heaviest_first, |time| {
            let operations = record.take();
            let work: Duration = operations.iter().map(Operation::work).sum();
            let within: Duration = operations.iter().map(|operation| operation.time).sum();
            let outside = time.saturating_sub(within);
            let messages: f64 = operations.iter().map(|operation| network.with_work(operation, count)).sum();
            let sent = operations.iter().map(|operation| operation.sent).sum();
            rows.push((outside + Duration::from_secs_f64(messages), outside + work, sent));
        })?;
        let mut rows = rows.split_off(1);
        rows.sort_unstable();
        let (step, compute, sent) = rows[rows.len() / 2];
        Ok(Row { ranks: count, compute, step, sent })
    }

    /// Measures the ranks of a group that train together.
    fn real(&self, group: impl Group + 'static) -> Result<Duration, Failure> {
        let shards = self.shards(group.size());
        let mut trainer = self.trainer()?.shards(shards).group(group)?;
        let size = |&item: &usize| self.lesson.sizes[item] as u64;
        let mut times = Vec::new();
        self.steps(&mut trainer, |items| balanced(items, shards, size), |time| times.push(time))?;
        Ok(median(times.get_mut(1..).unwrap_or_default()))
    }
}

/// The answer of the verb.
struct Report<'a> {
    args: &'a ScaleArgs,
    lesson: &'a Lesson,
    network: Network,
    is_measured: bool,
    rows: Vec<Row>,
    /// The time of a step of two real ranks.
    real: Option<Duration>,
}

impl Report<'_> {
    fn rate(row: &Row, batch: usize) -> f64 {
        batch as f64 / row.step.as_secs_f64().max(1e-9)
    }

    /// The speed beside that of as many plain processes.
    fn efficiency(&self, row: &Row) -> f64 {
        let plain = self.rows.first().map_or(Duration::ZERO, |row| row.step);
        plain.as_secs_f64() / (row.ranks as f64 * row.step.as_secs_f64()).max(1e-9)
    }

    /// The number of ranks with the fastest step.
    fn fastest(&self) -> usize {
        self.rows.iter().min_by_key(|row| row.step).map_or(1, |row| row.ranks)
    }

    /// The most ranks of which at least half is used.
    fn worthwhile(&self) -> usize {
        let rows = self.rows.iter().take_while(|row| self.efficiency(row) >= HALF);
        rows.last().map_or(1, |row| row.ranks)
    }

    fn origin(&self) -> &'static str {
        match (self.is_measured, self.args.latency.is_some() && self.args.bandwidth.is_some()) {
            (_, true) => "given",
            (true, false) => "measured between two ranks",
            (false, false) => "assumed: give --latency and --bandwidth, or start two ranks with mpirun -n 2",
        }
    }

    fn print(&self, batch: usize, console: &mut Console<'_>) -> Result<(), Failure> {
        let Network { latency, bandwidth } = self.network;
        let (latency, bandwidth) = (Duration::from_secs_f64(latency), bandwidth / 1e9);
        let shown = |console: &Console<'_>, text: String| match console.millis(Duration::ZERO) {
            Some(_) => text,
            None => "..".to_owned(),
        };
        writeln!(console, "model {}, {batch} instances in a step", self.lesson.entry.name)?;
        let (time, rate) = (console.time(latency), shown(console, format!("{bandwidth:.2}")));
        writeln!(console, "network: latency {time}, {rate} GB/s, {}", self.origin())?;
        writeln!(
            console,
            "{:>5}  {:>9}  {:>9}  {:>9}  {:>9}  {:>11}  {:>10}",
            "ranks", "instances", "compute", "network", "step", "instances/s", "efficiency"
        )?;
        for row in &self.rows {
            let Row { ranks, compute, step, .. } = row;
            let (rate, efficiency) = (Self::rate(row, batch), 100.0 * self.efficiency(row));
            let network = console.time(step.saturating_sub(*compute));
            let (compute, step) = (console.time(*compute), console.time(*step));
            let rate = shown(console, format!("{rate:.0}"));
            let efficiency = shown(console, format!("{efficiency:.0} %"));
            writeln!(
                console,
                "{ranks:>5}  {:>9}  {compute:>9}  {network:>9}  {step:>9}  {rate:>11}  {efficiency:>10}",
                batch.div_ceil(*ranks)
            )?;
        }
        if let (Some(real), Some(row)) = (self.real, self.rows.get(1)) {
            let error = 100.0 * (row.step.as_secs_f64() / real.as_secs_f64().max(1e-9) - 1.0);
            let error = shown(console, format!("{error:+.1} %"));
            writeln!(
                console,
                "measured on 2 ranks: {}; the prediction differs by {error}",
                console.time(real)
            )?;
        }
        let (fastest, worthwhile) = (self.fastest().to_string(), self.worthwhile().to_string());
        let (fastest, worthwhile) = (shown(console, fastest), shown(console, worthwhile));
        writeln!(
            console,
            "steps are fastest on {fastest} ranks; up to {worthwhile} ranks, at least half of each is used"
        )?;
        Ok(())
    }

    fn json(&self, batch: usize, console: &Console<'_>) -> Json {
        let micros = |seconds: f64| console.millis(Duration::from_secs_f64(seconds)).map(|ms| ms * 1e3);
        let is_shown = console.millis(Duration::ZERO).is_some();
        let rows = self.rows.iter().map(|row| {
            json!({
                "ranks": row.ranks,
                "instances": batch.div_ceil(row.ranks),
                "compute_ms": console.millis(row.compute),
                "step_ms": console.millis(row.step),
                "sent_bytes": row.sent,
                "instances_per_second": is_shown.then(|| Self::rate(row, batch)),
                "efficiency": is_shown.then(|| self.efficiency(row)),
            })
        });
        json!({
            "model": self.lesson.entry.name,
            "batch": batch,
            "network": {
                "latency_us": micros(self.network.latency),
                "bandwidth_gb": is_shown.then(|| self.network.bandwidth / 1e9),
                "origin": self.origin(),
            },
            "predictions": rows.collect::<Vec<_>>(),
            "measured_2_ranks_ms": self.real.map(|real| console.millis(real)),
            "fastest": is_shown.then(|| self.fastest()),
            "half_used": is_shown.then(|| self.worthwhile()),
        })
    }
}

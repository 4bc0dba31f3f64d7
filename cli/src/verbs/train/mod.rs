//! `train`: trains a model of the catalogue on a corpus or on generated instances.
//!
//! Each epoch prints a line with its losses, the scores on the development part, speed, batches with their
//! lower bound, and the shares of time. Only the times depend on the machine. The test part is evaluated once, at
//! the end, with the parameters of the best epoch. A run that resumes from a checkpoint continues with the same bits.

mod best;
mod curve;
mod order;
mod report;
mod resume;
mod shared;
mod trace;

use crate::args::{OptimizerArg, TrainArgs};
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::interrupt;
use crate::measure::measure_on_ranks;
use crate::output_paths::{check_distinct, check_replaceable, check_writable, make_folder};
use crate::ranks::Ranks;
use crate::trained::SPECIFICATION;
use autobatch::nn::optim::{Adagrad, RmsProp};
use autobatch::prelude::*;
use autobatch::sampling::balanced;
use autobatch::train::{Bar, CheckpointError, Patience, Progress};
use autobatch_models::lessons::{self, CorpusPart, Lesson};
use best::{Best, best_path};
use curve::{Curve, Epoch, Totals};
use order::Order;
use resume::Settings;
use shared::Joined;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace::Trace;

/// Separates the random order of minibatches from the generated instances, which use the same seed.
const ORDER_SALT: u64 = 0x0de5_0000_0000_0000;

/// Trains a model.
pub fn train(args: &TrainArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    interrupt::watch();
    Ranks::join()?.run(console, |ranks, console| {
        let lesson = lessons::open(&args.model.name, &args.model.lesson(args.count))?;
        let mut run = Run::new(args, &lesson, ranks)?;
        // Training continues if the reader of standard output closes the pipe.
        console.ignore_closed_pipe();
        run.print_header(console)?;
        let end = run.epochs(console)?;
        run.finish(end, console)?;
        if let (Some(path), Some(trace)) = (&args.trace, &run.trace) {
            trace.write(path, ranks, args.json, console)?;
        }
        Ok(if end == End::Interrupted { Answer::Interrupted } else { Answer::Yes })
    })
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All epochs are complete, or patience ran out.
    Complete,
    /// The time limit.
    OutOfTime,
    /// A signal.
    Interrupted,
}

/// Why an epoch stops before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// A checkpoint is due.
    Save,
    /// The run ends.
    End(End),
}

/// A run of training.
struct Run<'a> {
    args: &'a TrainArgs,
    lesson: &'a Lesson,
    trainer: Trainer,
    patience: Patience,
    curve: Curve,
    best: Best,
    /// The settings that differ from those of the checkpoint.
    changes: Vec<String>,
    rate: f64,
    batch: usize,
    /// The number of shards of a minibatch; `None` if it executes as a whole.
    shards: Option<usize>,
    trace: Option<Trace>,
    /// The checkpoints that this run wrote.
    written: Vec<String>,
    /// Whether this run completed an epoch, and so wrote the curve.
    wrote_epoch: bool,
    epochs: u64,
    start: Instant,
    /// The time of the last checkpoint.
    saved: Instant,
}

impl<'a> Run<'a> {
    fn new(args: &'a TrainArgs, lesson: &'a Lesson, ranks: &Ranks) -> Result<Self, Failure> {
        let habits = lesson.habits;
        let rate = args.lr.unwrap_or(habits.learning_rate);
        check_options(args, lesson, rate)?;
        let options = SessionOptions {
            device: args.model.device.clone(),
            policy: args.model.policy.clone(),
            threads: args.threads,
            seed: args.model.seed,
            cached_plans: 8,
            ..SessionOptions::default()
        };
        let module = Arc::clone(&lesson.module);
        let weights = Arc::new(Weights::try_init(&module, args.model.seed).map_err(autobatch::Error::from)?);
        let trainer = Trainer::with_options(module, optimizer(args, rate), weights, options)?;
        let Joined { mut trainer, shards, trace } = shared::join(trainer, args, lesson, ranks)?;
        if let Some(path) = &args.resume {
            trainer.load(path).map_err(|error| checkpoint_failure(&error))?;
        }
        let batch = args.batch.map_or(habits.batch, |batch| batch as usize);
        let count = lesson.train().len();
        let order = Order { seed: args.model.seed, batch, bucket: args.bucket, count };
        if let Some(path) = &args.resume {
            order.check_against(path, &trainer)?;
        }
        order.note(&mut trainer);
        let settings = Settings::new(args, rate, batch, count, shards);
        let changes = settings.changes_since(&trainer);
        settings.note(&mut trainer);
        trainer.set_note(SPECIFICATION, lesson.specification.as_str());
        if trainer.rank() == 0 {
            check_outputs(args)?;
        }
        let curve = Curve::from_note(&trainer);
        let mut patience = Patience::new(args.patience);
        for epoch in &curve.epochs {
            patience.observe(epoch.measured.main());
        }
        let best = Best::before_resumption(args, lesson, &curve, &patience, trainer.progress());
        Ok(Self {
            args,
            lesson,
            trainer,
            patience,
            curve,
            best,
            changes,
            rate,
            batch,
            shards,
            trace,
            written: Vec::new(),
            wrote_epoch: false,
            epochs: args.epochs.unwrap_or(habits.epochs),
            start: Instant::now(),
            saved: Instant::now(),
        })
    }

    /// Trains all epochs.
    fn epochs(&mut self, console: &mut Console<'_>) -> Result<End, Failure> {
        for epoch in self.trainer.progress().epoch..self.epochs {
            let totals = loop {
                let (totals, stop) = self.epoch(epoch)?;
                let Some(stop) = stop else { break totals };
                totals.note(&mut self.trainer);
                match stop {
                    Stop::Save => self.save(false)?,
                    Stop::End(end) => return Ok(end),
                }
            };
            let development = self.lesson.part(CorpusPart::Development);
            let measured = measure_on_ranks(&mut self.trainer, self.lesson, development, self.batch)?;
            self.trainer.set_progress(Progress { epoch: epoch + 1, batches: 0 });
            Totals::default().note(&mut self.trainer);
            let epoch = Epoch { number: epoch + 1, totals, measured };
            self.print_epoch(&epoch, console)?;
            let verdict = self.patience.observe(epoch.measured.main());
            if verdict.is_best {
                self.best.keep(epoch.number, &self.trainer);
            }
            self.curve.push(epoch);
            self.wrote_epoch = true;
            self.curve.note(&mut self.trainer);
            self.save(verdict.is_best)?;
            if self.trainer.rank() == 0 {
                self.curve.write(self.args, self.lesson)?;
            }
            if verdict.stop {
                self.print_patience(console)?;
                return Ok(End::Complete);
            }
        }
        Ok(End::Complete)
    }

    /// Trains one epoch, or the rest of it after a resumption or a checkpoint. Returns a reason to stop within the epoch.
    fn epoch(&mut self, epoch: u64) -> Result<(Totals, Option<Stop>), Failure> {
        let train = self.lesson.train();
        let seed = self.args.model.seed ^ ORDER_SALT ^ epoch.wrapping_mul(0x9e37_79b9);
        let mut batches: Vec<Vec<&usize>> = match self.args.bucket {
            true => {
                let buckets = train.shuffled(seed).bucket_by(|&number| self.lesson.sizes[number]);
                buckets.batches(self.batch).shuffled_batches(seed).collect()
            }
            false => train.batches(self.batch).shuffled(seed).collect(),
        };
        if let Some(shards) = self.shards {
            let size = |&&number: &&usize| self.lesson.sizes[number] as u64;
            batches = batches.into_iter().map(|batch| balanced(batch, shards, size)).collect();
        }
        let mut done = self.trainer.progress().batches;
        let mut totals = if done > 0 { Totals::from_note(&self.trainer) } else { Totals::default() };
        let (workload, start) = (&self.lesson.workload, self.start);
        let [limit, interval] = [self.args.max_minutes, self.args.save_every]
            .map(|minutes| minutes.map(|minutes| minutes * 60.0));
        let (first, saved) = (done, self.saved);
        let is_over = |since: Instant, limit: Option<f64>| {
            limit.is_some_and(|limit| since.elapsed().as_secs_f64() >= limit)
        };
        let stop = |done: u64| match () {
            () if interrupt::is_requested() => Some(Stop::End(End::Interrupted)),
            () if is_over(start, limit) => Some(Stop::End(End::OutOfTime)),
            () if done > first && is_over(saved, interval) => Some(Stop::Save),
            () => None,
        };
        let count = batches.len() as u64;
        let mut bar = match self.trainer.rank() {
            0 => Bar::new(&format!("epoch {}", epoch + 1), (count - done.min(count)) as usize),
            _ => Bar::hidden(),
        };
        let batches = batches.into_iter().skip(done as usize);
        let is_alone = self.trainer.ranks() == 1;
        let mut steps = self.trainer.pass(batches, |g, &instance| workload.loss(g, instance));
        while done < count {
            let own = stop(done);
            if own.is_some() && is_alone {
                return Ok((totals, own));
            }
            steps.set_signal(shared::signal(own));
            let start = Instant::now();
            let Some(step) = steps.next() else { break };
            let step = step?;
            if let Some(trace) = &mut self.trace {
                trace.step(start, &step);
            }
            done += 1;
            steps.set_progress(Progress { epoch, batches: done });
            bar.report(&step);
            totals.add(&step);
            if let Some(stop) = shared::stop_of(step.signal) {
                return Ok((totals, Some(stop)));
            }
        }
        Ok((totals, None))
    }

    /// Writes the checkpoint, and another one if the epoch is the best.
    fn save(&mut self, is_best: bool) -> Result<(), Failure> {
        self.saved = Instant::now();
        let Some(path) = &self.args.save else { return Ok(()) };
        let mut paths = vec![path.clone()];
        paths.extend(is_best.then(|| best_path(path)));
        paths.into_iter().try_for_each(|path| self.write_checkpoint(path))
    }

    fn write_checkpoint(&mut self, path: String) -> Result<(), Failure> {
        self.trainer
            .save(&path)
            .map_err(|error| Failure { kind: crate::FailureKind::Output, ..checkpoint_failure(&error) })?;
        if !self.written.contains(&path) {
            self.written.push(path);
        }
        Ok(())
    }

    /// Writes the checkpoint of a run that ended within an epoch. Returns its path. After a signal the run writes one
    /// even without `--save`.
    fn save_unfinished(&mut self, end: End) -> Result<Option<String>, Failure> {
        let path = match (&self.args.save, end) {
            (Some(path), _) => path.clone(),
            (None, End::Interrupted) => unused_path(self.lesson.entry.name),
            (None, _) => return Ok(None),
        };
        self.write_checkpoint(path.clone())?;
        Ok(Some(path))
    }

    fn finish(&mut self, end: End, console: &mut Console<'_>) -> Result<(), Failure> {
        let unfinished = match end {
            End::Complete => None,
            End::OutOfTime | End::Interrupted => self.save_unfinished(end)?,
        };
        let tested = match end {
            End::Interrupted => None,
            End::Complete | End::OutOfTime => Some(self.test()?),
        };
        self.print_end(end, unfinished.as_deref(), tested.as_ref(), console)
    }
}

/// Checks that the files of the run can be written, before any work.
fn check_outputs(args: &TrainArgs) -> Result<(), Failure> {
    for path in &args.curve {
        make_folder(path)?;
        check_writable(path)?;
    }
    if let Some(path) = &args.trace {
        make_folder(path)?;
        check_writable(path)?;
    }
    if let Some(path) = &args.save {
        make_folder(path)?;
        check_replaceable(path)?;
        check_replaceable(&best_path(path))?;
    }
    Ok(())
}

/// A path for a checkpoint that does not exist yet.
fn unused_path(model: &str) -> String {
    let candidates = std::iter::once(String::new()).chain((2..).map(|number| format!("-{number}")));
    let mut paths = candidates.map(|suffix| format!("{model}.interrupted{suffix}.safetensors"));
    paths.find(|path| !std::path::Path::new(path).exists()).unwrap_or_default()
}

/// Rejects options that do not fit, before any work.
fn check_options(args: &TrainArgs, lesson: &Lesson, rate: f64) -> Result<(), Failure> {
    if !((rate as f32).is_finite() && rate > 0.0) {
        let message = format!("--lr must be above 0 and below 3.4e38, found {}", short(rate));
        return Err(Failure::usage(message).help("most models learn with rates from 0.0001 to 1"));
    }
    for (name, found) in [
        ("clip", args.clip),
        ("decay", args.decay),
        ("max-minutes", args.max_minutes.unwrap_or(0.0)),
        ("save-every", args.save_every.unwrap_or(0.0)),
    ] {
        if found < 0.0 || found.is_nan() {
            return Err(Failure::usage(format!("--{name} must be 0 or more, found {found}")));
        }
    }
    for path in &args.curve {
        curve::form(path)?;
    }
    if args.decode && lesson.parsing.is_none() {
        let message = format!("model {} has no decoder", lesson.entry.name);
        return Err(Failure::usage(message).help("remove --decode"));
    }
    let best = args.save.as_deref().map(best_path);
    let curves: Vec<&str> = args.curve.iter().chain(&args.trace).map(String::as_str).collect();
    check_distinct(&curves, args.resume.as_deref().as_slice())?;
    let all: Vec<&str> = curves.into_iter().chain(args.save.as_deref()).chain(best.as_deref()).collect();
    check_distinct(&all, &[])
}

/// A checkpoint that cannot be read or written.
fn checkpoint_failure(error: &CheckpointError) -> Failure {
    Failure::input(error.to_string())
}

/// A number without hundreds of digits.
fn short(number: f64) -> String {
    if number.abs() < 1e6 { number.to_string() } else { format!("{number:e}") }
}

fn optimizer(args: &TrainArgs, rate: f64) -> Optimizer {
    let mut optimizer: Optimizer = match args.optimizer {
        OptimizerArg::Sgd => Sgd::new(rate).into(),
        OptimizerArg::Momentum => Momentum::new(rate, 0.9).into(),
        OptimizerArg::Adam => Adam::new(rate).into(),
        OptimizerArg::Adamw => AdamW::new(rate).into(),
        OptimizerArg::Adagrad => Adagrad::new(rate).into(),
        OptimizerArg::Rmsprop => RmsProp::new(rate).into(),
    };
    if args.clip > 0.0 {
        optimizer = optimizer.clip_norm(args.clip);
    }
    if args.decay > 0.0 {
        optimizer = optimizer.weight_decay(args.decay);
    }
    optimizer
}

/// A share of a time in percent.
fn percent(part: Duration, whole: Duration) -> f64 {
    100.0 * part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}

//! `train`: trains a model of the catalogue on a corpus or on generated instances.
//!
//! Each epoch prints a line with its losses, the scores on held-out instances, speed, batches with their
//! lower bound, and the shares of time. Only the times depend on the machine. A run that resumes from a
//! checkpoint continues with the same bits.

mod curve;
mod measure;
mod order;

use crate::args::{OptimizerArg, TrainArgs};
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::output_paths::{check_distinct, check_replaceable, check_writable, make_folder};
use crate::text::{count, plural};
use autobatch::nn::optim::{Adagrad, RmsProp};
use autobatch::prelude::*;
use autobatch::train::{Bar, CheckpointError, Patience, Progress};
use autobatch_models::lessons::{self, Lesson};
use autobatch_models::parser::greedy::{self, Parsing};
use curve::{Curve, Epoch};
use measure::measure;
use order::Order;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Separates the random order of minibatches from the generated instances, which use the same seed.
const ORDER_SALT: u64 = 0x0de5_0000_0000_0000;

/// Trains a model.
pub fn train(args: &TrainArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    let options = lessons::Options {
        data: args.data.as_ref().map(Into::into),
        seed: args.model.seed,
        count: args.count,
        hidden: args.model.hidden,
        embedding: args.model.embedding,
    };
    let lesson = lessons::open(&args.model.name, &options)?;
    let mut run = Run::new(args, &lesson)?;
    // Training continues if the reader of standard output closes the pipe.
    console.ignore_closed_pipe();
    run.print_header(console)?;
    let finished = run.epochs(console)?;
    run.finish(finished, console)?;
    Ok(Answer::Yes)
}

/// The score of each epoch, which selects the best checkpoint. Checkpoints store the scores in a note.
#[derive(Clone, Debug, Default)]
struct Scores(Vec<f64>);

impl Scores {
    const NOTE: &'static str = "scores";

    /// Reads the scores in a checkpoint. A malformed note gives no scores.
    fn from_notes(trainer: &Trainer) -> Self {
        let bits: Option<Vec<u64>> =
            trainer.note(Self::NOTE).and_then(|note| serde_json::from_str(note).ok());
        Self(bits.unwrap_or_default().into_iter().map(f64::from_bits).collect())
    }

    /// Stores the scores for the next checkpoint.
    fn note(&self, trainer: &mut Trainer) {
        let bits: Vec<u64> = self.0.iter().map(|score| score.to_bits()).collect();
        trainer.set_note(Self::NOTE, serde_json::json!(bits).to_string());
    }
}

/// A run of training.
struct Run<'a> {
    args: &'a TrainArgs,
    lesson: &'a Lesson,
    trainer: Trainer,
    patience: Patience,
    /// The score of every epoch, including those before a resumption.
    scores: Scores,
    curve: Curve,
    batch: usize,
    /// Whether this run wrote a checkpoint.
    saved: bool,
    epochs: u64,
    start: Instant,
}

impl<'a> Run<'a> {
    fn new(args: &'a TrainArgs, lesson: &'a Lesson) -> Result<Self, Failure> {
        let habits = lesson.habits;
        let rate = args.lr.unwrap_or(habits.learning_rate);
        if !(rate.is_finite() && rate > 0.0) {
            return Err(Failure::usage(format!("--lr must be above 0, found {rate}")));
        }
        for (name, found) in
            [("clip", args.clip), ("decay", args.decay), ("max-minutes", args.max_minutes.unwrap_or(0.0))]
        {
            if found < 0.0 || found.is_nan() {
                return Err(Failure::usage(format!("--{name} must be 0 or more, found {found}")));
            }
        }
        // Errors of output paths are reported before training starts.
        for path in &args.curve {
            curve::form(path)?;
        }
        check_outputs(args)?;
        if args.decode && lesson.parsing.is_none() {
            let message = format!("model {} has no decoder", lesson.entry.alias);
            return Err(Failure::usage(message).help("remove --decode"));
        }
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
        let mut trainer = Trainer::with_options(module, optimizer(args, rate), weights, options)?;
        if let Some(path) = &args.resume {
            trainer.load(path).map_err(|error| checkpoint_failure(&error))?;
        }
        let batch = args.batch.map_or(habits.batch, |batch| batch as usize);
        let order = Order { seed: args.model.seed, batch, bucket: args.bucket, count: lesson.train };
        if let Some(path) = &args.resume {
            order.check_against(path, &trainer)?;
        }
        order.note(&mut trainer);
        for path in &args.curve {
            make_folder(path)?;
            check_writable(path)?;
        }
        if let Some(path) = &args.save {
            make_folder(path)?;
            check_replaceable(path)?;
            check_replaceable(&best_path(path))?;
        }
        let scores = Scores::from_notes(&trainer);
        let mut patience = Patience::new(args.patience);
        for &score in &scores.0 {
            patience.observe(score);
        }
        Ok(Self {
            args,
            lesson,
            trainer,
            patience,
            scores,
            curve: Curve::default(),
            batch,
            saved: false,
            epochs: args.epochs.unwrap_or(habits.epochs),
            start: Instant::now(),
        })
    }

    fn print_header(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let Self { lesson, args, trainer, .. } = self;
        let parameters: usize = trainer.weights().iter().map(|param| param.values().len()).sum();
        let unit = lesson.entry.unit;
        writeln!(
            console,
            "{}  {}, {} parameters; {} {unit} for training, {} held out ({})",
            lesson.entry.alias,
            lesson.entry.about,
            count(parameters as u64),
            count(lesson.train as u64),
            count((lesson.workload.instances() - lesson.train) as u64),
            lesson.source,
        )?;
        writeln!(
            console,
            "{:?}, learning rate {}, minibatches of {}, seed {}, up to {}, on {}",
            args.optimizer,
            args.lr.unwrap_or(lesson.habits.learning_rate),
            self.batch,
            args.model.seed,
            plural(self.epochs, "epoch"),
            args.model.device,
        )?;
        if let (Some(path), Progress { epoch, batches }) = (&args.resume, trainer.progress()) {
            if epoch >= self.epochs {
                let made = plural(epoch, "epoch");
                writeln!(
                    console,
                    "resumed from {path} after {made}: training is complete (--epochs raises the total)"
                )?;
                return Ok(());
            }
            writeln!(
                console,
                "resumed from {path}: epoch {}, after {batches} of its minibatches",
                epoch + 1
            )?;
        }
        Ok(())
    }

    /// Trains all epochs. Returns false if time ran out first.
    fn epochs(&mut self, console: &mut Console<'_>) -> Result<bool, Failure> {
        for epoch in self.trainer.progress().epoch..self.epochs {
            let Some(totals) = self.epoch(epoch)? else {
                let at = self.trainer.progress();
                writeln!(
                    console,
                    "time ran out in epoch {}, after {} of its minibatches{}",
                    at.epoch + 1,
                    at.batches,
                    self.resume_hint()
                )?;
                let measured = measure(&mut self.trainer, self.lesson, &self.lesson.valid(), self.batch)?;
                writeln!(console, "measured    {}", measured.text())?;
                return Ok(false);
            };
            let measured = measure(&mut self.trainer, self.lesson, &self.lesson.valid(), self.batch)?;
            self.trainer.set_progress(Progress { epoch: epoch + 1, batches: 0 });
            let epoch = Epoch { number: epoch + 1, totals, measured };
            writeln!(console, "{}", epoch.line(console))?;
            console.flush()?;
            let verdict = self.patience.observe(epoch.measured.main());
            self.scores.0.push(epoch.measured.main());
            self.scores.note(&mut self.trainer);
            self.save(verdict.is_best)?;
            self.curve.push(epoch);
            self.curve.write(self.args, self.lesson)?;
            if verdict.stop {
                let epochs = plural(self.args.patience as u64, "epoch");
                writeln!(console, "no improvement for {epochs}")?;
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Trains one epoch, or the rest of it after a resumption. Returns `None` if time ran out.
    fn epoch(&mut self, epoch: u64) -> Result<Option<curve::Totals>, Failure> {
        let train = self.lesson.train();
        let seed = self.args.model.seed ^ ORDER_SALT ^ epoch.wrapping_mul(0x9e37_79b9);
        let batches: Vec<Vec<&usize>> = match self.args.bucket {
            true => {
                let buckets = train.shuffled(seed).bucket_by(|&number| self.lesson.sizes[number]);
                buckets.batches(self.batch).shuffled_batches(seed).collect()
            }
            false => train.batches(self.batch).shuffled(seed).collect(),
        };
        let mut bar = Bar::new(&format!("epoch {}", epoch + 1), batches.len());
        let mut totals = curve::Totals::default();
        let mut done = self.trainer.progress().batches;
        let (workload, start) = (&self.lesson.workload, self.start);
        let limit = self.args.max_minutes.map(|minutes| minutes * 60.0);
        let time_is_up = || limit.is_some_and(|limit| start.elapsed().as_secs_f64() >= limit);
        let count = batches.len() as u64;
        let batches = batches.into_iter().skip(done as usize);
        let mut steps = self.trainer.pass(batches, |g, &instance| workload.loss(g, instance));
        while done < count {
            if time_is_up() {
                return Ok(None);
            }
            let Some(step) = steps.next() else { break };
            let step = step?;
            done += 1;
            steps.set_progress(Progress { epoch, batches: done });
            bar.report(&step);
            totals.add(&step);
        }
        Ok(Some(totals))
    }

    fn save(&mut self, best: bool) -> Result<(), Failure> {
        let Some(path) = &self.args.save else { return Ok(()) };
        let written = |result: Result<(), CheckpointError>| {
            result.map_err(|error| Failure { kind: crate::FailureKind::Output, ..checkpoint_failure(&error) })
        };
        written(self.trainer.save(path))?;
        self.saved = true;
        if best {
            let best = best_path(path);
            written(self.trainer.save(&best))?;
        }
        Ok(())
    }

    fn resume_hint(&self) -> String {
        match &self.args.save {
            Some(path) => format!("; continue with --resume {path}"),
            None => String::new(),
        }
    }

    fn finish(&mut self, finished: bool, console: &mut Console<'_>) -> Result<(), Failure> {
        if !finished {
            self.save(false)?;
        }
        if let Some((number, score)) = self.patience.best() {
            let number = number as u64 + 1;
            match self.curve.epoch(number) {
                Some(epoch) => writeln!(console, "best        epoch {number}: {}", epoch.measured.text())?,
                None => {
                    writeln!(console, "best        epoch {number}, before the resumption: score {score:.4}")?
                }
            }
        }
        let lesson = self.lesson;
        if let Some(parsing) = lesson.parsing.as_ref().filter(|_| self.args.decode) {
            self.decode(parsing, console)?;
        }
        let drawn = self.args.curve.iter().filter(|_| !self.curve.is_empty());
        for path in drawn.chain(self.args.save.iter().filter(|_| self.saved)) {
            writeln!(console, "wrote       {path}")?;
        }
        writeln!(console, "took        {}", console.time(self.start.elapsed()))?;
        Ok(())
    }

    /// Parses the held-out sentences greedily, without the reference actions.
    fn decode(&mut self, parsing: &Parsing, console: &mut Console<'_>) -> Result<(), Failure> {
        let start = Instant::now();
        let score = greedy::measure(self.trainer.session(), parsing)?;
        writeln!(
            console,
            "decoded     {} sentences greedily: {:.2} % of the words have the correct head ({})",
            count(parsing.sentences.len() as u64),
            100.0 * score.unlabelled(),
            console.time(start.elapsed()),
        )?;
        Ok(())
    }
}

/// Rejects two outputs with one path, and a curve that would overwrite the checkpoint to resume from.
fn check_outputs(args: &TrainArgs) -> Result<(), Failure> {
    let best = args.save.as_deref().map(best_path);
    let curves: Vec<&str> = args.curve.iter().map(String::as_str).collect();
    check_distinct(&curves, args.resume.as_deref().as_slice())?;
    let all: Vec<&str> = curves.into_iter().chain(args.save.as_deref()).chain(best.as_deref()).collect();
    check_distinct(&all, &[])
}

/// `names.best.safetensors` for `names.safetensors`.
fn best_path(path: &str) -> String {
    let extension =
        Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or("safetensors");
    Path::new(path).with_extension(format!("best.{extension}")).to_string_lossy().into_owned()
}

/// A checkpoint that cannot be read or written.
fn checkpoint_failure(error: &CheckpointError) -> Failure {
    let failure = Failure::input(error.to_string());
    match error {
        CheckpointError::Io { .. } => failure.help("check the path"),
        _ => failure,
    }
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

//! `train`: trains a model of the catalogue on a corpus or on generated instances.
//!
//! One line an epoch: losses, measures on the instances held out, speed, batches beside their bound,
//! and where the time went. Nothing but times depends on the machine; a run that is resumed from its
//! checkpoint goes on with the same bits.

mod curve;
mod measure;
mod order;

use crate::args::{OptimizerArg, TrainArgs};
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::places::{apart, make_folder, replaceable, writable};
use crate::words::{count, plural};
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
use std::time::{Duration, Instant};

/// Learning rates and minibatches follow the seed through this, so that instances do not.
const ORDER: u64 = 0x0de5_0000_0000_0000;

/// Trains.
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
    // Hours of training do not end because `head` has seen enough.
    console.work_on();
    run.head(console)?;
    let finished = run.epochs(console)?;
    run.tail(finished, console)?;
    Ok(Answer::Yes)
}

/// What best checkpoints went by, epoch by epoch; checkpoints carry it along.
#[derive(Clone, Debug, Default)]
struct Scores(Vec<f64>);

impl Scores {
    const NOTE: &'static str = "scores";

    /// Those that a checkpoint brought; of a note that is none of ours, nothing.
    fn noted(trainer: &Trainer) -> Self {
        let bits: Option<Vec<u64>> =
            trainer.note(Self::NOTE).and_then(|note| serde_json::from_str(note).ok());
        Self(bits.unwrap_or_default().into_iter().map(f64::from_bits).collect())
    }

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
    /// The score of every epoch, those before a resumed run as well.
    scores: Scores,
    curve: Curve,
    batch: usize,
    /// Whether a checkpoint was written.
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
        // What would be refused in the end is refused before hours of training.
        for path in &args.curve {
            curve::form(path)?;
        }
        check_outputs(args)?;
        if args.decode && lesson.parsing.is_none() {
            let message = format!("model {} decodes nothing", lesson.entry.alias);
            return Err(Failure::usage(message).help("leave --decode out"));
        }
        let options = SessionOptions {
            device: args.model.device.clone(),
            policy: args.model.policy.clone(),
            threads: args.threads,
            cached_plans: 8,
            ..SessionOptions::default()
        };
        let module = std::sync::Arc::clone(&lesson.module);
        let mut trainer = Trainer::with_options(module, optimizer(args, rate), options, args.model.seed)?;
        if let Some(path) = &args.resume {
            trainer.load(path).map_err(|error| refused(&error))?;
        }
        let batch = args.batch.map_or(habits.batch, |batch| batch as usize);
        let order = Order { seed: args.model.seed, batch, bucket: args.bucket, count: lesson.train };
        if let Some(path) = &args.resume {
            order.check_against(path, &trainer)?;
        }
        order.note(&mut trainer);
        for path in &args.curve {
            make_folder(path)?;
            writable(path)?;
        }
        if let Some(path) = &args.save {
            make_folder(path)?;
            replaceable(path)?;
            replaceable(&best_path(path))?;
        }
        let scores = Scores::noted(&trainer);
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

    fn head(&self, console: &mut Console<'_>) -> Result<(), Failure> {
        let Self { lesson, args, trainer, .. } = self;
        let parameters: usize = trainer.weights().iter().map(|param| param.values().len()).sum();
        let unit = lesson.entry.unit;
        writeln!(
            console,
            "{}  {}, {} parameters; {} {unit} to learn from, {} held out ({})",
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
                writeln!(console, "resumed from {path}, which has {made}: nothing is left to do (--epochs)")?;
                return Ok(());
            }
            writeln!(console, "resumed from {path}: epoch {}, {batches} minibatches into it", epoch + 1)?;
        }
        Ok(())
    }

    /// Goes through the epochs; whether time did not run out before.
    fn epochs(&mut self, console: &mut Console<'_>) -> Result<bool, Failure> {
        for epoch in self.trainer.progress().epoch..self.epochs {
            let Some(taught) = self.epoch(epoch)? else {
                let at = self.trainer.progress();
                writeln!(
                    console,
                    "time is up in epoch {}, {} minibatches into it{}",
                    at.epoch + 1,
                    at.batches,
                    self.resume_hint()
                )?;
                let measured = measure(&mut self.trainer, self.lesson, &self.lesson.valid(), self.batch)?;
                writeln!(console, "measured    {}", measured.words())?;
                return Ok(false);
            };
            let measured = measure(&mut self.trainer, self.lesson, &self.lesson.valid(), self.batch)?;
            self.trainer.set_progress(Progress { epoch: epoch + 1, batches: 0 });
            let epoch = Epoch { number: epoch + 1, taught, measured };
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
                writeln!(console, "no better for {epochs}")?;
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// One epoch, or what is left of it; nothing if time ran out.
    fn epoch(&mut self, epoch: u64) -> Result<Option<curve::Taught>, Failure> {
        let train = self.lesson.train();
        let seed = self.args.model.seed ^ ORDER ^ epoch.wrapping_mul(0x9e37_79b9);
        let batches: Vec<Vec<&usize>> = match self.args.bucket {
            true => {
                let like = train.shuffled(seed).bucket_by(|&number| self.lesson.sizes[number]);
                like.batches(self.batch).shuffled_batches(seed).collect()
            }
            false => train.batches(self.batch).shuffled(seed).collect(),
        };
        let mut bar = Bar::new(&format!("epoch {}", epoch + 1), batches.len());
        let mut taught = curve::Taught::default();
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
            taught.add(&step);
        }
        Ok(Some(taught))
    }

    fn save(&mut self, best: bool) -> Result<(), Failure> {
        let Some(path) = &self.args.save else { return Ok(()) };
        let written = |result: Result<(), CheckpointError>| {
            result.map_err(|error| Failure { kind: crate::FailureKind::Output, ..refused(&error) })
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
            Some(path) => format!("; go on with --resume {path}"),
            None => String::new(),
        }
    }

    fn tail(&mut self, finished: bool, console: &mut Console<'_>) -> Result<(), Failure> {
        if !finished {
            self.save(false)?;
        }
        if let Some((number, score)) = self.patience.best() {
            let number = number as u64 + 1;
            match self.curve.epoch(number) {
                Some(epoch) => writeln!(console, "best        epoch {number}: {}", epoch.measured.words())?,
                None => {
                    writeln!(console, "best        epoch {number}, before it was resumed: score {score:.4}")?
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

    /// Parses what is held out without knowing the actions.
    fn decode(&mut self, parsing: &Parsing, console: &mut Console<'_>) -> Result<(), Failure> {
        let start = Instant::now();
        let score = greedy::measure(self.trainer.session(), parsing)?;
        writeln!(
            console,
            "decoded     {} sentences greedily: {:.2} % of the words have the right head ({})",
            count(parsing.sentences.len() as u64),
            100.0 * score.unlabelled(),
            console.time(start.elapsed()),
        )?;
        Ok(())
    }
}

/// Refuses a file that would be written for two purposes, or over the checkpoint that is resumed from by anything else than one.
fn check_outputs(args: &TrainArgs) -> Result<(), Failure> {
    let best = args.save.as_deref().map(best_path);
    let curves: Vec<&str> = args.curve.iter().map(String::as_str).collect();
    apart(&curves, args.resume.as_deref().as_slice())?;
    let all: Vec<&str> = curves.into_iter().chain(args.save.as_deref()).chain(best.as_deref()).collect();
    apart(&all, &[])
}

/// `names.best.safetensors` for `names.safetensors`.
fn best_path(path: &str) -> String {
    let extension =
        Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or("safetensors");
    Path::new(path).with_extension(format!("best.{extension}")).to_string_lossy().into_owned()
}

fn refused(error: &CheckpointError) -> Failure {
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

/// A share of a time in whole percent.
fn percent(part: Duration, whole: Duration) -> f64 {
    100.0 * part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}

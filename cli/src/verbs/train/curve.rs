//! The results of each epoch, and files of the learning curve.

use super::percent;
use crate::args::TrainArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::files::{form_of, write_file};
use crate::measure::{Measured, bits};
use crate::picture::{self, Line, Quantity};
use autobatch::Trainer;
use autobatch::train::Step;
use autobatch_models::lessons::Lesson;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Sums over the steps of an epoch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Totals {
    instances: u64,
    #[serde(with = "bits")]
    loss: f64,
    steps: u64,
    /// Not in checkpoints: it depends on the machine and on the number of processes, and equal runs write equal files.
    #[serde(skip)]
    work: Work,
}

/// The work of this process on the steps of an epoch. A resumed run counts from its start.
#[derive(Clone, Debug, Default, PartialEq)]
struct Work {
    instances: u64,
    steps: u64,
    batches: u64,
    bound: u64,
    /// Emitting, planning, executing, updating, and waiting for other processes.
    times: [Duration; 5],
}

impl Totals {
    pub(super) fn add(&mut self, step: &Step) {
        self.instances += step.instances() as u64;
        self.loss += step.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
        self.steps += 1;
        self.work.add(step);
    }

    fn mean_loss(&self) -> f64 {
        self.loss / self.instances.max(1) as f64
    }

    const NOTE: &'static str = "running epoch";

    /// Reads the sums of the epoch within which a checkpoint was written.
    pub(super) fn from_note(trainer: &Trainer) -> Self {
        trainer.note(Self::NOTE).and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default()
    }

    /// Stores the sums for the next checkpoint.
    pub(super) fn note(&self, trainer: &mut Trainer) {
        trainer.set_note(Self::NOTE, json!(self).to_string());
    }
}

impl Work {
    fn add(&mut self, step: &Step) {
        self.instances += step.instances() as u64;
        self.steps += 1;
        self.batches += u64::from(step.batches);
        self.bound += u64::from(step.bound);
        self.times.iter_mut().zip(step.times()).for_each(|(time, (_, part))| *time += part);
    }
}

/// The results of an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Epoch {
    /// Its number, starting at 1.
    pub(super) number: u64,
    pub(super) totals: Totals,
    pub(super) measured: Measured,
}

impl Epoch {
    pub(super) fn line(&self, console: &Console<'_>) -> String {
        let Work { instances, steps, batches, bound, times } = &self.totals.work;
        let total: Duration = times.iter().sum();
        let mean = |sum: u64| sum as f64 / (*steps).max(1) as f64;
        let mut line = format!(
            "epoch {:>3}   loss {:.4}  development loss {}",
            self.number,
            self.totals.mean_loss(),
            self.measured.text()
        );
        let _ = write!(line, "   {:.1} batches (bound {:.1})", mean(*batches), mean(*bound));
        if console.millis(total).is_some() {
            let [emit, plan, execute, update, wait] = times.map(|part| percent(part, total));
            let rate = *instances as f64 / total.as_secs_f64().max(1e-9);
            let _ = write!(
                line,
                "  {rate:.0}/s  emit {emit:.0} plan {plan:.0} execute {execute:.0} update {update:.0}"
            );
            line += &if wait > 0.0 { format!(" wait {wait:.0} %") } else { " %".to_owned() };
        }
        line
    }

    /// The results as JSON.
    pub(super) fn json(&self) -> Json {
        let Work { steps, batches, bound, times, .. } = &self.totals.work;
        // An epoch before a resumption is not the work of this process.
        let is_known = *steps == self.totals.steps;
        let [batches, bound] = [batches, bound].map(|number| is_known.then_some(number));
        let seconds = is_known.then(|| times.iter().map(Duration::as_secs_f64).collect::<Vec<f64>>());
        json!({
            "epoch": self.number, "training_loss": self.totals.mean_loss(),
            "development_loss": self.measured.loss, "scores": self.measured.scores(),
            "steps": self.totals.steps, "batches": batches, "bound": bound,
            "seconds_emit_plan_execute_update_wait": seconds,
        })
    }
}

/// The epochs of a run, including those before a resumption.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Curve {
    pub(super) epochs: Vec<Epoch>,
}

/// The axis of a score in a picture.
struct Axis {
    /// The name of the quantity, with its unit.
    quantity: &'static str,
    /// The factor from the score to the unit.
    factor: f64,
}

/// The axis of a score. Scores of one quantity share a panel.
fn axis(score: &str) -> Axis {
    match score {
        "pearson" => Axis { quantity: "correlation, from -1 to 1", factor: 1.0 },
        "squared error" => Axis { quantity: "squared error", factor: 1.0 },
        "perplexity" => Axis { quantity: "perplexity", factor: 1.0 },
        _ => Axis { quantity: "score, %", factor: 100.0 },
    }
}

/// The number of the colour of a score or of the losses, the same in every picture.
fn line_colour(name: &str) -> usize {
    let known = [
        "accuracy",
        "top 3",
        "loss",
        "span F1",
        "pearson",
        "squared error",
        "node accuracy",
        "root accuracy",
        "action accuracy",
    ];
    known.iter().position(|known| *known == name).unwrap_or(known.len())
}

/// The form of a curve file.
pub(super) enum Form {
    Csv,
    Json,
    Svg,
}

/// The form that the extension of a path selects.
pub(super) fn form(path: &str) -> Result<Form, Failure> {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("csv") => Ok(Form::Csv),
        Some("json") => Ok(Form::Json),
        Some("svg") => Ok(Form::Svg),
        _ => {
            let found = form_of(path).map_or("an unknown extension", |_| "an extension of graphs");
            let message = format!("{path}: expected .svg, .csv or .json for a curve, found {found}");
            Err(Failure::usage(message))
        }
    }
}

impl Curve {
    const NOTE: &'static str = "epochs";

    /// Reads the epochs in a checkpoint. A malformed note gives no epochs.
    pub(super) fn from_note(trainer: &Trainer) -> Self {
        Self::of_text(trainer.note(Self::NOTE))
    }

    /// As [`from_note`](Self::from_note), of the notes of another checkpoint.
    pub(super) fn from_notes(notes: &BTreeMap<String, String>) -> Self {
        Self::of_text(notes.get(Self::NOTE).map(String::as_str))
    }

    fn of_text(note: Option<&str>) -> Self {
        note.and_then(|note| serde_json::from_str(note).ok()).unwrap_or_default()
    }

    /// Stores the epochs for the next checkpoint.
    pub(super) fn note(&self, trainer: &mut Trainer) {
        trainer.set_note(Self::NOTE, json!(self).to_string());
    }

    pub(super) fn push(&mut self, epoch: Epoch) {
        self.epochs.push(epoch);
    }

    /// The epoch with this number, starting at 1.
    pub(super) fn epoch(&self, number: u64) -> Option<&Epoch> {
        self.epochs.iter().find(|epoch| epoch.number == number)
    }

    /// Writes the curve so far to all requested files.
    pub(super) fn write(&self, args: &TrainArgs, lesson: &Lesson) -> Result<(), Failure> {
        for path in &args.curve {
            let text = match form(path)? {
                Form::Csv => self.csv(),
                Form::Json => self.json(lesson),
                Form::Svg => self.svg(lesson),
            };
            write_file(path, text.as_bytes())?;
        }
        Ok(())
    }

    fn names(&self) -> Vec<&str> {
        self.epochs
            .first()
            .map(|epoch| epoch.measured.numbers().map(|(name, _)| name).collect())
            .unwrap_or_default()
    }

    fn svg(&self, lesson: &Lesson) -> String {
        let points = |value: &dyn Fn(&Epoch) -> f64| -> Vec<(f64, f64)> {
            self.epochs.iter().map(|epoch| (epoch.number as f64, value(epoch))).collect()
        };
        let mut quantities: Vec<Quantity> = Vec::new();
        for (at, name) in self.names().into_iter().enumerate() {
            let Axis { quantity, factor } = axis(name);
            let score =
                |epoch: &Epoch| epoch.measured.numbers().nth(at).map_or(f64::NAN, |number| factor * number.1);
            let line = Line {
                name: name.to_owned(),
                colour: line_colour(name),
                is_dashed: false,
                points: points(&score),
            };
            match quantities.iter_mut().find(|known| known.name == quantity) {
                Some(known) => known.lines.push(line),
                None => quantities.push(Quantity { name: quantity.to_owned(), lines: vec![line] }),
            }
        }
        let loss = |name: &str, is_dashed, value: &dyn Fn(&Epoch) -> f64| Line {
            name: name.to_owned(),
            colour: line_colour("loss"),
            is_dashed,
            points: points(value),
        };
        let losses = vec![
            loss("training loss", true, &|epoch| epoch.totals.mean_loss()),
            loss("development loss", false, &|epoch| epoch.measured.loss),
        ];
        quantities.push(Quantity { name: "loss, mean per instance".to_owned(), lines: losses });
        let title = format!("{}: {}", lesson.entry.name, lesson.entry.about);
        picture::curve(&title, &quantities, self.best())
    }

    /// The number of the first epoch with the best main score, as `train` chooses it.
    fn best(&self) -> Option<f64> {
        let better = |best: Option<&'_ Epoch>, epoch: &Epoch| {
            best.is_none_or(|best| epoch.measured.main() > best.measured.main())
        };
        let mut best: Option<&Epoch> = None;
        for epoch in &self.epochs {
            if better(best, epoch) {
                best = Some(epoch);
            }
        }
        best.map(|epoch| epoch.number as f64)
    }

    fn csv(&self) -> String {
        let mut text = format!("epoch,training loss,development loss,{}\n", self.names().join(","));
        for epoch in &self.epochs {
            let _ = write!(text, "{},{},{}", epoch.number, epoch.totals.mean_loss(), epoch.measured.loss);
            for (_, number) in epoch.measured.numbers() {
                let _ = write!(text, ",{number}");
            }
            text.push('\n');
        }
        text
    }

    fn json(&self, lesson: &Lesson) -> String {
        let epochs: Vec<Json> = self.epochs.iter().map(Epoch::json).collect();
        format!("{:#}\n", json!({ "model": lesson.entry.name, "source": lesson.source, "epochs": epochs }))
    }
}

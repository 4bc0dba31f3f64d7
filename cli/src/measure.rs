//! Evaluation of a model on a part of its instances.

use autobatch::prelude::*;
use autobatch_models::lessons::Lesson;
use autobatch_models::scores::Scores;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::ops::Range;

/// The result of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// The mean loss.
    #[serde(with = "bits")]
    pub(crate) loss: f64,
    /// The scores of the model; the first one selects the best epoch.
    scores: Vec<Score>,
}

/// A named number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Score {
    name: String,
    #[serde(with = "bits")]
    number: f64,
}

impl Measured {
    /// The number that selects the best checkpoint; larger is better.
    pub(crate) fn main(&self) -> f64 {
        self.scores.first().map_or(-self.loss, |score| score.number)
    }

    /// The names of the scores, with their numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (&str, f64)> {
        self.scores.iter().map(|Score { name, number }| (name.as_str(), *number))
    }

    /// The scores as a JSON object.
    pub(crate) fn scores(&self) -> serde_json::Map<String, serde_json::Value> {
        self.numbers().map(|(name, number)| (name.to_owned(), json!(number))).collect()
    }

    /// `0.6120  accuracy 80.80 %`: the loss and the scores.
    pub(crate) fn text(&self) -> String {
        let mut parts = vec![format!("{:.4}", self.loss)];
        parts.extend(self.numbers().map(|(name, number)| match name {
            "pearson" | "squared error" => format!("{name} {number:.4}"),
            "perplexity" => format!("{name} {number:.2}"),
            _ => format!("{name} {:.2} %", 100.0 * number),
        }));
        parts.join("  ")
    }
}

/// Floats as their bits, because decimal JSON does not keep every bit.
pub(crate) mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        number.to_bits().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

/// The instances of a graph: `batch`, or at least 64.
fn together(batch: usize) -> usize {
    batch.max(64)
}

/// Evaluates instances, `batch` or at least 64 of them per graph.
pub(crate) fn measure(
    session: &mut Session,
    lesson: &Lesson,
    instances: Range<usize>,
    batch: usize,
) -> autobatch::Result<Measured> {
    let mut tally = Tally::new(lesson);
    session.run_in_parts(
        instances,
        together(batch),
        |g, instance, values| emit(lesson, g, instance, values),
        |instance, rows| tally.add(instance, rows),
    )?;
    Ok(tally.measured())
}

/// As [`measure`], divided among the ranks of a trainer.
pub(crate) fn measure_on_ranks(
    trainer: &mut Trainer,
    lesson: &Lesson,
    instances: Range<usize>,
    batch: usize,
) -> autobatch::Result<Measured> {
    let mut tally = Tally::new(lesson);
    trainer.run_in_parts(
        instances,
        together(batch),
        |g, instance, values| emit(lesson, g, instance, values),
        |instance, rows| tally.add(instance, rows),
    )?;
    Ok(tally.measured())
}

/// Emits the outputs of an instance, and its loss as the last value.
fn emit<'g>(lesson: &Lesson, g: &'g Graph, instance: usize, values: &mut Vec<Value<'g>>) {
    lesson.workload.emit(g, instance, values);
    values.push(lesson.workload.loss(g, instance));
}

/// The sums of an evaluation.
struct Tally<'a> {
    lesson: &'a Lesson,
    count: usize,
    loss: f64,
    scores: Scores,
}

impl<'a> Tally<'a> {
    fn new(lesson: &'a Lesson) -> Self {
        Self { lesson, count: 0, loss: 0.0, scores: Scores::default() }
    }

    /// Adds an instance: its outputs, and its loss as the last row.
    fn add(&mut self, instance: usize, rows: &[&Row]) {
        let (own, rows) = rows.split_last().expect("every instance has a loss");
        self.lesson.workload.score(instance, rows, &mut self.scores);
        self.loss += f64::from(own[0]);
        self.count += 1;
    }

    fn measured(self) -> Measured {
        let scores = self.scores.numbers().into_iter();
        let scores = scores.map(|(name, number)| Score { name: name.to_owned(), number }).collect();
        Measured { loss: self.loss / self.count.max(1) as f64, scores }
    }
}

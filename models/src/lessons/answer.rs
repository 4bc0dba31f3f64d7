//! Answers of a model, in words and as JSON.

use super::task::Task;
use crate::Model;
use crate::data::DataError;
use autobatch::{Row, Session};
use serde_json::{Value as Json, json};
use std::fmt;

/// The answer of a model to one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The answer as a line of text, or as several lines.
    pub text: String,
    /// The answer as a JSON object.
    pub json: Json,
}

/// The answers to all items of an input, in order.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// The answers.
    pub answers: Vec<Answer>,
    /// The words of the input that the model does not know.
    pub unknown: Unknown,
}

/// Counts of words, or of letters for a model that reads letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// The name of what is counted.
    pub what: &'static str,
    /// The number that the input has.
    pub read: usize,
    /// The number that the model does not know.
    pub unknown: usize,
    /// Some of them, in the order of the input.
    pub examples: Vec<String>,
}

/// The largest number of examples.
const EXAMPLES: usize = 5;

impl Unknown {
    /// Adds the counts of another part of the input.
    pub fn add(&mut self, other: Self) {
        let Self { what, read, unknown, examples } = other;
        if read > 0 {
            self.what = what;
        }
        (self.read, self.unknown) = (self.read + read, self.unknown + unknown);
        for example in examples {
            if self.examples.len() < EXAMPLES && !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }

    /// Counts one; number 0 of a vocabulary stands for all that it does not know.
    pub(super) fn count(&mut self, what: &'static str, number: u32, word: &str) {
        self.what = what;
        self.read += 1;
        if number == 0 {
            self.unknown += 1;
            if self.examples.len() < EXAMPLES && !self.examples.iter().any(|known| known == word) {
                self.examples.push(word.to_owned());
            }
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, read, unknown, examples } = self;
        write!(f, "{unknown} of {read} {what} are unknown to the model, for example {}", examples.join(" "))
    }
}

/// The reason why a prediction failed.
pub enum PredictError {
    /// The input does not follow the form of the corpus.
    Data(DataError),
    /// The model cannot read an item.
    Item {
        /// The number of the item in the input, from 1.
        number: usize,
        /// The reason.
        reason: String,
    },
    /// The model could not be executed.
    Execute(autobatch::Error),
}

impl fmt::Display for PredictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(error) => error.fmt(f),
            Self::Item { number, reason } => write!(f, "instance {number}: {reason}"),
            Self::Execute(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PredictError {}

autobatch::ir::debug_as_display!(PredictError);

impl From<DataError> for PredictError {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<autobatch::Error> for PredictError {
    fn from(error: autobatch::Error) -> Self {
        Self::Execute(error)
    }
}

/// The number of instances per graph of a prediction.
const TOGETHER: usize = 256;

/// Executes a model over all items and puts the outputs of each into words.
pub(super) fn answered<T: Task>(
    task: &T,
    model: T::Model,
    session: &mut Session,
    items: &[T::Item],
    mut answer: impl FnMut(&T::Item, &[&Row]) -> Answer,
) -> Result<Vec<Answer>, PredictError> {
    let numbered =
        |(at, item)| task.number(item).map_err(|reason| PredictError::Item { number: at + 1, reason });
    let instances = items.iter().enumerate().map(numbered).collect::<Result<Vec<_>, _>>()?;
    let mut answers = Vec::with_capacity(items.len());
    session.run_in_parts(
        0..items.len(),
        TOGETHER,
        |g, at, values| model.emit(g, &instances[at], values),
        |at, rows| answers.push(answer(&items[at], rows)),
    )?;
    Ok(answers)
}

/// The largest number of classes that an answer lists.
const LISTED: usize = 3;

/// The most probable classes of an output with a score or a log-probability for each class, best first.
pub(super) fn best(output: &Row) -> Vec<(usize, f64)> {
    let largest = output.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |score: f32| f64::from(score - largest).exp();
    let sum: f64 = output.iter().map(|&score| weight(score)).sum();
    output.top_k(LISTED).into_iter().map(|class| (class, weight(output[class]) / sum)).collect()
}

/// The answer "`item`: class, probability" of a classifier. `name` is the name of a class.
pub(super) fn classified(
    what: &'static str,
    item: &str,
    output: Option<&&Row>,
    name: impl Fn(usize) -> String,
) -> Answer {
    let best = output.map(|output| best(output)).unwrap_or_default();
    let named: Vec<(String, f64)> = best.into_iter().map(|(class, share)| (name(class), share)).collect();
    let shown: Vec<String> =
        named.iter().map(|(name, share)| format!("{name} {:.1} %", 100.0 * share)).collect();
    let listed: Vec<Json> =
        named.iter().map(|(name, share)| json!({ "answer": name, "probability": share })).collect();
    let first = named.first().map(|(name, _)| name.clone());
    Answer {
        text: format!("{item}\t{}", shown.join(", ")),
        json: json!({ what: item, "answer": first, "best": listed }),
    }
}

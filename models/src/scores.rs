//! The scores of a model: one or more named numbers per corpus.

use autobatch::Row;
use autobatch::train::metrics::{Mean, Pearson, Rate, SpanScore, bio_spans};

/// Named metrics in the order of their first observation. The first one controls early
/// stopping and the choice of the best checkpoint; larger is better.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    scores: Vec<(&'static str, Score)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Score {
    Rate(Rate),
    Spans(SpanScore),
    Pearson(Pearson),
    Mean(Mean),
    /// `exp` of the mean: the geometric mean of probabilities.
    Likelihood(Mean),
    /// Its inverse.
    Perplexity(Mean),
}

/// The number of kinds of named entities. Tag 0 is outside, then come the inside tags, then the begin tags.
const KINDS: u32 = 4;

impl Scores {
    fn get(&mut self, name: &'static str, new: Score) -> &mut Score {
        let place = self.scores.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.scores.push((name, new));
            self.scores.len() - 1
        });
        &mut self.scores[place].1
    }

    /// Declares a rate, which fixes its position before the first observation.
    pub fn declare_rate(&mut self, name: &'static str) {
        self.get(name, Score::Rate(Rate::default()));
    }

    /// Adds an observation that is right or wrong.
    pub fn hit(&mut self, name: &'static str, hit: bool) {
        if let Score::Rate(rate) = self.get(name, Score::Rate(Rate::default())) {
            rate.observe(hit);
        }
    }

    /// Adds a prediction and its target to a correlation.
    pub fn pair(&mut self, name: &'static str, predicted: f64, wanted: f64) {
        if let Score::Pearson(pearson) = self.get(name, Score::Pearson(Pearson::default())) {
            pearson.observe(predicted, wanted);
        }
    }

    /// Adds a number to an average.
    pub fn number(&mut self, name: &'static str, number: f64) {
        if let Score::Mean(mean) = self.get(name, Score::Mean(Mean::default())) {
            mean.observe(number);
        }
    }

    /// Adds the negative log-probability of a word.
    pub fn word(&mut self, loss: f64) {
        let empty = Mean::default();
        for (name, new) in
            [("likelihood", Score::Likelihood(empty)), ("perplexity", Score::Perplexity(empty))]
        {
            if let Score::Likelihood(mean) | Score::Perplexity(mean) = self.get(name, new) {
                mean.observe(-loss);
            }
        }
    }

    /// Adds the tags of a sentence and the scores of every tag: accuracy over words, F1 over spans. Tags
    /// outside the named-entity tag set form no spans.
    pub fn tags(&mut self, gold: &[u32], outputs: &[&Row]) {
        let predicted: Vec<u32> = outputs.iter().map(|output| output.argmax() as u32).collect();
        for (gold, predicted) in gold.iter().zip(&predicted) {
            self.hit("accuracy", gold == predicted);
        }
        let part = |&tag: &u32| match tag {
            1..=KINDS => Some((tag - 1, false)),
            tag if (KINDS + 1..=2 * KINDS).contains(&tag) => Some((tag - 1 - KINDS, true)),
            _ => None,
        };
        let spans = |tags: &[u32]| bio_spans(tags.iter().map(part));
        if let Score::Spans(score) = self.get("span F1", Score::Spans(SpanScore::default())) {
            score.observe(&spans(gold), &spans(&predicted));
        }
    }

    /// Returns every score with its name.
    #[must_use]
    pub fn numbers(&self) -> Vec<(&'static str, f64)> {
        let number = |score: &Score| match score {
            Score::Rate(rate) => rate.value(),
            Score::Spans(spans) => spans.f1(),
            Score::Pearson(pearson) => pearson.value(),
            Score::Mean(mean) => mean.value(),
            Score::Likelihood(mean) => mean.value().exp(),
            Score::Perplexity(mean) => (-mean.value()).exp(),
        };
        self.scores.iter().map(|(name, score)| (*name, number(score))).collect()
    }

    /// Returns the first score, which training maximises.
    #[must_use]
    pub fn main(&self) -> Option<(&'static str, f64)> {
        self.numbers().first().copied()
    }
}

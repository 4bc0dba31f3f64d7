//! Random sequences.

use super::{Decoded, check_scores, proposed};
use crate::error::Result;
use crate::random::Random;
use autobatch_ir::{Graph, Value};
use std::future::Future;
use std::panic::Location;

/// Random sequences: each symbol is drawn with its probability. Equal seeds draw equal sequences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    end: u32,
    longest: usize,
    temperature: f32,
    best: usize,
}

impl Draw {
    /// Draws until the symbol `end`, at most `longest` symbols.
    #[must_use]
    pub const fn new(end: u32, longest: usize) -> Self {
        Self { end, longest, temperature: 1.0, best: usize::MAX }
    }

    /// Divides the scores by this number, which must be above 0: below 1 prefers probable symbols.
    #[must_use]
    pub const fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Draws among this number of the most probable symbols; 0 counts as 1.
    #[must_use]
    pub const fn among_best(mut self, symbols: usize) -> Self {
        self.best = if symbols == 0 { 1 } else { symbols };
        self
    }

    /// Draws a sequence from a state; `scores` and `push` are those of [`Search::run`](super::Search::run).
    ///
    /// # Errors
    /// As [`Value::get`].
    #[track_caller]
    pub fn run<'g, S>(
        self,
        g: &'g Graph,
        start: S,
        seed: u64,
        scores: impl Fn(&S) -> Value<'g>,
        push: impl Fn(&S, u32) -> S,
    ) -> impl Future<Output = Result<Decoded>> {
        let caller = Location::caller();
        self.draw(g, start, seed, scores, push, caller)
    }

    async fn draw<'g, S>(
        self,
        g: &'g Graph,
        mut state: S,
        seed: u64,
        scores: impl Fn(&S) -> Value<'g>,
        push: impl Fn(&S, u32) -> S,
        caller: &'static Location<'static>,
    ) -> Result<Decoded> {
        let (mut random, mut decoded) = (Random::new(seed), Decoded::default());
        while decoded.symbols.len() < self.longest {
            let scored = scores(&state);
            let tempered = if self.temperature == 1.0 { scored } else { scored / self.temperature };
            let draws_all = self.best >= tempered.shape().elements();
            let asked = match draws_all {
                true => vec![g.at(caller, || tempered.log_softmax())],
                false => proposed(tempered, self.best, caller).to_vec(),
            };
            let elements = g.get_all(&asked).await?;
            check_scores(&elements[0], decoded.symbols.len())?;
            let place = drawn(&elements[0], random.unit());
            let symbol = if draws_all { place as u32 } else { elements[1][place] as u32 };
            decoded.log_probability += f64::from(elements[0][place]);
            if symbol == self.end {
                decoded.ended = true;
                break;
            }
            decoded.symbols.push(symbol);
            state = push(&state, symbol);
        }
        decoded.score = decoded.log_probability;
        Ok(decoded)
    }
}

/// The place of the symbol at which the sum of probabilities exceeds `unit` of their total; of the last possible symbol if
/// rounding lets none exceed it.
fn drawn(log_probabilities: &[f32], unit: f64) -> usize {
    let probabilities: Vec<f64> = log_probabilities.iter().map(|log| f64::from(*log).exp()).collect();
    let mut rest = unit * probabilities.iter().sum::<f64>();
    let found = probabilities.iter().position(|probability| {
        rest -= probability;
        rest < 0.0
    });
    let last = || probabilities.iter().rposition(|&probability| probability > 0.0);
    found.or_else(last).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::drawn;

    #[test]
    fn an_impossible_symbol_is_never_drawn() {
        let scores = [f32::NEG_INFINITY, 0.5_f32.ln(), 0.5_f32.ln(), f32::NEG_INFINITY];
        assert_eq!([0.0, 0.4, 0.6, 1.0].map(|unit| drawn(&scores, unit)), [1, 1, 2, 2]);
    }
}

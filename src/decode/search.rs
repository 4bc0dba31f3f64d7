//! Beam and greedy search.

use super::{Decoded, check_scores, proposed};
use crate::error::Result;
use autobatch_ir::{Graph, Value};
use std::cmp::Ordering;
use std::future::Future;
use std::panic::Location;

/// Beam search; with the default width 1 it is greedy.
///
/// Each step keeps the most probable sequences. Of two equal ones the search keeps the one that extends the better sequence,
/// then the one with the smaller symbol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    end: u32,
    longest: usize,
    width: usize,
    length_exponent: f64,
}

impl Search {
    /// A greedy search until the symbol `end`, for at most `longest` symbols.
    #[must_use]
    pub const fn new(end: u32, longest: usize) -> Self {
        Self { end, longest, width: 1, length_exponent: 0.0 }
    }

    /// Sets the number of sequences that the search keeps; 0 counts as 1.
    #[must_use]
    pub const fn width(mut self, width: usize) -> Self {
        self.width = if width == 0 { 1 } else { width };
        self
    }

    /// Sets the exponent by which the score of a sequence counts its length: 0, the default, prefers short sequences, and 1
    /// compares the mean log-probability of a symbol.
    #[must_use]
    pub const fn length_exponent(mut self, exponent: f64) -> Self {
        self.length_exponent = exponent;
        self
    }

    /// Searches from a state. `scores` emits the scores of all symbols, before the softmax. `push` emits the state after one
    /// more symbol. Returns at most as many sequences as the width, the best first.
    ///
    /// # Errors
    /// As [`Value::get`].
    #[track_caller]
    pub fn run<'g, S>(
        self,
        g: &'g Graph,
        start: S,
        scores: impl Fn(&S) -> Value<'g>,
        push: impl Fn(&S, u32) -> S,
    ) -> impl Future<Output = Result<Vec<Decoded>>> {
        let caller = Location::caller();
        self.search(g, start, scores, push, caller)
    }

    async fn search<'g, S>(
        self,
        g: &'g Graph,
        start: S,
        scores: impl Fn(&S) -> Value<'g>,
        push: impl Fn(&S, u32) -> S,
        caller: &'static Location<'static>,
    ) -> Result<Vec<Decoded>> {
        let mut open = vec![(Decoded::default(), start)];
        let mut done: Vec<Decoded> = Vec::new();
        for _ in 0..self.longest {
            let proposals: Vec<[Value<'g>; 2]> = open
                .iter()
                .map(|(_, state)| proposed(scores(state), self.width.saturating_add(1), caller))
                .collect();
            // One symbol more than the width, because one of them may be the end.
            let elements = g.get_all(&proposals.concat()).await?;
            let symbols = open.first().map_or(0, |(decoded, _)| decoded.symbols.len());
            elements.iter().step_by(2).try_for_each(|scores| check_scores(scores, symbols))?;
            let mut next = Vec::new();
            for candidate in self.candidates(&open, &elements) {
                let (parent, state) = &open[candidate.parent];
                if candidate.symbol == self.end {
                    done.push(self.scored(parent.symbols.clone(), candidate.log_probability, true));
                } else {
                    let symbols = [&parent.symbols[..], &[candidate.symbol]].concat();
                    next.push((
                        self.scored(symbols, candidate.log_probability, false),
                        push(state, candidate.symbol),
                    ));
                }
                if next.len() == self.width {
                    break;
                }
            }
            self.keep_best(&mut done);
            open = next;
            if self.is_decided(&open, &done) {
                open.clear();
                break;
            }
        }
        done.extend(open.into_iter().map(|(decoded, _)| decoded));
        self.keep_best(&mut done);
        Ok(done)
    }

    /// The extensions of all open sequences, the best first.
    fn candidates<S>(&self, open: &[(Decoded, S)], elements: &[Vec<f32>]) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (parent, (pair, (decoded, _))) in elements.chunks_exact(2).zip(open).enumerate() {
            let extensions = pair[0].iter().zip(&pair[1]).map(|(&log_probability, symbol)| Candidate {
                log_probability: decoded.log_probability + f64::from(log_probability),
                parent,
                symbol: *symbol as u32,
            });
            candidates.extend(extensions.filter(|candidate| candidate.log_probability > f64::NEG_INFINITY));
        }
        // The sort is stable: equal candidates stay in the order of their parents and symbols.
        candidates.sort_by(|a, b| descending(a.log_probability, b.log_probability));
        candidates
    }

    pub(super) fn scored(&self, symbols: Vec<u32>, log_probability: f64, ended: bool) -> Decoded {
        let score = log_probability / self.length(symbols.len() + usize::from(ended));
        Decoded { symbols, log_probability, score, ended }
    }

    fn length(&self, symbols: usize) -> f64 {
        (symbols.max(1) as f64).powf(self.length_exponent)
    }

    fn keep_best(&self, done: &mut Vec<Decoded>) {
        done.sort_by(|a, b| descending(a.score, b.score));
        done.truncate(self.width);
    }

    /// Whether no open sequence can become better than the last of the ended ones. An open one loses probability with each
    /// symbol, so its log-probability bounds its score at every length.
    fn is_decided<S>(&self, open: &[(Decoded, S)], done: &[Decoded]) -> bool {
        let most = |decoded: &Decoded| {
            let lengths = [decoded.symbols.len() + 1, self.longest];
            lengths
                .map(|symbols| decoded.log_probability / self.length(symbols))
                .into_iter()
                .fold(f64::MIN, f64::max)
        };
        let full = done.len() == self.width;
        open.iter().all(|(decoded, _)| full && done.last().is_some_and(|last| most(decoded) <= last.score))
    }
}

/// An extension of an open sequence by one symbol.
struct Candidate {
    log_probability: f64,
    parent: usize,
    symbol: u32,
}

pub(super) fn descending(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

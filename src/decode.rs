//! Decoding: sequences of symbols from a model that scores the next one.
//!
//! Both searches run inside [tasks](crate::Session::tasks). Each round executes one step of all open sequences of all tasks
//! together. A state is whatever the model needs for the next step, such as a recurrent state or a
//! [`TransformerState`](crate::nn::TransformerState). Sequences with a common prefix share its states.
//!
//! ```
//! use autobatch::decode::Search;
//! use autobatch::nn::{Linear, Lstm};
//! use autobatch::prelude::*;
//!
//! # fn main() -> autobatch::Result<()> {
//! let mut m = ModuleBuilder::new("writer");
//! let letters = m.table("letters", [27, 8], Init::Uniform(0.5));
//! let (lstm, next) = (Lstm::new(&mut m, "lstm", 8, 16), Linear::new(&mut m, "next", 16, 27));
//! let mut session = Session::new(&m.build()?, Device::Cpu)?;
//!
//! let (g, search) = (session.graph(), Search::new(26, 10).width(4));
//! let words = session.tasks(&g, [3, 7].map(|first| {
//!     let start = lstm.start(&g).push(letters.lookup(&g, first));
//!     search.run(&g, start, |state| next.on(state.h()), |state, letter| state.push(letters.lookup(&g, letter)))
//! }))?;
//! assert!(words.iter().all(|found| found.len() <= 4 && found[0].score >= found[1].score));
//! # Ok(())
//! # }
//! ```

use crate::error::{Error, Result};
use crate::random::Random;
use autobatch_ir::{Graph, Value};
use std::cmp::Ordering;
use std::future::Future;
use std::panic::Location;

/// A decoded sequence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The symbols, without the end.
    pub symbols: Vec<u32>,
    /// The logarithm of the probability of the symbols, and of the end if there is one.
    pub log_probability: f64,
    /// The log-probability, divided by the number of symbols to the power of the [length exponent](Search::length_exponent).
    pub score: f64,
    /// Whether the model ended the sequence. Otherwise it reached the longest length.
    pub ended: bool,
}

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
        &self,
        g: &'g Graph,
        start: S,
        scores: impl Fn(&S) -> Value<'g>,
        push: impl Fn(&S, u32) -> S,
    ) -> impl Future<Output = Result<Vec<Decoded>>> {
        let caller = Location::caller();
        self.search(g, start, scores, push, caller)
    }

    async fn search<'g, S>(
        &self,
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

    fn scored(&self, symbols: Vec<u32>, log_probability: f64, ended: bool) -> Decoded {
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

/// The log-probabilities of the most probable symbols, and the symbols. Their nodes and faults name the caller's line.
fn proposed<'g>(scores: Value<'g>, symbols: usize, caller: &'static Location<'static>) -> [Value<'g>; 2] {
    let g = scores.graph();
    let symbols = symbols.min(scores.shape().elements());
    g.at(caller, || scores.log_softmax().top_k(symbols))
}

fn descending(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

/// An extension of an open sequence by one symbol.
struct Candidate {
    log_probability: f64,
    parent: usize,
    symbol: u32,
}

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

    /// Draws a sequence from a state; `scores` and `push` are those of [`Search::run`].
    ///
    /// # Errors
    /// As [`Value::get`].
    #[track_caller]
    pub fn run<'g, S>(
        &self,
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
        &self,
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

/// Refuses scores that hold NaN. A first NaN in a row makes all its log-probabilities NaN.
fn check_scores(scores: &[f32], symbols: usize) -> Result<()> {
    if scores.iter().any(|score| score.is_nan()) { Err(Error::Scores { symbols }) } else { Ok(()) }
}

/// The place of the symbol at which the sum of probabilities exceeds `unit` of their total.
fn drawn(log_probabilities: &[f32], unit: f64) -> usize {
    let probabilities: Vec<f64> = log_probabilities.iter().map(|log| f64::from(*log).exp()).collect();
    let mut rest = unit * probabilities.iter().sum::<f64>();
    let found = probabilities.iter().position(|probability| {
        rest -= probability;
        rest < 0.0
    });
    found.unwrap_or(log_probabilities.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;

    /// The end of the sequences of the tests, which is also the number of other symbols.
    const END: u32 = 3;
    const LONGEST: usize = 4;

    #[test]
    fn scores_that_hold_nan_are_refused() -> Result<()> {
        let mut session = Session::new(&ModuleBuilder::new("none").build()?, Device::Cpu)?;
        let (g, scores) = (session.graph(), [0.0, f32::NAN, 1.0]);
        let found = session.tasks(&g, [Search::new(2, 5).run(&g, (), |()| g.input(&scores), |(), _| ())]);
        assert!(found.unwrap_err().to_string().contains("the scores behind 0 symbols hold NaN"));
        let g = session.graph();
        let drawn = session.tasks(&g, [Draw::new(2, 5).run(&g, (), 1, |()| g.input(&scores), |(), _| ())]);
        assert!(matches!(drawn, Err(Error::Scores { symbols: 0 })));
        Ok(())
    }

    /// The state of a recurrent model of four symbols.
    struct Chain {
        words: Table,
        next: autobatch_nn::Linear,
        turn: autobatch_nn::Linear,
    }

    impl Chain {
        fn session() -> (Self, Session) {
            let mut m = ModuleBuilder::new("chain");
            let chain = Chain {
                words: m.table("words", [4, 5], Init::Uniform(2.0)),
                next: autobatch_nn::Linear::with_options(&mut m, "next", 5, 4, Init::Uniform(2.0), None),
                turn: autobatch_nn::Linear::with_options(&mut m, "turn", 10, 5, Init::Uniform(2.0), None),
            };
            let session = Session::new(m.build().unwrap(), Device::Cpu).unwrap();
            (chain, session)
        }

        fn push<'g>(&self, g: &'g Graph, state: Value<'g>, word: u32) -> Value<'g> {
            self.turn.on_parts(g, [state, self.words.lookup(g, word)]).tanh()
        }

        fn search(&self, session: &mut Session, search: Search) -> Vec<Decoded> {
            let g = &session.graph();
            let start = g.input(&[0.3, -0.2, 0.5, 0.1, -0.4]);
            let run = search.run(g, start, |&h| self.next.on(h), |&h, word| self.push(g, h, word));
            session.tasks(g, [run]).unwrap().remove(0)
        }

        /// All sequences with their log-probabilities, computed one by one.
        fn all(&self, session: &mut Session) -> Vec<Decoded> {
            let mut open = vec![Vec::new()];
            let mut all = Vec::new();
            for _ in 0..LONGEST {
                for symbols in std::mem::take(&mut open) {
                    let log = self.log_probabilities(session, &symbols);
                    all.push((symbols.clone(), log.0 + f64::from(log.1[END as usize]), true));
                    for word in 0..END {
                        open.push([&symbols[..], &[word]].concat());
                    }
                }
            }
            for symbols in open {
                let (log, _) = self.log_probabilities(session, &symbols);
                all.push((symbols, log, false));
            }
            all.into_iter()
                .map(|(symbols, log, ended)| Search::new(END, LONGEST).scored(symbols, log, ended))
                .collect()
        }

        /// The log-probability of the symbols, and those of all symbols after them.
        fn log_probabilities(&self, session: &mut Session, symbols: &[u32]) -> (f64, Vec<f32>) {
            let g = &session.graph();
            let mut state = g.input(&[0.3, -0.2, 0.5, 0.1, -0.4]);
            let mut rows = vec![self.next.on(state).log_softmax()];
            for &word in symbols {
                state = self.push(g, state, word);
                rows.push(self.next.on(state).log_softmax());
            }
            let run = session.run(g, &rows).unwrap();
            let taken =
                symbols.iter().zip(&rows).map(|(&word, &row)| f64::from(run[row][word as usize])).sum();
            (taken, run[*rows.last().unwrap()].to_vec())
        }
    }

    #[test]
    fn a_wide_search_finds_the_best_of_all_sequences() {
        let (chain, mut session) = Chain::session();
        let mut all = chain.all(&mut session);
        all.sort_by(|a, b| descending(a.score, b.score));
        let found = chain.search(&mut session, Search::new(END, LONGEST).width(100));
        assert_eq!(found.len(), 100);
        for (found, expected) in found.iter().zip(&all).take(10) {
            assert_eq!((&found.symbols, found.ended), (&expected.symbols, expected.ended));
            assert!((found.score - expected.score).abs() < 1e-5, "{found:?}, expected {expected:?}");
        }
    }

    #[test]
    fn a_search_of_width_one_takes_the_most_probable_symbol() {
        let (chain, mut session) = Chain::session();
        let found = chain.search(&mut session, Search::new(END, LONGEST));
        let [found] = &found[..] else { panic!("one sequence, found {}", found.len()) };
        for end in 0..=found.symbols.len().min(LONGEST - 1) {
            let (_, next) = chain.log_probabilities(&mut session, &found.symbols[..end]);
            let best = (0..4).max_by(|&a, &b| next[a].total_cmp(&next[b])).unwrap() as u32;
            assert_eq!(best, found.symbols.get(end).copied().unwrap_or(END));
        }
    }

    #[test]
    fn a_length_exponent_prefers_longer_sequences() {
        let (chain, mut session) = Chain::session();
        let length = |exponent: f64, session: &mut Session| {
            let found = chain.search(session, Search::new(END, LONGEST).width(100).length_exponent(exponent));
            assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
            found[0].symbols.len()
        };
        assert!(length(4.0, &mut session) > length(-4.0, &mut session));
    }

    #[test]
    fn draws_follow_the_probabilities_and_the_seed() {
        let (chain, mut session) = Chain::session();
        let (_, first) = chain.log_probabilities(&mut session, &[]);
        let draw = |session: &mut Session, options: Draw| {
            let g = &session.graph();
            let start = g.input(&[0.3, -0.2, 0.5, 0.1, -0.4]);
            let tasks = (0..2000).map(|seed| {
                options.run(g, start, seed, |&h| chain.next.on(h), |&h, word| chain.push(g, h, word))
            });
            session.tasks(g, tasks).unwrap()
        };
        let drawn = draw(&mut session, Draw::new(END, 1));
        for symbol in 0..END {
            let share = drawn.iter().filter(|drawn| drawn.symbols == [symbol]).count() as f32 / 2000.0;
            assert!((share - first[symbol as usize].exp()).abs() < 0.05, "{symbol}: {share}, {first:?}");
        }
        let again = draw(&mut session, Draw::new(END, 1));
        assert_eq!(drawn, again);
        let certain = draw(&mut session, Draw::new(END, LONGEST).among_best(1));
        let greedy = chain.search(&mut session, Search::new(END, LONGEST)).remove(0);
        assert!(certain.iter().all(|drawn| drawn.symbols == greedy.symbols));
    }
}

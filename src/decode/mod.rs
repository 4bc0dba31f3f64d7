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

mod draw;
mod search;
#[cfg(test)]
mod tests;

pub use draw::Draw;
pub use search::Search;

use crate::error::{Error, Result};
use autobatch_ir::Value;
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

/// The log-probabilities of the most probable symbols, and the symbols. Their nodes and faults name the caller's line.
fn proposed<'g>(scores: Value<'g>, symbols: usize, caller: &'static Location<'static>) -> [Value<'g>; 2] {
    let g = scores.graph();
    let symbols = symbols.min(scores.shape().elements());
    g.at(caller, || scores.log_softmax().top_k(symbols))
}

/// Refuses scores that hold NaN. A first NaN in a row makes all its log-probabilities NaN.
fn check_scores(scores: &[f32], symbols: usize) -> Result<()> {
    if scores.iter().any(|score| score.is_nan()) { Err(Error::Scores { symbols }) } else { Ok(()) }
}

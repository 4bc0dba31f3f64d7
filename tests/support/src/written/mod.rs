//! Random graphs as text, with the constructs of the language that the emitter does not produce.
//!
//! A graph here is a list of lines: parameters of any shape and storage format, cells with any ports
//! and parameters, calls of a cell with other parameters, constants and bindings of every element type, and losses
//! that depend on any ops. Shrinking therefore removes lines. Graphs of models and long graphs come from
//! [`random`](crate::random).
//!
//! ```
//! use autobatch_testing::written::{self, Numbers};
//! written::check("graphs have values", Numbers::Tame, 5, |graph| {
//!     if graph.arena.values() > 0 { Ok(()) } else { Err("the graph has no values".into()) }
//! });
//! ```

mod blocks;
mod calls;
mod elements;
mod page;
mod products;
mod scope;

#[cfg(test)]
mod tests;

use crate::random::{Rng, complaint_of, seeds};
use autobatch_ir::GraphData;
use autobatch_ir::hash::avalanche;

/// The range of the numbers in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Between -2 and 2.
    Tame,
    /// Any size, including infinities and NaN.
    Wild,
}

/// Returns the text of a seed.
#[must_use]
pub fn text(seed: u64, numbers: Numbers) -> String {
    drawn(Rng::new(avalanche(seed)), numbers)
}

/// Returns the text whose decisions a stream makes.
#[must_use]
pub fn drawn(rng: Rng, numbers: Numbers) -> String {
    page::write(rng, numbers)
}

/// Checks a property of written graphs. A panic inside the property counts as a failure.
///
/// # Panics
/// Panics with the seed, the complaint, and the shortest text found that still fails. Also panics if the reader
/// or the rules reject a text.
#[track_caller]
pub fn check(property: &str, numbers: Numbers, count: u64, holds: impl Fn(&GraphData) -> Result<(), String>) {
    for seed in seeds(count) {
        let text = text(seed, numbers);
        let graph =
            GraphData::from_text(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        graph.verify().unwrap_or_else(|errors| panic!("seed {seed}: {errors}\n{text}"));
        let Some(first) = complaint_of(|| holds(&graph)) else { continue };
        let small = shrink(&text, |graph| complaint_of(|| holds(graph)).is_some());
        let last = GraphData::from_text(&small).ok().and_then(|graph| complaint_of(|| holds(&graph)));
        panic!(
            "{property}: fails for seed {seed}: {first}\nreplay with AUTOBATCH_SEED={seed}\nshrunk from {} to {} \
             lines: {}\n{small}",
            text.lines().count(),
            small.lines().count(),
            last.unwrap_or_default()
        );
    }
}

/// Removes the lines that the failure does not need, long runs first.
fn shrink(text: &str, fails: impl Fn(&GraphData) -> bool) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    loop {
        let before = lines.len();
        for run in [8, 4, 2, 1] {
            let mut end = lines.len();
            while end >= run {
                let mut fewer = lines.clone();
                fewer.drain(end - run..end);
                let graph =
                    GraphData::from_text(fewer.join("\n")).ok().filter(|graph| graph.verify().is_ok());
                let kept = graph.is_some_and(|graph| fails(&graph));
                if kept {
                    lines = fewer;
                }
                end -= if kept { run } else { 1 };
            }
        }
        if lines.len() == before {
            return lines.join("\n");
        }
    }
}

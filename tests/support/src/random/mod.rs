//! Random graphs: seeds, profiles, and shrinking to a small one that still fails.
//!
//! ```
//! use autobatch_testing::random::{self, Options, Profile};
//! random::check("arenas keep their order", Options::new(Profile::Small), 20, |graph| {
//!     let ordered = graph.arena.ids().all(|id| graph.arena.results(id).start >= id.index());
//!     if graph.arena.is_empty() || ordered || graph.arena.len() > 1 { Ok(()) } else { Err("disorder".into()) }
//! });
//! ```
//!
//! A failure prints its seed; `AUTOBATCH_SEED=n` runs that seed alone. `AUTOBATCH_TEST=long`
//! multiplies the number of seeds by twenty, `AUTOBATCH_TEST=short` divides it by twelve.

mod act;
mod arbitrary;
mod coverage;
mod emit;
mod kit;
mod losses;
mod own;
mod recipe;
mod rng;
mod shrink;
mod stage;
pub(crate) mod steps;

#[cfg(test)]
mod tests;

pub use act::{Act, CellName};
pub use coverage::{Coverage, FACTS};
pub use recipe::{Body, Instance, Options, Profile, Reach, Recipe, Step};
pub use rng::Rng;
pub use shrink::shrink;

use crate::trials::{asked_seed, cases};
use autobatch_ir::hash::avalanche;
use autobatch_ir::{GraphData, Module};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the seeds of a randomised test: `0..count`, with more seeds in long runs and fewer in short ones.
/// If the environment sets a seed, returns that seed alone.
#[must_use]
pub fn seeds(count: u64) -> Vec<u64> {
    match asked_seed() {
        Some(seed) => vec![seed],
        None => (0..cases(count)).collect(),
    }
}

/// Checks a property of random graphs. A panic inside the property counts as a failure.
///
/// # Panics
/// Panics with the seed, the complaint, and the smallest recipe found that still fails.
#[track_caller]
pub fn check(property: &str, options: Options, count: u64, holds: impl Fn(&GraphData) -> Result<(), String>) {
    let complaint = |recipe: &Recipe| complaint_of(|| holds(&recipe.graph()));
    for seed in seeds(count) {
        let recipe = Recipe::new(seed, options);
        let Some(first) = complaint(&recipe) else { continue };
        let small = shrink(&recipe, |candidate| complaint(candidate).is_some());
        let last = complaint(&small).unwrap_or_default();
        let summary = catch_unwind(AssertUnwindSafe(|| small.graph().to_string())).unwrap_or_default();
        panic!(
            "{property}: fails for seed {seed} of {options:?}: {first}\n\
             replay with AUTOBATCH_SEED={seed}\n\
             shrunk from {} to {} decisions: {last}\n{summary}\n{small:#?}",
            recipe.len(),
            small.len()
        );
    }
}

/// Returns the complaint of a property, if any. A panic counts as a complaint.
pub(crate) fn complaint_of(holds: impl FnOnce() -> Result<(), String>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(holds)) {
        Ok(outcome) => outcome.err(),
        Err(payload) => Some(panic_message(payload.as_ref())),
    }
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a message"))
}

/// Draws values for a module's parameters, in the order of their ids. They are multiples of 2^-11 below one half,
/// so every storage format but the narrowest represents them exactly.
#[must_use]
pub fn parameters(module: &Module, seed: u64) -> Vec<Vec<f32>> {
    let mut rng = Rng::new(avalanche(seed));
    module
        .params
        .iter()
        .map(|decl| (0..decl.ty.shape.elements()).map(|_| 0.5 * rng.small()).collect())
        .collect()
}

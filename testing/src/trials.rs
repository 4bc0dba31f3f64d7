//! The number of cases and the seed of random tests, as the environment sets them.
//!
//! `AUTOBATCH_TEST=long` multiplies the number of cases, `AUTOBATCH_TEST=short` divides it, and
//! `AUTOBATCH_SEED=n` sets the seed.

/// Whether long runs are asked for.
pub fn is_long() -> bool {
    says("long")
}

fn says(asked: &str) -> bool {
    std::env::var_os("AUTOBATCH_TEST").is_some_and(|word| word == asked)
}

/// Returns the number of trials for the requested length of the run.
pub fn trials<N>(usual: N, long: N) -> N {
    if is_long() { long } else { usual }
}

/// Returns the number of random cases: a twelfth in short runs, which serve emulated machines, and twenty times as many in long runs.
pub fn cases(usual: u64) -> u64 {
    if says("short") { usual.div_ceil(12) } else { trials(usual, 20 * usual) }
}

/// The seed that is asked for; a variable that is empty asks for none.
///
/// # Panics
/// If it is no number.
pub fn asked_seed() -> Option<u64> {
    let seed = std::env::var_os("AUTOBATCH_SEED").filter(|seed| !seed.is_empty())?;
    let seed = seed.to_str().and_then(|word| word.parse().ok());
    Some(seed.expect("AUTOBATCH_SEED must be a number of 64 bits"))
}

//! The number of cases and the seed of random tests, as environment variables set them.
//!
//! `AUTOBATCH_TEST=long` multiplies the number of cases, `AUTOBATCH_TEST=short` divides it, and
//! `AUTOBATCH_SEED=n` sets the seed.

/// Returns whether the environment requests long runs.
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

/// Returns the number of random cases. Short runs, which serve emulated machines, execute a twelfth; long runs execute
/// twenty times as many.
pub fn cases(usual: u64) -> u64 {
    if says("short") { usual.div_ceil(12) } else { trials(usual, 20 * usual) }
}

/// Returns the seed that the environment sets. An empty variable is ignored.
///
/// # Panics
/// Panics if the variable is not a number.
pub fn asked_seed() -> Option<u64> {
    let seed = std::env::var_os("AUTOBATCH_SEED").filter(|seed| !seed.is_empty())?;
    let seed = seed.to_str().and_then(|word| word.parse().ok());
    Some(seed.expect("AUTOBATCH_SEED must be a number of 64 bits"))
}

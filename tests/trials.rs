//! What random tests ask the environment: how much to try, and from which seed.
//!
//! `AUTOBATCH_TEST=long` asks for many more trials, `AUTOBATCH_TEST=short` for few random cases, `AUTOBATCH_SEED=n` for one seed. Included by path
//! (`#[path = "../../tests/trials.rs"] mod trials;`) and not a crate, because the crates under test would
//! otherwise wait for the crates that test them.

#![allow(dead_code, unreachable_pub, reason = "each test takes what it needs")]

/// Whether long runs are asked for.
pub fn is_long() -> bool {
    says("long")
}

fn says(asked: &str) -> bool {
    std::env::var_os("AUTOBATCH_TEST").is_some_and(|word| word == asked)
}

/// So many trials in runs of either length.
pub fn trials<N>(usual: N, long: N) -> N {
    if is_long() { long } else { usual }
}

/// So many random cases; a twelfth of them in short runs, which are for machines that are emulated, twenty times as many in long ones.
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

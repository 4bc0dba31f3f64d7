//! Random graphs from the bytes of a coverage-guided fuzzer.
//!
//! The bytes make the decisions of the generator in order, so the fuzzer learns which of them reach new code.

use super::recipe::{Options, Profile, Recipe};
use super::rng::Rng;
use arbitrary::{Arbitrary, Result, Unstructured};

impl<'a> Arbitrary<'a> for Rng {
    /// Takes a seed, and all other bytes as a script.
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let seed = u.arbitrary()?;
        let script = u.bytes(u.len())?;
        Ok(Self::scripted(script, seed))
    }
}

impl<'a> Arbitrary<'a> for Options {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let options = Self::new(*u.choose(&Profile::ALL)?);
        Ok(match u.int_in_range(0..=5)? {
            0 => options,
            1 => options.with_losses(),
            2 => options.differentiable(),
            3 => options.infer_only(),
            4 => options.wild(),
            _ => options.with_losses().wild(),
        })
    }
}

impl<'a> Arbitrary<'a> for Recipe {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let options = u.arbitrary()?;
        Ok(Self::drawn(u.arbitrary()?, options))
    }
}

//! Parsers of option values. Each suggests the nearest known value, and shell completions offer the known values.

use autobatch::Device;
use autobatch_models::catalogue;
use autobatch_planner::schedule::Policy;
use clap::Arg;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use std::ffi::OsStr;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

/// The parser of the name of a model.
pub(crate) fn model() -> PossibleValuesParser {
    PossibleValuesParser::new(models())
}

/// The names of all models, with their descriptions.
fn models() -> impl Iterator<Item = PossibleValue> {
    catalogue::ENTRIES.iter().map(|entry| PossibleValue::new(entry.name).help(entry.about))
}

/// The parser of the model of `emit`, which also emits random graphs.
pub(crate) fn emitted_model() -> PossibleValuesParser {
    let random = PossibleValue::new(RANDOM).help("cells of several types that read random earlier values");
    PossibleValuesParser::new(models().chain([random]))
}

/// The name of the random graphs of `emit`.
pub(crate) const RANDOM: &str = "random";

/// The parser of a batching policy.
pub(crate) fn policy() -> Known<Policy> {
    Known {
        values: &["auto", "none", "depth", "agenda", "agenda:remaining", "ratio", "beam:8", "fsm:table.json"],
        ty: PhantomData,
    }
}

/// The parser of a device.
pub(crate) fn device() -> Known<Device> {
    let values: &[&str] = if cfg!(feature = "gpu") { &["cpu", "gpu", "gpu:0"] } else { &["cpu"] };
    Known { values, ty: PhantomData }
}

/// A parser of a type whose values have parameters. The known values are examples.
#[derive(Debug)]
pub(crate) struct Known<T> {
    values: &'static [&'static str],
    ty: PhantomData<fn() -> T>,
}

impl<T> Clone for Known<T> {
    fn clone(&self) -> Self {
        Self { values: self.values, ty: PhantomData }
    }
}

impl<T> TypedValueParser for Known<T>
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    type Value = T;

    fn parse_ref(&self, cmd: &clap::Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let values = self.values;
        let parse = move |text: String| {
            text.parse::<T>().map_err(|error| match nearest(&text, values.iter().copied()) {
                Some(near) => format!("{error}; did you mean {near}?"),
                None => error.to_string(),
            })
        };
        StringValueParser::new().try_map(parse).parse_ref(cmd, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values.iter().map(PossibleValue::new)))
    }
}

/// The smallest similarity of a suggestion; 1 means equal words.
const SIMILAR: f64 = 0.7;

/// The candidate that resembles a word most, if one is similar enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rated = candidates.into_iter().map(|candidate| (strsim::jaro_winkler(word, candidate), candidate));
    let best = rated.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= SIMILAR).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_candidate_is_similar() {
        assert_eq!(nearest("dept", ["none", "depth", "auto"]), Some("depth"));
        assert_eq!(nearest("zebra", ["none", "depth", "auto"]), None);
        assert_eq!(nearest("", []), None);
    }
}

//! The arguments of one call of a torch function.

use super::{Fail, Made};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;

/// The arguments of a call, read by the place of each in the op's declaration.
pub(super) struct Call<'a, 'py> {
    pub(super) args: &'a Bound<'py, PyTuple>,
    pub(super) kwargs: Option<&'a Bound<'py, PyDict>>,
    /// The names of the arguments in their order. The last one takes any number of arguments if it begins with `*`.
    pub(super) names: &'static [&'static str],
}

/// Arguments that change nothing: where a result lies and how it is laid out.
const WITHOUT_EFFECT: [&str; 4] = ["memory_format", "_stacklevel", "requires_grad", "layout"];

/// Names of numpy that torch takes too, with its own.
const ALIASES: [(&str, &str); 2] = [("axis", "dim"), ("keepdims", "keepdim")];

fn unaliased(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own)
}

fn aliased(name: &str) -> Option<&'static str> {
    ALIASES.iter().find(|(_, own)| *own == name).map(|(alias, _)| *alias)
}

impl<'py> Call<'_, 'py> {
    /// Refuses arguments that the op does not declare.
    pub(super) fn check(&self) -> Made<()> {
        let variadic = self.names.last().is_some_and(|name| name.starts_with('*'));
        if self.args.len() > self.names.len() && !variadic {
            return Err(Fail::refused(format!(
                "{} arguments, of which {} are known",
                self.args.len(),
                self.names.len()
            )));
        }
        for (key, value) in self.kwargs.into_iter().flatten() {
            let key: String = key.extract()?;
            let name = unaliased(&key);
            let known = self.names.iter().any(|own| own.trim_start_matches('*') == name) || value.is_none();
            if !known && !WITHOUT_EFFECT.contains(&&*key) {
                return Err(Fail::refused(format!("the argument {key}={value}")));
            }
        }
        let dtype = self.names.iter().position(|name| *name == "dtype").map(|place| self.get(place));
        match dtype.transpose()?.flatten().map(|dtype| dtype.to_string()) {
            Some(dtype) if dtype != "torch.float32" => Err(Fail::refused(format!("dtype={dtype}"))),
            _ => Ok(()),
        }
    }

    /// Whether the argument `inplace` is true.
    pub(super) fn is_in_place(&self) -> Made<bool> {
        match self.names.iter().position(|name| *name == "inplace") {
            Some(place) => self.flag(place, false),
            None => Ok(false),
        }
    }

    /// The argument at a place; `None` if it is missing or None.
    pub(super) fn get(&self, place: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        // Python would make an exception of an item that does not exist.
        let found = match (place < self.args.len(), self.kwargs) {
            (true, _) => Some(self.args.get_item(place)?),
            (false, Some(kwargs)) => {
                let name = self.names[place].trim_start_matches('*');
                match (kwargs.get_item(name)?, aliased(name)) {
                    (None, Some(alias)) => kwargs.get_item(alias)?,
                    (found, _) => found,
                }
            }
            (false, None) => None,
        };
        Ok(found.filter(|found| !found.is_none()))
    }

    /// An argument by its name alone; `None` if it is missing or None.
    pub(super) fn keyword(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.kwargs.map(|kwargs| kwargs.get_item(name)).transpose()?.flatten();
        Ok(found.filter(|found| !found.is_none()))
    }

    /// The argument at a place, which the op needs.
    pub(super) fn need(&self, place: usize) -> Made<Bound<'py, PyAny>> {
        self.get(place)?.ok_or_else(|| Fail::refused(format!("no argument {}", self.names[place])))
    }

    /// A number at a place.
    pub(super) fn number(&self, place: usize, default: f64) -> Made<f64> {
        match self.get(place)? {
            None => Ok(default),
            Some(found) => found.extract().map_err(|_| self.wrong(place, "a number", &found)),
        }
    }

    /// An int at a place.
    pub(super) fn int(&self, place: usize) -> Made<Option<i64>> {
        match self.get(place)? {
            None => Ok(None),
            Some(found) => found.extract().map(Some).map_err(|_| self.wrong(place, "an int", &found)),
        }
    }

    /// A truth value at a place.
    pub(super) fn flag(&self, place: usize, default: bool) -> Made<bool> {
        match self.get(place)? {
            None => Ok(default),
            Some(found) => Ok(found.is_truthy()?),
        }
    }

    /// A word at a place.
    pub(super) fn word(&self, place: usize, default: &str) -> Made<String> {
        match self.get(place)? {
            None => Ok(default.to_owned()),
            Some(found) => found.extract().map_err(|_| self.wrong(place, "a word", &found)),
        }
    }

    /// One or several ints at a place.
    pub(super) fn ints(&self, place: usize) -> Made<Option<SmallVec<[i64; 5]>>> {
        let Some(found) = self.get(place)? else { return Ok(None) };
        if let Ok(one) = found.extract::<i64>() {
            return Ok(Some(SmallVec::from_slice(&[one])));
        }
        self.all_ints(place, found.try_iter().map_err(|_| self.wrong(place, "ints", &found))?).map(Some)
    }

    /// The ints from a place on: `view(2, 3)` or `view((2, 3))`.
    pub(super) fn ints_from(&self, place: usize) -> Made<SmallVec<[i64; 5]>> {
        match self.args.get_item(place) {
            Ok(first) if first.is_instance_of::<PyTuple>() || first.is_instance_of::<PyList>() => {
                self.all_ints(place, first.try_iter()?)
            }
            Ok(_) => self.all_ints(place, self.args.get_slice(place, self.args.len()).try_iter()?),
            Err(_) => self.ints(place).map(Option::unwrap_or_default),
        }
    }

    fn all_ints(
        &self,
        place: usize,
        items: impl IntoIterator<Item = PyResult<Bound<'py, PyAny>>>,
    ) -> Made<SmallVec<[i64; 5]>> {
        let mut ints = SmallVec::new();
        for item in items {
            let item = item?;
            ints.push(item.extract().map_err(|_| self.wrong(place, "ints", &item))?);
        }
        Ok(ints)
    }

    fn wrong(&self, place: usize, expected: &str, found: &Bound<'_, PyAny>) -> Fail {
        let name = self.names[place.min(self.names.len() - 1)].trim_start_matches('*');
        let kind =
            found.get_type().name().map_or_else(|_| "another object".to_owned(), |name| name.to_string());
        Fail::refused(format!("{name} must be {expected}, found {kind}"))
    }
}

//! The layers here of modules of PyTorch, by their names.

use super::import::Arrays;
use super::import_error::ImportError;
use autobatch_ir::Weights;
use std::collections::{BTreeMap, BTreeSet};

/// The rest of a module's name below another one; empty for that module itself.
fn below<'m>(module: &'m str, from: &str) -> Option<&'m str> {
    match module.strip_prefix(from) {
        Some("") => Some(""),
        Some(rest) if from.is_empty() => Some(rest),
        Some(rest) => rest.strip_prefix('.'),
        None => None,
    }
}

/// The entry that maps a module: the one with the longest name.
pub(super) fn entry_of(module: &str, names: &[(&str, &str)]) -> Option<usize> {
    let known = names.iter().enumerate().filter(|(_, (from, _))| below(module, from).is_some());
    known.max_by_key(|(_, (from, _))| from.len()).map(|(entry, _)| entry)
}

/// The layer here of a module of PyTorch.
pub(super) fn layer_name(module: &str, names: &[(&str, &str)]) -> String {
    let Some((from, to)) = entry_of(module, names).map(|entry| names[entry]) else {
        return module.to_owned();
    };
    match (to, below(module, from).unwrap_or_default()) {
        (to, "") => to.to_owned(),
        ("", rest) => rest.to_owned(),
        (to, rest) => format!("{to}.{rest}"),
    }
}

/// The layers of modules whose numbers count modules without arrays, as `torch.nn.Sequential` does.
pub(super) fn sequential_order(
    modules: &BTreeMap<String, Arrays>,
    weights: &Weights,
    names: &[(&str, &str)],
) -> Result<BTreeMap<String, String>, ImportError> {
    let numbered = |name: &str| -> Option<(String, usize)> {
        let (parent, number) = name.rsplit_once('.').unwrap_or(("", name));
        Some((parent.to_owned(), number.parse().ok()?))
    };
    let mut parents: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (parent, number) in modules.keys().filter_map(|name| numbered(name)) {
        // A number with a name of its own in the list is mapped by that.
        let child = if parent.is_empty() { number.to_string() } else { format!("{parent}.{number}") };
        if !names.iter().any(|(from, _)| *from == child) {
            parents.entry(parent).or_default().insert(number);
        }
    }
    let mut order = BTreeMap::new();
    for (parent, found) in parents {
        let layer = layer_name(&parent, names);
        let number_of = |name: &str| -> Option<usize> {
            let rest = below(name, &layer)?;
            rest.split_once('.')?.0.parse().ok()
        };
        let expected: BTreeSet<usize> = weights.iter().filter_map(|param| number_of(param.name())).collect();
        let is_dense = found.iter().copied().eq(0..found.len());
        if found == expected || expected.is_empty() || (is_dense && found.len() != expected.len()) {
            continue;
        }
        if found.len() != expected.len() {
            let [found, expected] = [found, expected].map(|numbers| numbers.into_iter().collect());
            return Err(ImportError::Numbers { module: parent, found, expected });
        }
        let named = |name: &str, number: usize| match name {
            "" => number.to_string(),
            name => format!("{name}.{number}"),
        };
        let pairs = found.into_iter().zip(expected);
        order.extend(pairs.map(|(from, to)| (named(&parent, from), named(&layer, to))));
    }
    Ok(order)
}

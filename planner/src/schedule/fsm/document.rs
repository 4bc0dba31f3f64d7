//! The file of a table: the names of its types once, then states that speak of them by number.
//!
//! Names are hexadecimal, because JSON readers round large numbers.

use super::{Entry, FsmError, Table};
use serde::{Deserialize, Serialize};

/// How types get their names. It counts up whenever a type gets another name than before, because an older table would then
/// know no type, and the ratio would decide all.
pub(super) const NAMES: u32 = 1;

/// A table as JSON has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// The [`NAMES`] that the table was made with.
    #[serde(default)]
    names: u32,
    /// The names of types, ascending.
    types: Vec<String>,
    states: Vec<State>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Ready types by their places in the list, most ready jobs first.
    ready: Vec<u32>,
    /// Type and value in millionths of a batch, ascending by type.
    values: Vec<(u32, i64)>,
}

impl From<Table> for Document {
    fn from(table: Table) -> Self {
        let mut names: Vec<u64> = table.entries.iter().flat_map(|entry| &entry.ready).copied().collect();
        names.sort_unstable();
        names.dedup();
        let number = |name: u64| names.partition_point(|&known| known < name) as u32;
        let state = |entry: &Entry| State {
            ready: entry.ready.iter().map(|&name| number(name)).collect(),
            values: entry.values.iter().map(|&(name, value)| (number(name), value)).collect(),
        };
        let states = table.entries.iter().map(state).collect();
        Self { names: NAMES, types: names.iter().map(|name| format!("{name:016x}")).collect(), states }
    }
}

impl TryFrom<Document> for Table {
    type Error = FsmError;

    fn try_from(Document { names: version, types, states }: Document) -> Result<Self, FsmError> {
        if version != NAMES {
            return Err(FsmError(format!(
                "it calls types by names of version {version}, this program by names of version {NAMES}, so it would know none"
            )));
        }
        let names = types.iter().map(|name| {
            u64::from_str_radix(name, 16).map_err(|_| FsmError(format!("{name:?} is no name of a type")))
        });
        let names: Vec<u64> = names.collect::<Result<_, _>>()?;
        if names.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(FsmError("the names of types do not ascend".to_owned()));
        }
        let name = |at: usize, ty: u32| {
            let missing = || FsmError(format!("state {at} speaks of type {ty} of {}", names.len()));
            names.get(ty as usize).copied().ok_or_else(missing)
        };
        let mut entries: Vec<Entry> = Vec::new();
        for (at, State { ready, values }) in states.into_iter().enumerate() {
            let ready = ready.into_iter().map(|ty| name(at, ty)).collect::<Result<Vec<u64>, _>>()?;
            if entries.last().is_some_and(|last| last.ready >= ready) {
                return Err(FsmError(format!("state {at} is not greater than the state before it")));
            }
            if values.is_empty() || values.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
                return Err(FsmError(format!("state {at} has no values, or types that do not ascend")));
            }
            let values = values.into_iter().map(|(ty, value)| Ok((name(at, ty)?, value)));
            let values = values.collect::<Result<Vec<(u64, i64)>, FsmError>>()?;
            let mut sorted = ready.clone();
            sorted.sort_unstable();
            if let Some((ty, _)) = values.iter().find(|(ty, _)| sorted.binary_search(ty).is_err()) {
                let place = names.partition_point(|known| known < ty);
                return Err(FsmError(format!(
                    "state {at} gives a value to type {place}, expected a type that is ready"
                )));
            }
            entries.push(Entry { ready, values });
        }
        Ok(Self { entries })
    }
}

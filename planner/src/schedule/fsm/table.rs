//! Learned tables, and their file format: the names of the types once, then states that refer to them by number.
//!
//! Names are hexadecimal text, because JSON readers round large numbers.

use serde::{Deserialize, Serialize};

/// The learned value of every type in every state, made by [`train`](super::train). It has a JSON form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Table {
    pub(super) entries: Vec<Entry>,
}

/// One state of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The names of the ready types, most ready jobs first, ties by name.
    pub(super) ready: Vec<u64>,
    /// Type names, ascending, with values in millionths of a batch. Every JSON reader keeps such whole numbers exact.
    pub(super) values: Vec<(u64, i64)>,
}

impl Table {
    /// Number of states.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table has no states.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reads a table from JSON.
    ///
    /// # Errors
    /// If the text is not JSON or breaks a rule of the format.
    pub fn from_json(text: &str) -> Result<Self, FsmError> {
        serde_json::from_str(text).map_err(|error| FsmError(error.to_string()))
    }

    /// Writes the table as JSON. Equal tables give equal text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("lists of whole numbers have a JSON form")
    }

    /// The type of the highest value in a state. Ties go to the smaller name.
    pub(super) fn best(&self, ready: &[u64]) -> Option<u64> {
        let at = self.entries.binary_search_by(|entry| entry.ready.as_slice().cmp(ready)).ok()?;
        best_value(&self.entries[at].values).map(|(ty, _)| ty)
    }
}

/// The entry of the highest value. Values are negative, so the maximum does not start from zero.
pub(super) fn best_value<V: PartialOrd + Copy>(values: &[(u64, V)]) -> Option<(u64, V)> {
    values.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// The reason why a text is not a [`Table`].
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("learned schedule table: {0}; train it again")]
pub struct FsmError(String);

autobatch_ir::debug_as_display!(FsmError);

/// Version of the naming of types. Every change of the naming increases it: an older table would match no type, and the ratio
/// would silently decide everything.
pub(super) const NAMES: u32 = 2;

/// The JSON form of a table.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// The [`NAMES`] of the table.
    #[serde(default)]
    names: u32,
    /// The names of the types, ascending.
    types: Vec<String>,
    states: Vec<State>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Numbers of the ready types, most ready jobs first.
    ready: Vec<u32>,
    /// Type numbers, ascending, with values in millionths of a batch.
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
            return Err(FsmError(format!("its type names have version {version}, expected version {NAMES}")));
        }
        let names = types.iter().map(|name| {
            u64::from_str_radix(name, 16).map_err(|_| FsmError(format!("{name:?} is not a type name")))
        });
        let names: Vec<u64> = names.collect::<Result<_, _>>()?;
        if names.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(FsmError("the type names do not ascend".to_owned()));
        }
        let name = |at: usize, ty: u32| {
            let missing =
                || FsmError(format!("state {at} has type {ty}, expected a number below {}", names.len()));
            names.get(ty as usize).copied().ok_or_else(missing)
        };
        let mut entries: Vec<Entry> = Vec::new();
        for (at, State { ready, values }) in states.into_iter().enumerate() {
            let ready = ready.into_iter().map(|ty| name(at, ty)).collect::<Result<Vec<u64>, _>>()?;
            if entries.last().is_some_and(|last| last.ready >= ready) {
                return Err(FsmError(format!("state {at} is not greater than the state before it")));
            }
            if values.is_empty() || values.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
                return Err(FsmError(format!("state {at} has no values, or its types do not ascend")));
            }
            let values = values.into_iter().map(|(ty, value)| Ok((name(at, ty)?, value)));
            let values = values.collect::<Result<Vec<(u64, i64)>, FsmError>>()?;
            let mut sorted = ready.clone();
            sorted.sort_unstable();
            if let Some((ty, _)) = values.iter().find(|(ty, _)| sorted.binary_search(ty).is_err()) {
                let place = names.partition_point(|known| known < ty);
                return Err(FsmError(format!("state {at} has a value for type {place}, which is not ready")));
            }
            entries.push(Entry { ready, values });
        }
        Ok(Self { entries })
    }
}

//! Policy `fsm`: a learned table over the set of ready types.
//!
//! **What.** ED-Batch's finite-state machine. A state is the list of ready types sorted by how many nodes each has ready (most
//! first, ties by type number); the table gives every type of the list a learned value, and the highest fires. Two things are
//! ours: a type with ratio 1 fires without asking (never wrong, and it keeps the table small), and a state that the table does not
//! know goes to the ratio and is counted, so that a stale table shows in the report instead of in the running time.
//!
//! **Needs** a checked problem whose type numbers mean the same as in training. **Ensures** a valid order. **Cost** as `ratio`,
//! plus a sort of the ready types and a binary search per decision. **Refuses** nothing at run time; a malformed table is refused
//! when it is read. Training is in `fsm/learn.rs`.

mod learn;

pub use learn::{Training, train};

use super::front::Front;
use super::part::Part;
use super::ratio::{best_ratio, run_part, safe_type};
use super::solve::solve;
use super::{Batches, Problem, Schedule, Scratch, Why};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Values of firing a type in a state, learned by [`train`]; reads and writes JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Entry>", into = "Vec<Entry>")]
pub struct Table {
    entries: Vec<Entry>,
}

/// One state of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Ready types, most ready nodes first.
    ready: Vec<u32>,
    /// Type and value in millionths of a batch, ascending by type. Whole numbers survive any JSON reader unchanged.
    values: Vec<(u32, i64)>,
}

impl Table {
    /// Number of states.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table knows no state.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reads a table from JSON.
    pub fn from_json(text: &str) -> Result<Self, FsmError> {
        serde_json::from_str(text).map_err(|error| FsmError(error.to_string()))
    }

    /// Writes the table as JSON; equal tables give equal text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("lists of whole numbers have a JSON form")
    }

    /// The type of the highest value in a state; ties go to the smaller number.
    fn best(&self, ready: &[u32]) -> Option<u32> {
        let at = self.entries.binary_search_by(|entry| entry.ready.as_slice().cmp(ready)).ok()?;
        best_value(&self.entries[at].values).map(|(ty, _)| ty)
    }
}

/// The highest value; starts from no value at all, because every value is negative and zero would win.
fn best_value<V: PartialOrd + Copy>(values: &[(u32, V)]) -> Option<(u32, V)> {
    values.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })
}

impl From<Table> for Vec<Entry> {
    fn from(table: Table) -> Self {
        table.entries
    }
}

impl TryFrom<Vec<Entry>> for Table {
    type Error = FsmError;

    fn try_from(entries: Vec<Entry>) -> Result<Self, FsmError> {
        for (at, entry) in entries.iter().enumerate() {
            if at > 0 && entries[at - 1].ready >= entry.ready {
                return Err(FsmError(format!("state {at} is not greater than the state before it")));
            }
            if entry.values.is_empty() || entry.values.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
                return Err(FsmError(format!("state {at} has no values, or types that do not ascend")));
            }
            if let Some((ty, _)) = entry.values.iter().find(|(ty, _)| !entry.ready.contains(ty)) {
                return Err(FsmError(format!(
                    "state {at} gives a value to type {ty}, expected a type that is ready"
                )));
            }
        }
        Ok(Self { entries })
    }
}

/// Why a text is not a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsmError(String);

impl fmt::Display for FsmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "learned schedule table: {}; train it again", self.0)
    }
}

impl std::error::Error for FsmError {}

/// Schedules by a learned table.
#[derive(Clone, Debug, Default)]
pub struct Fsm {
    /// The table; an empty one makes this policy the ratio.
    pub table: Table,
}

impl Schedule for Fsm {
    fn name(&self) -> &str {
        "fsm"
    }

    fn options(&self) -> String {
        format!("{self:?}")
    }

    fn needs_check(&self) -> bool {
        false
    }

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let (mut known, mut unknown) = (0, 0);
        let mut state = std::mem::take(&mut scratch.keys);
        let mut batches = solve(problem, scratch, |part, tools| {
            run_part(part, tools, |front| {
                safe_type(front).or_else(|| {
                    describe(front, part, &mut state);
                    let learned = self.table.best(&state).and_then(|ty| part.types.binary_search(&ty).ok());
                    match learned {
                        Some(ty) => {
                            known += 1;
                            Some(ty as u32)
                        }
                        None => {
                            let choice = best_ratio(front);
                            unknown += u32::from(choice.is_some());
                            choice
                        }
                    }
                })
            })
        });
        scratch.keys = state;
        if batches.why == Why::Greedy {
            batches.why = Why::Learned { known, unknown };
        }
        batches
    }
}

/// The ready types of a part by global number, most ready nodes first, ties by number.
fn describe(front: &Front, part: &Part, state: &mut Vec<u32>) {
    state.clear();
    state.extend((0..part.types.len() as u32).filter(|&ty| front.ready.count(ty) > 0));
    state.sort_unstable_by_key(|&ty| (std::cmp::Reverse(front.ready.count(ty)), ty));
    state.iter_mut().for_each(|ty| *ty = part.types[*ty as usize]);
}

//! Policy `fsm`: a learned table over the set of ready types.
//!
//! **What.** ED-Batch's finite-state machine. A state is the list of ready types sorted by how many jobs each has ready (most
//! first, ties by type number); the table gives every type of the list a learned value, and the highest fires. Two things are
//! ours: a type with ratio 1 fires without asking (never wrong, and it keeps the table small), and a state that the table does not
//! know goes to the ratio and is counted, so that a stale table shows in the report instead of in the running time.
//!
//! **Needs** a checked problem whose types have [names](Problem::with_names), so that they mean the same as in training: the planner
//! gives them. A type that the table has not met goes to the ratio, too. **Ensures** a valid order. **Cost** as `ratio`,
//! plus a sort of the ready types and a binary search per decision. **Refuses** nothing at run time; a malformed table is refused
//! when it is read. Training is in `fsm/learn.rs`, the file in `fsm/document.rs`.

mod document;
mod learn;

pub use learn::{Training, train};

use super::front::Front;
use super::part::Part;
use super::ratio::{best_ratio, run_part, safe_type};
use super::solve::solve;
use super::{Batches, Problem, Schedule, Scratch, Why};
use document::Document;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Values of firing a type in a state, learned by [`train`]; reads and writes JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Table {
    entries: Vec<Entry>,
}

/// One state of the table. Types are called by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Ready types, most ready jobs first, ties by name.
    ready: Vec<u64>,
    /// Type and value in millionths of a batch, ascending by type. Whole numbers survive any JSON reader unchanged.
    values: Vec<(u64, i64)>,
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
    fn best(&self, ready: &[u64]) -> Option<u64> {
        let at = self.entries.binary_search_by(|entry| entry.ready.as_slice().cmp(ready)).ok()?;
        best_value(&self.entries[at].values).map(|(ty, _)| ty)
    }
}

/// The highest value; starts from no value at all, because every value is negative and zero would win.
fn best_value<V: PartialOrd + Copy>(values: &[(u64, V)]) -> Option<(u64, V)> {
    values.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best })
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

    fn wants_names(&self) -> bool {
        !self.table.is_empty()
    }

    fn needs_check(&self) -> bool {
        false
    }

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let (mut known, mut unknown) = (0, 0);
        let mut state = std::mem::take(&mut scratch.names);
        let mut batches = solve(problem, scratch, |part, tools| {
            run_part(part, tools, |front| {
                safe_type(front).or_else(|| {
                    let place = Place { problem, part, front };
                    place.describe(&mut state);
                    match self.table.best(&state).and_then(|name| place.ready(name)) {
                        Some(ty) => {
                            known += 1;
                            Some(ty)
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
        scratch.names = state;
        if batches.why == Why::Greedy {
            batches.why = Why::Learned { known, unknown };
        }
        batches
    }
}

/// Where a decision is made.
struct Place<'a> {
    problem: &'a Problem<'a>,
    part: &'a Part,
    front: &'a Front,
}

impl Place<'_> {
    /// What a type of the part is called.
    fn name(&self, ty: u32) -> u64 {
        self.problem.name(self.part.types[ty as usize])
    }

    fn is_ready(&self, ty: &u32) -> bool {
        self.front.ready.count(*ty) > 0
    }

    /// The names of the ready types, most ready jobs first, ties by name.
    fn describe(&self, state: &mut Vec<u64>) {
        state.clear();
        state.extend((0..self.part.types.len() as u32).filter(|ty| self.is_ready(ty)).map(u64::from));
        state.sort_unstable_by_key(|&ty| {
            (std::cmp::Reverse(self.front.ready.count(ty as u32)), self.name(ty as u32))
        });
        state.iter_mut().for_each(|ty| *ty = self.name(*ty as u32));
    }

    /// The ready type of this name.
    fn ready(&self, name: u64) -> Option<u32> {
        (0..self.part.types.len() as u32).find(|ty| self.is_ready(ty) && self.name(*ty) == name)
    }
}

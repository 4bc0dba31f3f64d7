//! Policy `fsm`: a learned table over the set of ready types.
//!
//! **Rule.** The finite-state machine of ED-Batch. A state is the list of ready types, sorted by ready jobs (most first, ties by
//! name). The table has a learned value for every type of a state, and the type with the highest value runs. Two additions: a
//! type with ratio 1 runs without a lookup, which is always right and keeps the table small; and a state outside the table is
//! decided by the ratio and counted, so that a stale table shows in reports.
//!
//! **Needs** a checked problem whose types have the [names](Problem::with_names) of the training; the planner provides them.
//! **Ensures** a valid order. **Cost** as `ratio`, plus a sort of the ready types and a binary search per decision. `fsm/learn.rs`
//! holds the training and `fsm/table.rs` the table with its file format.

mod learn;
mod table;

pub use learn::{Learned, Training, TrainingLimit, train};
pub use table::{FsmError, Table};

use super::front::Front;
use super::part::Part;
use super::ratio::{best_ratio, run_part, safe_type};
use super::solve::solve;
use super::{Batches, Problem, Schedule, Scratch, StopReason, builtin};
use crate::ids::LocalType;

/// Schedules by a learned table.
#[derive(Clone, Debug, Default)]
pub struct Fsm {
    /// The table. With an empty table, the policy is the ratio.
    pub table: Table,
}

impl Schedule for Fsm {
    builtin!("fsm");

    fn wants_names(&self) -> bool {
        !self.table.is_empty()
    }

    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches {
        let (mut known, mut unknown) = (0, 0);
        let mut state = scratch.take::<Vec<u64>>();
        let mut batches = solve(problem, scratch, |part, tools| {
            run_part(part, tools, |front| {
                safe_type(front).or_else(|| {
                    let decision = Decision { problem, part, front };
                    decision.describe(&mut state);
                    match self.table.best(&state).and_then(|name| decision.ready(name)) {
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
        scratch.put(state);
        if batches.why == StopReason::Greedy {
            batches.why = match self.table.is_empty() {
                true => StopReason::EmptyTable,
                false => StopReason::Learned { known, unknown },
            };
        }
        batches
    }
}

/// The state of a run at a decision.
struct Decision<'a> {
    problem: &'a Problem<'a>,
    part: &'a Part,
    front: &'a Front,
}

impl Decision<'_> {
    /// The name of a type of the part.
    fn name(&self, ty: LocalType) -> u64 {
        self.problem.name(self.part.types[ty.index()])
    }

    fn is_ready(&self, ty: &LocalType) -> bool {
        self.front.ready.count(*ty) > 0
    }

    /// The names of the ready types, most ready jobs first, ties by name.
    fn describe(&self, state: &mut Vec<u64>) {
        state.clear();
        state.extend(self.part.type_ids().filter(|ty| self.is_ready(ty)).map(|ty| u64::from(ty.0)));
        let ty = |number: u64| LocalType(number as u32);
        state.sort_unstable_by_key(|&number| {
            (std::cmp::Reverse(self.front.ready.count(ty(number))), self.name(ty(number)))
        });
        state.iter_mut().for_each(|number| *number = self.name(ty(*number)));
    }

    /// The ready type of this name.
    fn ready(&self, name: u64) -> Option<LocalType> {
        self.part.type_ids().find(|ty| self.is_ready(ty) && self.name(*ty) == name)
    }
}

//! Batching policies decide which jobs run together, and in which order.
//!
//! A [`Problem`] is a list of jobs in topological order, each with operands and a type number. A policy turns it into
//! [`Batches`]. Only `stage` and `type_names` read graphs. So policies can be compared on any problem and tested
//! against exhaustive search.
//!
//! In the table, `n` counts jobs and operands. A *hard part* is a group of mutually dependent types, as `parts`
//! explains; most real problems split into parts that need no search.
//!
//! | policy | rule | cost |
//! |---|---|---|
//! | [`none`](Unbatched) | every job alone | O(n) |
//! | [`depth`](Depth) | same depth and type | O(n) |
//! | [`agenda`](Agenda) | ready type of least mean depth | O(n + batches x log types) |
//! | [`ratio`](Ratio) | type with the largest share of its sources ready | O(n x types of a hard part) |
//! | [`beam`](Beam) | the k best partial orders, forward and backward, with exact pruning | k times `ratio` and more |
//! | [`fsm`](Fsm) | a table learned over the sets of ready types | as `ratio` |
//! | [`auto`](Auto) | least expected planning and execution time, by a [`CostTable`] | as `ratio`, plus useful beams |
//!
//! The next table shows the mean number of batches per minibatch of 32 held-out sentences, with cells as jobs. The
//! first column is the lower bound. `examples/measure_schedules.rs` makes the table, and every order passed [`check`].
//!
//! | workload | bound | depth | agenda | ratio | beam:1 | beam:8 |
//! |---|---|---|---|---|---|---|
//! | binary Tree-LSTM | 20.5 | 39.1 | 39.1 | 20.5 | 20.5 | 20.5 |
//! | two tree cells at random | 23.4 | 54.3 | 92.4 | 28.5 | 26.9 | 26.4 |
//! | three tree cells at random | 26.3 | 68.5 | 150.4 | 35.5 | 33.9 | 32.6 |
//! | lattice LSTM, sums typed by arity | 174.1 | 565.4 | 538.3 | 239.5 | 220.3 | 191.3 |
//! | lattice LSTM, arity-free sums | 171.4 | 532.7 | 318.5 | 208.5 | 185.3 | 179.8 |
//! | two-layer BiLSTM | 235.8 | 435.1 | 235.8 | 235.8 | 235.8 | 235.8 |
//!
//! [`path_sum_bound`] computes the lower bound, [`check`] validates any order, and [`Policy`] parses policy names.

mod agenda;
mod auto;
mod batches;
mod beam;
mod bound;
mod check;
mod costs;
mod depth;
mod front;
mod fsm;
mod none;
mod operand_lists;
mod part;
mod parts;
mod policy;
mod problem;
mod ratio;
mod ready;
mod scratch;
mod solve;
mod stage;
#[cfg(test)]
mod tests;
mod type_names;

pub use agenda::{Agenda, Mean};
pub use auto::Auto;
pub use batches::{Batches, StopReason};
pub use beam::Beam;
pub use bound::{Bound, path_sum_bound};
pub use check::{ScheduleError, check};
pub use costs::{
    BeamGain, COSTS_VARIABLE, Class, ClassCost, ClassCosts, CostError, CostTable, PlanningCost, StepCost,
};
pub use depth::Depth;
pub use fsm::{Fsm, FsmError, Learned, Table, Training, TrainingLimit, train};
pub use none::Unbatched;
pub(crate) use operand_lists::{JobOperand, ListMaxima, OperandLists};
pub use policy::{LoadError, ParsePolicyError, Policy};
pub use problem::{MAX_SPARE_TYPES, Problem, ProblemError};
pub use ratio::Ratio;
pub use scratch::Scratch;
pub(crate) use stage::{Memory, schedule_jobs};
pub(crate) use type_names::type_names;

/// A batching policy: turns a problem into an ordered list of batches.
///
/// A policy is pure and deterministic: equal problems give equal batches, whatever the scratch held before. It never
/// fails. A policy that cannot handle a problem falls back to a documented simpler policy and reports that in
/// [`Batches::why`].
pub trait Schedule {
    /// The name of the policy in [`Policy`].
    fn name(&self) -> &str;

    /// All options that influence the order, as text. Policies of one name with different orders have different
    /// options.
    fn options(&self) -> String;

    /// The table from which the planner takes the [costs](Problem::with_costs) of types, if the policy reads costs.
    fn costs(&self) -> Option<&CostTable> {
        None
    }

    /// Whether the policy needs [names](Problem::with_names) of types, to recognise types that it learned on other
    /// graphs.
    fn wants_names(&self) -> bool {
        false
    }

    /// Whether the planner must [`check`] each order, which costs one scan. Only the tested policies of this library
    /// skip the check.
    fn needs_check(&self) -> bool {
        true
    }

    /// Orders the jobs of `problem`. `scratch` is reusable memory. The caller may [recycle](Scratch::recycle) the
    /// batches into it.
    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches;
}

/// The methods of [`Schedule`] that all policies of this library share. The literal is the name. A policy whose name
/// depends on its options omits the literal and defines `name` itself.
macro_rules! builtin {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        builtin!();
    };
    () => {
        fn options(&self) -> String {
            format!("{self:?}")
        }

        fn needs_check(&self) -> bool {
            false
        }
    };
}
use builtin;

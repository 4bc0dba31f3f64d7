//! Batching schedulers over an abstract problem: which jobs run together, and in which order.
//!
//! A [`Problem`] is a list of jobs in topological order with a small type number each; a policy returns [`Batches`]. Nothing
//! here knows the graph language, so that policies can be compared on anything, and tested against exhaustive search.
//!
//! | policy | rule | cost |
//! |---|---|---|
//! | [`none`](Unbatched) | every job alone | O(n) |
//! | [`depth`](Depth) | same depth and type | O(n) |
//! | [`agenda`](Agenda) | ready type of least mean depth | O(n) |
//! | [`ratio`](Ratio) | largest share of sources ready | O(n x types of a hard part) |
//! | [`beam`](Beam) | k best partial orders, both directions, exact pruning | k times ratio and more |
//! | [`fsm`](Fsm) | learned table over the set of ready types | as ratio |
//! | [`auto`](Auto) | the least expected time of planning and executing, by a [`CostTable`] | the ratio, more only where it pays |
//!
//! Measured batches per minibatch of 32, means over real held-out sentences at cell granularity
//! (`examples/measure_schedules.rs`; every order passed [`check`]):
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
//! [`path_sum_bound`] certifies, [`check`] proves validity independently, [`exact`] is the oracle for small problems, and
//! [`Policy`] names them all. `parts` explains why most real problems split into pieces that need no search.

mod agenda;
mod auto;
mod batches;
mod beam;
mod bound;
mod check;
mod costs;
mod depth;
mod exact;
mod front;
mod fsm;
mod none;
mod part;
mod parts;
mod policy;
mod problem;
mod ratio;
mod ready;
mod solve;
mod stage;
#[cfg(test)]
mod tests;

pub use agenda::{Agenda, Mean};
pub use auto::Auto;
pub use batches::{Batches, Why};
pub use beam::Beam;
use bound::path_sum_total;
pub use bound::{Bound, path_sum_bound};
pub use check::{ScheduleError, check};
pub use costs::{
    BeamGain, COSTS_VARIABLE, Class, ClassCost, ClassCosts, CostError, CostTable, PlanningCost, StepCost,
};
pub use depth::Depth;
pub use exact::{EXACT_NODES, TooLarge, exact};
pub use fsm::{Fsm, FsmError, Table, Training, train};
pub use none::Unbatched;
pub use policy::{LoadError, ParsePolicyError, Policy};
pub use problem::{Problem, ProblemError, SPARE_TYPES};
pub use ratio::Ratio;
pub use solve::Scratch;
pub(crate) use stage::{Memory, schedule_jobs};

/// A batching policy: turns a problem into an ordered list of batches.
///
/// A policy is pure and deterministic: equal problems give equal batches, whatever the scratch held before. It never fails; a
/// policy that cannot handle a problem falls back to a documented simpler one and says so in [`Batches::why`].
pub trait Schedule {
    /// The name by which [`Policy`] knows it.
    fn name(&self) -> &str;

    /// All that decides what it makes beside its name, in any words: policies of one name that may order a problem
    /// differently say different things.
    fn options(&self) -> String;

    /// The table by which the policy wants the types of problems [costed](Problem::with_costs), if it looks at costs.
    fn costs(&self) -> Option<&CostTable> {
        None
    }

    /// Whether the policy wants the types of problems [named](Problem::with_names): to remember what it learned of other graphs.
    fn wants_names(&self) -> bool {
        false
    }

    /// Whether the planner must [`check`] each order before it goes on. It costs a scan, so only the policies of this
    /// library, whose orders are tested, do without: an order that breaks a rule is an error where it is checked.
    fn needs_check(&self) -> bool {
        true
    }

    /// Orders the jobs of `problem`; `scratch` holds nothing but reusable memory, and whoever is done with the batches may give
    /// theirs [back](Scratch::recycle) to it.
    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches;
}

//! Batching schedulers over an abstract problem: which nodes run together, and in which order.
//!
//! A [`Problem`] is a list of nodes in topological order with a small type number each; a policy returns [`Batches`]. Nothing
//! here knows the graph language, so that policies can be compared on anything, and tested against exhaustive search.
//!
//! | policy | rule | cost |
//! |---|---|---|
//! | [`none`](Unbatched) | every node alone | O(n) |
//! | [`depth`](Depth) | same depth and type | O(n) |
//! | [`agenda`](Agenda) | ready type of least mean depth | O(n) |
//! | [`ratio`](Ratio) | largest share of sources ready | O(n x types of a hard part) |
//! | [`beam`](Beam) | k best partial orders, both directions, exact pruning | k times ratio and more |
//! | [`fsm`](Fsm) | learned table over the set of ready types | as ratio |
//! | [`auto`](Auto) | ratio, then beam within a budget, then predicted time | as its members |
//!
//! [`path_sum_bound`] certifies, [`check`] proves validity independently, [`exact`] is the oracle for small problems, and
//! [`Policy`] names them all. `parts` explains why most real problems split into pieces that need no search.

mod agenda;
mod auto;
mod batches;
mod beam;
mod bound;
mod check;
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
mod solve;
#[cfg(test)]
mod tests;

pub use agenda::{Agenda, Mean};
pub use auto::{Auto, Cost};
pub use batches::{Batches, Why};
pub use beam::Beam;
pub use bound::{Bound, path_sum_bound};
pub use check::{ScheduleError, check};
pub use depth::Depth;
pub use exact::{EXACT_NODES, TooLarge, exact};
pub use fsm::{Fsm, FsmError, Table, Training, train};
pub use none::Unbatched;
pub use policy::{LoadError, ParsePolicyError, Policy};
pub use problem::{Problem, ProblemError, SPARE_TYPES};
pub use ratio::Ratio;
pub use solve::Scratch;

/// A batching policy: turns a problem into an ordered list of batches.
///
/// A policy is pure and deterministic: equal problems give equal batches, whatever the scratch held before. It never fails; a
/// policy that cannot handle a problem falls back to a documented simpler one and says so in [`Batches::why`].
pub trait Schedule {
    /// The name by which [`Policy`] knows it.
    fn name(&self) -> &str;

    /// Orders the nodes of `problem`; `scratch` holds nothing but reusable memory.
    fn schedule(&self, problem: &Problem<'_>, scratch: &mut Scratch) -> Batches;
}

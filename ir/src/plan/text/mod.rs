//! The `.plan` text form: plans that people read, write by hand and store in tests.
//!
//! `PLAN.md` of this crate has the grammar with an example of each construct. Text names the rows that each step reads and
//! writes, not their positions in pools. So it reads back to the plan in [normal form](Plan::normalise), which is an *equal*
//! plan if a planner made it.
//!
//! A reader checks names, counts of lanes and sorts of operands. The verifier checks all else. Malformed or hostile text gives
//! a [`ParseError`] without panic or recursion. Memory is at most a small multiple of the size of the text. Errors and tokens
//! are those of the `.graph` form.

mod parse;
mod parse_kernel;
mod parse_memory;
mod parse_stage;
mod parse_step;
mod parse_update;
mod print;
mod print_kernel;
mod print_step;
mod print_update;
mod runs;
#[cfg(test)]
mod tests;

pub use crate::graph::text::ParseError;

use super::{Kernel, Plan, UpdatePlan};
use crate::files::without_mark;

/// The first line of every text; the number is the version of the grammar.
const HEADER: &str = "autobatch plan 5";
/// The first line of the text of an update plan.
const UPDATE_HEADER: &str = "autobatch update 5";

impl Plan {
    /// The plan as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        print::plan(self)
    }

    /// The plan that a text describes, in [normal form](Self::normalise) and not yet verified.
    ///
    /// # Errors
    /// The first place where the text breaks the grammar, with what was expected there.
    pub fn from_text(text: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        parse::plan(without_mark(text.as_ref()))
    }
}

impl Kernel {
    /// The kernel as the text of a plan has it, under this number.
    #[must_use]
    pub fn to_text(&self, number: usize) -> String {
        let mut text = String::new();
        print_kernel::kernel(&mut text, number, self);
        text
    }
}

impl UpdatePlan {
    /// The update plan as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        print_update::plan(self)
    }

    /// The update plan that a text describes, not yet verified.
    ///
    /// # Errors
    /// The first place where the text breaks the grammar, with what was expected there.
    pub fn from_text(text: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        parse::update_plan(without_mark(text.as_ref()))
    }
}

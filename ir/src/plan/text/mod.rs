//! The `.plan` text form: plans that people read, write by hand and keep in tests.
//!
//! The grammar, with an example of each construct, is the page `PLAN.md` of this crate. Text says
//! what each step reads and writes, not where its pools keep that, so it reads back to the plan in
//! [normal form](Plan::normalise): for a planner's plan, which is in that form, to an *equal* plan.
//!
//! Reading checks what it must to know what a text says: names, counts of lanes, sorts of operands.
//! Whether the plan is sound, the verifier decides. Malformed or hostile text gives a
//! [`ParseError`]: no panic, no recursion, and no memory beyond a small multiple of the text's own
//! size. The errors and the tokens are those of the `.graph` form.

mod parse;
mod parse_kernel;
mod parse_stage;
mod parse_step;
mod parse_update;
mod print;
mod print_kernel;
mod print_step;
mod print_update;
mod runs;

pub use crate::graph::text::ParseError;

use super::{Plan, UpdatePlan};

/// The first line of every text; the number is the version of the grammar.
const HEADER: &str = "autobatch plan 2";
/// The first line of the text of an update plan.
const UPDATE_HEADER: &str = "autobatch update 2";

impl Plan {
    /// The plan as text.
    #[must_use]
    pub fn to_text(&self) -> String {
        print::plan(self)
    }

    /// The plan that a text describes, in [normal form](Self::normalise) and not yet verified.
    ///
    /// # Errors
    /// At the first place that is not as it must be.
    pub fn from_text(text: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        parse::plan(text.as_ref())
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
    /// At the first place that is not as it must be.
    pub fn from_text(text: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        parse::update_plan(text.as_ref())
    }
}

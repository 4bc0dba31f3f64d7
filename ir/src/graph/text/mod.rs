//! The `.graph` text form: graphs and modules that people read, write by hand and keep in tests.
//!
//! The grammar, with an example of each construct, is the page `GRAPH.md` of this crate. Text says
//! all that a graph holds, so it reads back to a graph of equal meaning: equal
//! [`structure`](GraphData::structure), bindings, names and source lines. A graph that came from
//! text reads back *equal*; one from an emitter may number its types and signatures in another
//! order, because text has no place for entries that nothing uses.
//!
//! Reading checks what emitting checks, types and counts of operands among them; what else must
//! hold of a graph, the verifier checks. Malformed or hostile text gives a [`ParseError`]: no panic,
//! no recursion, and no memory beyond a small multiple of the text's own size.

mod apply;
mod attrs;
mod call;
mod cell;
pub(crate) mod cursor;
mod declare;
pub(crate) mod error;
pub(crate) mod lex;
pub(crate) mod names;
pub(crate) mod number;
mod operand;
mod parse;
mod print;
pub(crate) mod vocabulary;
pub(crate) mod write;

pub use error::{Flaw, ParseError};

use crate::graph::{GraphData, Site};
use crate::module::Module;
use std::sync::Arc;

/// The first line of every text; the number is the version of the grammar.
const HEADER: &str = "autobatch graph 2";

/// The site of what has none: text written by hand.
const UNKNOWN: Site = Site { file: String::new(), line: 0, column: 0 };

impl GraphData {
    /// The graph and its module as text.
    ///
    /// The graph must be one that was emitted, parsed or verified.
    #[must_use]
    pub fn to_text(&self) -> String {
        print::graph(self)
    }

    /// The graph that a text describes. A text without a `graph` section is an empty graph.
    ///
    /// # Errors
    /// At the first place that is not as it must be.
    pub fn from_text(text: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        parse::graph(text.as_ref())
    }
}

impl Module {
    /// The module as text: its declarations without a `graph` section.
    #[must_use]
    pub fn to_text(&self) -> String {
        print::module(self)
    }

    /// The module that a text describes.
    ///
    /// # Errors
    /// At the first place that is not as it must be; a `graph` section is such a place.
    pub fn from_text(text: impl AsRef<[u8]>) -> Result<Arc<Self>, ParseError> {
        parse::module(text.as_ref())
    }
}

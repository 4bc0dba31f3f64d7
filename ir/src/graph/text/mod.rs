//! The `.graph` text format for graphs and modules, for reading, writing by hand and tests.
//!
//! The page `GRAPH.md` of this crate contains the grammar with an example of each construct. Text is
//! complete: parsing a printed graph gives equal [`structure`](GraphData::structure), bindings, names
//! and source lines. A graph that came from text reads back *equal*. An emitted graph may number its
//! types and signatures in another order, because text leaves out unused entries.
//!
//! The parser checks the same rules as the emitter, including types and counts of operands. The
//! verifier checks the remaining rules. Malformed or hostile text gives a [`ParseError`]. The parser
//! never panics, does not recurse, and takes memory in proportion to the size of the text.

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

use crate::files::without_mark;
use crate::graph::{GraphData, Site};
use crate::module::Module;
use std::sync::Arc;

/// The first line of every text, with the version of the format.
const HEADER: &str = "autobatch graph 2";

/// The unknown site, for text written by hand.
const UNKNOWN: Site = Site { file: String::new(), line: 0, column: 0 };

impl GraphData {
    /// Prints the graph and its module as text. The graph must be emitted, parsed or verified.
    #[must_use]
    pub fn to_text(&self) -> String {
        print::graph(self)
    }

    /// Parses a graph with its module. A text without a `graph` section gives an empty graph.
    ///
    /// # Errors
    /// At the first flaw.
    pub fn from_text(text: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        parse::graph(without_mark(text.as_ref()))
    }
}

impl Module {
    /// Prints the declarations of the module as text, without a `graph` section.
    #[must_use]
    pub fn to_text(&self) -> String {
        print::module(self)
    }

    /// Parses a module.
    ///
    /// # Errors
    /// At the first flaw; a `graph` section is one.
    pub fn from_text(text: impl AsRef<[u8]>) -> Result<Arc<Self>, ParseError> {
        parse::module(without_mark(text.as_ref()))
    }
}

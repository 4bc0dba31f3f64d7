//! The reasons for which a proof fails, and their text.

use super::MAX_EXPANDED;
use super::terms::{Arg, Piece, Term, TermId, Terms, ViewId, What};
use autobatch_ir::graph::{GraphData, VerifyErrors};
use autobatch_ir::id::ValueId;
use autobatch_ir::types::Type;
use std::fmt::{self, Write as _};

/// The depth to which terms are printed.
const DEPTH: u32 = 3;

/// Why two graphs are not proved equal.
#[expect(missing_docs, reason = "the messages explain the fields")]
#[derive(Clone, thiserror::Error)]
pub enum Unproved {
    /// One of the graphs breaks rules.
    #[error("the {side} graph: {errors}")]
    Malformed { side: &'static str, errors: VerifyErrors },
    /// The modules declare different parameters.
    #[error("the modules must declare the same parameters")]
    Parameters,
    /// A pair names a value that does not exist.
    #[error("the {side} graph has no {value}")]
    NoSuchValue { side: &'static str, value: ValueId },
    /// The values of a pair have different types.
    #[error("{} is {}, but {} is {}", left.0, left.1, right.0, right.1)]
    Types { left: (ValueId, Type), right: (ValueId, Type) },
    /// A graph has more than [`MAX_EXPANDED`] nodes after inlining.
    #[error("a graph has more than {MAX_EXPANDED} nodes after inlining")]
    TooLarge,
    /// The normal forms differ.
    #[error("{0}")]
    Different(Difference),
}

/// The difference between two values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The value on the left.
    pub left: ValueId,
    /// The value on the right.
    pub right: ValueId,
    /// The path from the values to the first subterms that differ.
    pub path: Vec<String>,
    /// The subterm on the left.
    pub ours: String,
    /// The subterm on the right.
    pub theirs: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { left, right, path, ours, theirs } = self;
        write!(f, "{left} and {right} are not proved equal: ")?;
        if !path.is_empty() {
            write!(f, "in {}: ", path.join(", in "))?;
        }
        write!(f, "{ours} against {theirs}")
    }
}

autobatch_ir::debug_as_display!(Unproved);

/// Finds the first subterms in which two images differ.
pub(super) fn explain(
    terms: &Terms,
    graph: &GraphData,
    left: ValueId,
    right: ValueId,
    images: (&Arg, &Arg),
) -> Difference {
    let speller = Speller { terms, graph };
    let mut path = Vec::new();
    let (ours, theirs) = match images {
        (Arg::View(a), Arg::View(b)) => speller.descend(*a, *b, &mut path),
        (Arg::List(a), Arg::List(b)) => speller.lists(a, b, &mut path),
        _ => ("a list".to_owned(), "a value".to_owned()),
    };
    // The path can be as long as the graph; its end is the most useful part.
    let hidden = path.len().saturating_sub(8);
    if hidden > 0 {
        path.splice(..hidden, [format!("{hidden} more")]);
    }
    Difference { left, right, path, ours, theirs }
}

struct Speller<'a> {
    terms: &'a Terms,
    graph: &'a GraphData,
}

impl Speller<'_> {
    fn descend(&self, mut a: ViewId, mut b: ViewId, path: &mut Vec<String>) -> (String, String) {
        while let Some((ours, theirs)) = self.inner(a, b) {
            let (name, place) = (self.head(ours), self.first_difference(ours, theirs));
            let Some(place) = place else { return (self.term(ours, DEPTH), self.term(theirs, DEPTH)) };
            path.push(format!("operand {place} of {name}"));
            let (Term::Apply { args: left, .. }, Term::Apply { args: right, .. }) =
                (self.terms.term(ours), self.terms.term(theirs))
            else {
                unreachable!("only `Term::Apply` has operands")
            };
            match (&left[place], &right[place]) {
                (Arg::View(left), Arg::View(right)) => (a, b) = (*left, *right),
                (Arg::List(left), Arg::List(right)) => {
                    let item = left.iter().zip(right.iter()).position(|(a, b)| a != b);
                    match item {
                        Some(item) if left.len() == right.len() => {
                            path.push(format!("element {item}"));
                            (a, b) = (left[item], right[item]);
                        }
                        _ => return self.lists(left, right, path),
                    }
                }
                _ => return ("a list".to_owned(), "a value".to_owned()),
            }
        }
        (self.view(a, DEPTH), self.view(b, DEPTH))
    }

    /// The terms of the first ranges that differ, if the views are equal otherwise.
    fn inner(&self, a: ViewId, b: ViewId) -> Option<(TermId, TermId)> {
        let (a, b) = (self.terms.view(a), self.terms.view(b));
        if a.len() != b.len() {
            return None;
        }
        match a.iter().zip(b).find(|(a, b)| a != b)? {
            (
                Piece::Part { term, result, start, len },
                Piece::Part { term: other, result: place, start: from, len: count },
            ) if (result, start, len) == (place, from, count) => Some((*term, *other)),
            _ => None,
        }
    }

    /// The first operand in which two terms differ that are equal otherwise.
    fn first_difference(&self, a: TermId, b: TermId) -> Option<usize> {
        match (self.terms.term(a), self.terms.term(b)) {
            (
                Term::Apply { what, types, params, args },
                Term::Apply { what: other, types: theirs, params: weights, args: operands },
            ) if (what, types, params, args.len()) == (other, theirs, weights, operands.len()) => {
                args.iter().zip(operands).position(|(a, b)| a != b)
            }
            _ => None,
        }
    }

    fn lists(&self, a: &[ViewId], b: &[ViewId], path: &mut Vec<String>) -> (String, String) {
        match a.iter().zip(b).position(|(a, b)| a != b) {
            Some(item) if a.len() == b.len() => {
                path.push(format!("element {item}"));
                self.descend(a[item], b[item], path)
            }
            _ => (format!("a list of {}", a.len()), format!("a list of {}", b.len())),
        }
    }

    /// A term without its operands.
    fn head(&self, term: TermId) -> String {
        match self.terms.term(term) {
            Term::Words(slot) => format!("bound word {slot}"),
            Term::Floats(slot) => format!("bound float {slot}"),
            Term::Param(id) => format!("@{}", self.graph.module.param_decl(*id).name),
            Term::Apply { what, params, .. } => {
                let mut text = match what {
                    What::Op(op) => match format!("{op:?}") {
                        attributes if attributes.contains('{') => {
                            let from = attributes.find('{').unwrap_or_default();
                            format!("{}{}", op.spelling(), &attributes[from..])
                        }
                        _ => op.spelling().to_owned(),
                    },
                    What::Cell(cell) => format!("@{}", self.graph.module.cell_decl(*cell).name),
                };
                for (place, param) in params.iter().enumerate() {
                    let bracket = if place == 0 { "[" } else { ", " };
                    let _ = write!(text, "{bracket}@{}", self.graph.module.param_decl(*param).name);
                }
                text + if params.is_empty() { "" } else { "]" }
            }
        }
    }

    fn term(&self, term: TermId, depth: u32) -> String {
        let mut text = self.head(term);
        if let Term::Apply { args, .. } = self.terms.term(term) {
            let spell = |arg: &Arg| match arg {
                _ if depth == 0 => "..".to_owned(),
                Arg::View(view) => self.view(*view, depth - 1),
                Arg::List(items) => {
                    let items: Vec<String> = items.iter().map(|&item| self.view(item, depth - 1)).collect();
                    format!("list({})", items.join(", "))
                }
            };
            let args: Vec<String> = args.iter().map(spell).collect();
            let _ = write!(text, "({})", args.join(", "));
        }
        text
    }

    fn view(&self, view: ViewId, depth: u32) -> String {
        let pieces = self.terms.view(view).iter().take(6).map(|piece| match *piece {
            Piece::Fill { bits, len } => format!("{len} x {:?}", f32::from_bits(bits)),
            Piece::Part { term, result, start, len } => {
                let range = format!("{start}..{}", start + len);
                let result = if result == 0 { String::new() } else { format!(".{result}") };
                format!("{}{result}[{range}]", self.term(term, depth))
            }
        });
        let pieces: Vec<String> = pieces.collect();
        pieces.join(" | ")
    }
}

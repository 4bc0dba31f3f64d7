//! Removal of unused declarations of cells and parameters.
//!
//! Signatures, bodies and exports contain the ids of cells and parameters. The text form contains names
//! instead, so declarations are removed from the text, and the reader assigns new ids.

use autobatch_ir::graph::GraphData;
use std::collections::BTreeSet;

/// The graph without unused declarations; `None` if all declarations are used.
pub(super) fn without_unused(graph: &GraphData) -> Option<GraphData> {
    let text = graph.to_text();
    let (module, rest) = text.split_once("\ngraph\n")?;
    let mut used: BTreeSet<&str> = names(rest).collect();
    // Bodies call earlier cells only, so users of a declaration come after it.
    let mut remaining: Vec<&str> = Vec::new();
    for declaration in declarations(module).into_iter().rev() {
        let mut own = names(declaration);
        let keeps = match declaration.split(' ').next() {
            Some("cell") => own.next().is_some_and(|cell| used.contains(cell)),
            Some("param" | "table") => own.next().is_some_and(|param| used.contains(param)),
            // An export starts with its own name; the exported cell and parameters must be in use.
            Some("export") => own.by_ref().skip(1).all(|part| used.contains(part)),
            _ => true,
        };
        if keeps {
            used.extend(own);
            remaining.push(declaration);
        }
    }
    remaining.reverse();
    let smaller = format!("{}\ngraph\n{rest}", remaining.join("\n"));
    let graph = GraphData::from_text(&smaller).ok().filter(|_| smaller.len() < text.len())?;
    graph.verify().is_ok().then_some(graph)
}

/// The declarations of a module: a line each, or all lines of a cell.
fn declarations(module: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = module;
    while !rest.is_empty() {
        let end = match rest.starts_with("cell ") {
            true => rest.find("\n}").map(|at| at + 2),
            false => rest.find('\n'),
        };
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        pieces.push(piece);
        rest = after.strip_prefix('\n').unwrap_or(after);
    }
    pieces
}

/// The names after each `@`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('@')
        .skip(1)
        .map(|rest| rest.split([' ', ',', ':', '(', ')', '[', ']', '\n']).next().unwrap_or(rest))
}

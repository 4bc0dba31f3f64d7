//! Cells and parameters that a graph declares and does not use.
//!
//! Ids of cells and parameters stand in signatures, bodies and exports, so they are dropped from the
//! text, which names them, and the reader numbers the rest anew.

use autobatch_ir::graph::GraphData;
use std::collections::BTreeSet;

/// The graph without what it declares in vain; none if it uses everything.
pub(super) fn used(graph: &GraphData) -> Option<GraphData> {
    let text = graph.to_text();
    let (module, rest) = text.split_once("\ngraph\n")?;
    let mut wanted: BTreeSet<&str> = names(rest).collect();
    // A body calls earlier cells only.
    let mut kept: Vec<&str> = Vec::new();
    for declaration in declarations(module).into_iter().rev() {
        let mut own = names(declaration);
        let keeps = match declaration.split(' ').next() {
            Some("cell") => own.next().is_some_and(|cell| wanted.contains(cell)),
            Some("param" | "table") => own.next().is_some_and(|param| wanted.contains(param)),
            // The name that an export has stands first; what it exports must be wanted already.
            Some("export") => own.by_ref().skip(1).all(|part| wanted.contains(part)),
            _ => true,
        };
        if keeps {
            wanted.extend(own);
            kept.push(declaration);
        }
    }
    kept.reverse();
    let smaller = format!("{}\ngraph\n{rest}", kept.join("\n"));
    let graph = GraphData::from_text(&smaller).ok().filter(|_| smaller.len() < text.len())?;
    graph.verify().is_ok().then_some(graph)
}

/// The lines of a module, those of a cell in one piece.
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

/// The names behind every `@`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('@')
        .skip(1)
        .map(|rest| rest.split([' ', ',', ':', '(', ')', '[', ']', '\n']).next().unwrap_or(rest))
}

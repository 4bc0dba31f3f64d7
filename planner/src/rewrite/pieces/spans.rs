//! Moves: nodes whose results are ranges of their operands.

use autobatch_ir::graph::{Callee, GraphData, Op, Signature};

/// Elements `from..from + width` of a result are elements `at..at + width` of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) result: usize,
    pub(super) from: u32,
    pub(super) place: usize,
    pub(super) at: u32,
    pub(super) width: u32,
}

/// The spans of a move, in the order of the result elements. `None` for other signatures.
pub(super) fn spans(graph: &GraphData, signature: &Signature) -> Option<Vec<Span>> {
    let Callee::Op(op) = signature.callee else { return None };
    let width =
        |ids: &[autobatch_ir::id::TypeId], number: usize| graph.ty(ids[number]).shape.elements() as u32;
    let result = |number: usize| width(&signature.results, number);
    match op {
        Op::Concat { axis: 0 } | Op::Stack => {
            let mut from = 0;
            let span = |place: usize| {
                let width = width(&signature.operands, place);
                from += width;
                Span { result: 0, from: from - width, place, at: 0, width }
            };
            Some((0..signature.operands.len()).map(span).collect())
        }
        Op::Split { axis: 0, .. } => {
            let span = |number: usize| {
                let width = result(number);
                Span { result: number, from: 0, place: 0, at: number as u32 * width, width }
            };
            Some((0..signature.results.len()).map(span).collect())
        }
        Op::Slice { axis: 0, start, len } => {
            let at = start * (result(0) / len);
            Some(vec![Span { result: 0, from: 0, place: 0, at, width: result(0) }])
        }
        Op::Reshape(_) | Op::StopGradient | Op::ScaleGradient { .. } => {
            Some(vec![Span { result: 0, from: 0, place: 0, at: 0, width: result(0) }])
        }
        _ => None,
    }
}

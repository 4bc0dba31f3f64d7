//! Counts forms of ops that one kind covers: axes, element types, scalar operands.

use super::note;
use autobatch_ir::graph::{Arena, Callee, Op, Signature};
use autobatch_ir::{DType, GraphData, NodeId, Type};
use std::collections::BTreeSet;

pub(super) fn of_node(
    graph: &GraphData,
    arena: &Arena,
    id: NodeId,
    signature: &Signature,
    seen: &mut BTreeSet<&'static str>,
) {
    let Callee::Op(op) = signature.callee else { return };
    let types: Vec<Type> = signature.operands.iter().map(|&ty| graph.ty(ty)).collect();
    let Some(&first) = types.first() else { return };
    of_elements(op, &types, seen);
    of_axes(op, first, seen);
    of_products_and_rows(op, &types, seen);
    if op == Op::List {
        note(seen, first.element().shape.rank() == 0, "a list of scalars");
        note(seen, first.element().shape.rank() == 2, "a list of matrices");
    }
    let lists: Vec<_> = arena.operands(id).iter().filter_map(|operand| operand.as_value()).collect();
    let both = matches!(op, Op::Attend { .. } | Op::GraphAttend { .. } | Op::WeightedSum { .. }) && {
        let last = lists.len() - 1;
        lists[last] == lists[last - 1]
    };
    note(seen, both, "one list in two places of a node");
}

fn of_elements(op: Op, types: &[Type], seen: &mut BTreeSet<&'static str>) {
    let scalar = |place: usize| types[place].shape.rank() == 0;
    match op {
        Op::Binary(_) | Op::Compare(_) => {
            note(seen, scalar(0) != scalar(1), "an elementwise op of a scalar");
        }
        Op::Select => {
            note(seen, scalar(1) != scalar(2), "a select with a scalar branch");
            let scalars = scalar(0) && !(scalar(1) && scalar(2));
            note(seen, scalars, "a select under a scalar condition");
        }
        Op::Clamp { low, high } => {
            note(seen, low.get().is_infinite() || high.get().is_infinite(), "a clamp without an end");
        }
        _ => {}
    }
    note(
        seen,
        types[0].shape.rank() > 0 && types[0].shape.width() > 16,
        "a row of more than sixteen elements",
    );
}

fn of_axes(op: Op, ty: Type, seen: &mut BTreeSet<&'static str>) {
    let rank = ty.shape.rank();
    let words = ty.dtype != DType::F32;
    let middle = |axis: u8| axis > 0 && usize::from(axis) + 1 < rank;
    let outermost = |axis: u8| axis == 0 && rank > 1;
    match op {
        Op::Broadcast(to) => {
            let before = to.rank() - rank;
            let inner = (0..rank).any(|axis| {
                let outside: u32 = to.dims()[..before + axis].iter().product();
                outside > 1 && ty.shape.dims()[axis] < to.dims()[before + axis]
            });
            note(seen, inner, "a broadcast of an inner axis");
        }
        Op::Transpose(order) => {
            let moves = (0..rank).any(|axis| usize::from(order.0[axis]) != axis);
            note(seen, rank == 3 && moves, "a transpose of rank 3");
            note(seen, rank == 4 && moves, "a transpose of rank 4");
            note(seen, words && moves, "a transpose of words");
        }
        Op::Concat { axis } => {
            note(seen, middle(axis), "a concat along a middle axis");
            note(seen, outermost(axis), "a concat along the outermost of several axes");
            note(seen, words, "a concat of words");
        }
        Op::Split { axis, .. } => {
            note(seen, middle(axis), "a split along a middle axis");
            note(seen, outermost(axis), "a split along the outermost of several axes");
            note(seen, words, "a split of words");
        }
        Op::Slice { axis, .. } => {
            note(seen, middle(axis), "a slice along a middle axis");
            note(seen, outermost(axis), "a slice along the outermost of several axes");
            note(seen, words, "a slice of words");
        }
        Op::Stack => {
            note(seen, matches!(ty.dtype, DType::I32 | DType::U32), "a stack of integers");
            note(seen, ty.dtype == DType::Bool, "a stack of truth values");
        }
        Op::Pick => {
            note(seen, matches!(ty.dtype, DType::I32 | DType::U32), "a pick of integers");
            note(seen, ty.dtype == DType::Bool, "a pick of truth values");
        }
        _ => {}
    }
}

fn of_products_and_rows(op: Op, types: &[Type], seen: &mut BTreeSet<&'static str>) {
    let shape = types[0].shape;
    match op {
        Op::AffineRows { row, onto, .. } => {
            let parts = &types[usize::from(onto)..];
            note(seen, row > 0, "a stretch of a product behind the first row");
            note(seen, shape.rank() == 2, "a stretch of a product of rows");
            note(seen, parts.len() == 2, "a stretch of a product of two parts");
        }
        Op::Softmax | Op::LogSoftmax | Op::LogSumExp | Op::Norm | Op::ArgMax | Op::TopK { .. } => {
            note(seen, shape.rank() > 1 && shape.width() == 1, "rows of one element");
        }
        Op::LayerNorm { eps } => note(seen, eps.get() == 0.0, "a layer norm without eps"),
        Op::PickNegLogSoftmax | Op::Hinge { .. } => {
            note(seen, shape.rank() > 2, "labels of a block of rows");
        }
        _ => {}
    }
}

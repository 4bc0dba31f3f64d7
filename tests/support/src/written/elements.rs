//! Elementwise nodes. A scalar broadcasts to any shape, on either side.

use super::scope::{Node, Scope};
use autobatch_ir::graph::{Binary, Compare, Float, Unary};
use autobatch_ir::{DType, Op, Shape, Type};

pub(super) fn unary(scope: &mut Scope<'_>) -> Option<Node> {
    Some(Node::new(Op::Unary(scope.rng.pick(Unary::ALL)), vec![scope.float()?]))
}

/// Applies a function of one operand that has attributes or affects the gradient alone.
pub(super) fn with_attributes(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.float()?;
    let (a, b) = (scope.attribute(), scope.attribute());
    let op = match scope.below(5) {
        0 => Op::LeakyRelu { slope: Float::new(a) },
        1 => Op::Elu { alpha: Float::new(a) },
        2 => Op::ScaleGradient { by: Float::new(a) },
        3 => Op::StopGradient,
        _ => {
            let low = if scope.rng.chance(15) { f32::NEG_INFINITY } else { a.min(b) };
            let high = if scope.rng.chance(15) { f32::INFINITY } else { a.max(b) };
            Op::Clamp { low: Float::new(low), high: Float::new(high) }
        }
    };
    Some(Node::new(op, vec![x]))
}

/// Returns whether two shapes combine elementwise.
fn meet(a: Shape, b: Shape) -> bool {
    a == b || a.rank() == 0 || b.rank() == 0
}

/// Returns two numeric values that combine elementwise, sometimes one value twice.
fn two(scope: &mut Scope<'_>) -> Option<Vec<usize>> {
    let a = scope.plain(|ty| ty.dtype.is_number())?;
    if scope.rng.chance(10) {
        return Some(vec![a, a]);
    }
    let first = scope.ty(a);
    let b = scope.plain(|ty| ty.dtype == first.dtype && meet(ty.shape, first.shape))?;
    Some(if scope.rng.chance(50) { vec![a, b] } else { vec![b, a] })
}

pub(super) fn binary(scope: &mut Scope<'_>) -> Option<Node> {
    let operands = two(scope)?;
    Some(Node::new(Op::Binary(scope.rng.pick(Binary::ALL)), operands))
}

pub(super) fn compare(scope: &mut Scope<'_>) -> Option<Node> {
    let operands = two(scope)?;
    Some(Node::new(Op::Compare(scope.rng.pick(Compare::ALL)), operands))
}

pub(super) fn select(scope: &mut Scope<'_>) -> Option<Node> {
    let condition = scope.plain(|ty| ty.dtype == DType::Bool)?;
    let shape = scope.ty(condition).shape;
    let a = scope.plain(|ty| ty.dtype.is_number() && meet(ty.shape, shape))?;
    let first: Type = scope.ty(a);
    let b = scope.plain(|ty| ty.dtype == first.dtype && meet(ty.shape, first.shape))?;
    Some(Node::new(Op::Select, vec![condition, a, b]))
}

pub(super) fn cast(scope: &mut Scope<'_>) -> Option<Node> {
    let to = scope.rng.pick(&[DType::F32, DType::F32, DType::I32, DType::U32, DType::Bool]);
    Some(Node::new(Op::Cast(to), vec![scope.plain(|_| true)?]))
}

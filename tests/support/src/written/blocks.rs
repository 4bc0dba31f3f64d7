//! Nodes that move elements, reduce rows, and compute losses, along any axis and for any element type.

use super::scope::{Node, Scope};
use autobatch_ir::graph::{Float, Fold, Over, Permutation};
use autobatch_ir::{DType, Op, Shape, Type};

/// Returns a value of rank 1 or more, and one of its axes.
fn block(scope: &mut Scope<'_>) -> Option<(usize, usize)> {
    let x = scope.plain(|ty| ty.shape.rank() > 0)?;
    Some((x, scope.below(scope.ty(x).shape.rank())))
}

pub(super) fn broadcast(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.plain(|_| true)?;
    let own = scope.ty(x).shape;
    let new = scope.below(5 - own.rank());
    let mut dims: Vec<u32> = (0..new).map(|_| 1 + scope.rng.below(3)).collect();
    for &extent in own.dims() {
        dims.push(if extent == 1 { 1 + scope.rng.below(3) } else { extent });
    }
    Some(Node::new(Op::Broadcast(Shape::new(&dims).ok()?), vec![x]))
}

/// Concatenates one to four values, which may differ in their extents along the axis.
pub(super) fn concat(scope: &mut Scope<'_>) -> Option<Node> {
    let (x, axis) = block(scope)?;
    let first = scope.ty(x);
    let mut parts = vec![x];
    for _ in 0..scope.below(4) {
        parts.push(scope.plain(|ty| {
            let alike = ty.dtype == first.dtype && ty.shape.rank() == first.shape.rank();
            let mut dims = ty.shape.dims().iter().zip(first.shape.dims()).enumerate();
            alike && dims.all(|(place, (a, b))| place == axis || a == b)
        })?);
    }
    Some(Node::new(Op::Concat { axis: axis as u8 }, parts))
}

pub(super) fn split(scope: &mut Scope<'_>) -> Option<Node> {
    let (x, axis) = block(scope)?;
    let extent = scope.ty(x).shape.dims()[axis];
    let parts: Vec<u32> = (1..=extent).filter(|&parts| extent.is_multiple_of(parts)).collect();
    let parts = scope.rng.pick(&parts);
    Some(Node::new(Op::Split { axis: axis as u8, parts }, vec![x]))
}

pub(super) fn slice(scope: &mut Scope<'_>) -> Option<Node> {
    let (x, axis) = block(scope)?;
    let extent = scope.ty(x).shape.dims()[axis];
    let start = scope.rng.below(extent);
    let len = 1 + scope.rng.below(extent - start);
    Some(Node::new(Op::Slice { axis: axis as u8, start, len }, vec![x]))
}

/// Reshapes a value to factors of its number of elements, in any order.
pub(super) fn reshape(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.plain(|_| true)?;
    let elements = scope.ty(x).shape.elements() as u32;
    let mut dims = vec![elements];
    for _ in 0..scope.below(4) {
        let place = scope.below(dims.len());
        let whole = dims[place];
        let factors: Vec<u32> = (1..=whole).filter(|&factor| whole.is_multiple_of(factor)).collect();
        dims[place] = scope.rng.pick(&factors);
        let rest = whole / dims[place];
        dims.insert(scope.below(dims.len() + 1), rest);
    }
    if elements == 1 && scope.rng.chance(50) {
        dims.clear();
    }
    Some(Node::new(Op::Reshape(Shape::new(&dims).ok()?), vec![x]))
}

pub(super) fn transpose(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.plain(|ty| ty.shape.rank() > 1)?;
    let mut order = [0, 1, 2, 3];
    for last in (1..scope.ty(x).shape.rank()).rev() {
        order.swap(last, scope.below(last + 1));
    }
    Some(Node::new(Op::Transpose(Permutation(order)), vec![x]))
}

pub(super) fn pick(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.plain(|ty| ty.shape.rank() > 0)?;
    let index = scope.index(scope.ty(x).shape.dims()[0])?;
    Some(Node::new(Op::Pick, vec![x, index]))
}

pub(super) fn stack(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.plain(|ty| ty.shape.rank() < 4)?;
    let ty = scope.ty(x);
    let mut parts = vec![x];
    for _ in 0..scope.below(3) {
        parts.push(scope.plain(|other| other == ty)?);
    }
    Some(Node::new(Op::Stack, parts))
}

pub(super) fn reduce(scope: &mut Scope<'_>) -> Option<Node> {
    let (fold, over) = (scope.rng.pick(Fold::ALL), scope.rng.pick(Over::ALL));
    Some(Node::new(Op::Reduce { fold, over }, vec![scope.rows()?]))
}

pub(super) fn of_rows(scope: &mut Scope<'_>) -> Option<Node> {
    let x = scope.rows()?;
    let op = match scope.below(7) {
        0 => Op::ArgMax,
        1 => Op::TopK { k: 1 + scope.below(scope.ty(x).shape.width()) as u32 },
        2 => Op::Softmax,
        3 => Op::LogSoftmax,
        4 => Op::LogSumExp,
        5 => Op::Norm,
        // Rows of one element need an eps above 0.
        _ => {
            let from = if scope.ty(x).shape.width() == 1 { &[1e-5, 0.1][..] } else { &[1e-5, 0.1, 0.0] };
            Op::LayerNorm { eps: Float::new(scope.rng.pick(from)) }
        }
    };
    Some(Node::new(op, vec![x]))
}

/// Computes a loss of labels, of distributions, or of two values of any shape.
pub(super) fn loss(scope: &mut Scope<'_>) -> Option<Node> {
    let form = scope.below(7);
    if form == 6 {
        return super::products::label_loss(scope);
    }
    let ranked = |ty: Type| match form {
        0 | 1 => ty.shape.rank() > 0,
        2 | 3 => ty.shape.rank() == 1,
        _ => true,
    };
    let x = scope.plain(|ty| ty.dtype == DType::F32 && ranked(ty))?;
    let ty = scope.ty(x);
    if form < 2 {
        let labels = Type::new(DType::U32, ty.shape.without_last());
        let label = scope.any(|value| value.ty == labels && (value.most as usize) < ty.shape.width())?;
        let op = match form {
            0 => Op::PickNegLogSoftmax,
            _ => Op::Hinge { margin: Float::new(scope.attribute()) },
        };
        return Some(Node::new(op, vec![x, label]));
    }
    let op = [Op::CrossEntropy, Op::KlDiv, Op::Mse, Op::Bce][form - 2];
    Some(Node::new(op, vec![x, scope.plain(|other| other == ty)?]))
}

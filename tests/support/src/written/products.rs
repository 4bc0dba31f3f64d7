//! Nodes with parameters, and products of values.

use super::scope::{Node, Scope};
use autobatch_ir::{DType, Op, Shape, Type};

/// Returns one of the parameters, if there are any.
fn param(scope: &mut Scope<'_>) -> Option<usize> {
    if scope.params.is_empty() { None } else { Some(scope.below(scope.params.len())) }
}

/// Writes a full, transposed or partial product of vectors or rows with a weight.
pub(super) fn affine(scope: &mut Scope<'_>) -> Option<Node> {
    let weight = param(scope)?;
    let &[rows, columns] = scope.params[weight].ty.shape.dims() else { return None };
    let mut params = vec![weight];
    let (transposed, stretch) = [(false, false), (true, false), (false, true)][scope.below(3)];
    let (inputs, outputs) = if transposed { (columns, rows) } else { (rows, columns) };
    let biases: Vec<usize> =
        (0..scope.params.len()).filter(|&at| scope.params[at].ty.shape.dims() == [outputs]).collect();
    if !biases.is_empty() && scope.rng.chance(50) {
        params.push(scope.rng.pick(&biases));
    }
    let lead = if scope.rng.chance(50) { Some(1 + scope.rng.below(3)) } else { None };
    let width = if stretch { 1 + scope.rng.below(inputs) } else { inputs };
    let onto = stretch && params.len() == 1 && scope.rng.chance(60);
    let mut operands = Vec::new();
    if onto {
        let dims: Vec<u32> = lead.into_iter().chain([outputs]).collect();
        let chains = Type::new(DType::F32, Shape::new(&dims).ok()?);
        operands.push(scope.plain(|ty| ty == chains)?);
    }
    let mut left = width;
    while left > 0 {
        let fits = |ty: Type| match (lead, ty.shape.dims()) {
            (None, &[own]) => own <= left,
            (Some(lead), &[rows, own]) => rows == lead && own <= left,
            _ => false,
        };
        let part = scope.plain(|ty| ty.dtype == DType::F32 && fits(ty))?;
        left -= scope.ty(part).shape.width() as u32;
        operands.push(part);
    }
    let bias = params.len() == 2;
    let op = match stretch {
        true => Op::AffineRows { row: scope.rng.below(inputs - width + 1), bias, onto },
        false => Op::Affine { bias, transposed },
    };
    Some(Node { op, operands, params })
}

/// Writes a product of two values.
pub(super) fn of_values(scope: &mut Scope<'_>) -> Option<Node> {
    let floats = |ty: Type| ty.dtype == DType::F32;
    let a = scope.plain(|ty| floats(ty) && (1..=2).contains(&ty.shape.rank()))?;
    let shape = scope.ty(a).shape;
    if shape.rank() == 1 && scope.rng.chance(50) {
        let op = if scope.rng.chance(50) { Op::Dot } else { Op::Outer };
        let b =
            scope.plain(|ty| floats(ty) && ty.shape.rank() == 1 && (op == Op::Outer || ty.shape == shape))?;
        return Some(Node::new(op, vec![a, b]));
    }
    let b = scope.plain(|ty| {
        let ranked = (1..=2).contains(&ty.shape.rank()) && ty.shape.rank() + shape.rank() > 2;
        floats(ty) && ranked && ty.shape.dims()[0] as usize == shape.width()
    })?;
    Some(Node::new(Op::Matmul, vec![a, b]))
}

/// Writes a row of a parameter, a whole parameter, or a one-hot vector.
pub(super) fn rows(scope: &mut Scope<'_>) -> Option<Node> {
    match scope.below(4) {
        0 => {
            let width = 1 + scope.rng.below(4);
            Some(Node::new(Op::OneHot { width }, vec![scope.index(width)?]))
        }
        1 => Some(Node { op: Op::Param, operands: Vec::new(), params: vec![param(scope)?] }),
        _ => {
            let table = param(scope)?;
            let &[rows, _] = scope.params[table].ty.shape.dims() else { return None };
            if !scope.params[table].is_table {
                return None;
            }
            Some(Node { op: Op::Lookup, operands: vec![scope.index(rows)?], params: vec![table] })
        }
    }
}

/// Computes the loss of a label among the rows of a parameter.
pub(super) fn label_loss(scope: &mut Scope<'_>) -> Option<Node> {
    let rows = param(scope)?;
    let &[labels, width] = scope.params[rows].ty.shape.dims() else { return None };
    let x = scope.plain(|ty| ty.dtype == DType::F32 && ty.shape.dims() == [width])?;
    Some(Node { op: Op::LabelLoss, operands: vec![x, scope.index(labels)?], params: vec![rows] })
}

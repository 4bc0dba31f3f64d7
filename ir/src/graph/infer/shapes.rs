//! Result types of ops that only move elements.

use super::{InferError, Inferred, sized};
use crate::graph::op::Permutation;
use crate::types::{INDEX, Shape, Type};

pub(super) fn broadcast(shape: Shape, ty: Type) -> Inferred {
    let (from, to) = (ty.shape.dims(), shape.dims());
    let fits =
        from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(|(&f, &t)| f == t || f == 1);
    if !fits {
        return Err(InferError::new(format!("{ty} does not broadcast to the shape {shape}"))
            .help("counted from the innermost, each extent must be equal or 1"));
    }
    Ok(vec![ty.with_shape(shape)])
}

pub(super) fn extent(ty: Type, axis: u8) -> Result<u32, InferError> {
    ty.shape
        .dims()
        .get(axis as usize)
        .copied()
        .ok_or_else(|| InferError::new(format!("{ty} has no axis {axis}")))
}

pub(super) fn with_extent(ty: Type, axis: u8, extent: u32) -> Result<Type, InferError> {
    let mut dims = ty.shape.dims().to_vec();
    dims[axis as usize] = extent;
    sized(&dims).map(|shape| ty.with_shape(shape))
}

pub(super) fn concat(axis: u8, operands: &[Type]) -> Inferred {
    let first = operands[0];
    let mut total = 0u32;
    for (place, &ty) in operands.iter().enumerate() {
        let own = extent(ty, axis)?;
        if ty.dtype != first.dtype
            || ty.shape.rank() != first.shape.rank()
            || with_extent(first, axis, own)?.shape != ty.shape
        {
            return rejected!("operand {place} must be like {first} except along axis {axis}, found {ty}");
        }
        total = total.checked_add(own).ok_or_else(|| InferError::new("the result is too large"))?;
    }
    Ok(vec![with_extent(first, axis, total)?])
}

pub(super) fn split(axis: u8, parts: u32, ty: Type) -> Inferred {
    let whole = extent(ty, axis)?;
    if parts == 0 || !whole.is_multiple_of(parts) || parts > 1 << 16 {
        return rejected!("{whole} elements along axis {axis} do not split into {parts} equal parts");
    }
    Ok(vec![with_extent(ty, axis, whole / parts)?; parts as usize])
}

pub(super) fn slice(axis: u8, start: u32, len: u32, ty: Type) -> Inferred {
    let whole = extent(ty, axis)?;
    reject_if!(len == 0, "the range {start}..{start} is empty");
    if start.checked_add(len).is_none_or(|end| end > whole) {
        let end = u64::from(start) + u64::from(len);
        return rejected!("the range {start}..{end} exceeds axis {axis} of {ty}");
    }
    Ok(vec![with_extent(ty, axis, len)?])
}

pub(super) fn reshape(shape: Shape, ty: Type) -> Inferred {
    if shape.elements() != ty.shape.elements() {
        let (found, expected) = (ty.shape.elements(), shape.elements());
        return rejected!("{ty} has {found} elements, the shape {shape} has {expected}");
    }
    Ok(vec![ty.with_shape(shape)])
}

pub(super) fn transpose(permutation: Permutation, ty: Type) -> Inferred {
    let rank = ty.shape.rank();
    let mut seen = [false; Shape::MAX_RANK];
    let mut dims = Vec::with_capacity(rank);
    for (place, &axis) in permutation.0.iter().enumerate() {
        let axis = axis as usize;
        let own_place = if place < rank { axis < rank } else { axis == place };
        if !own_place || std::mem::replace(&mut seen[axis], true) {
            // Text may leave out trailing axes that stay in place, so the message leaves them out too.
            let stays = |(place, axis): (usize, &u8)| usize::from(*axis) == place;
            let written =
                permutation.0.iter().enumerate().rposition(|axis| !stays(axis)).map_or(0, |last| last + 1);
            let order = &permutation.0[..written.max(rank)];
            return rejected!("{order:?} is not an order of the axes of {ty}");
        }
        dims.extend(ty.shape.dims().get(axis));
    }
    sized(&dims).map(|shape| vec![ty.with_shape(shape)])
}

pub(super) fn pick(ty: Type, index: Type) -> Inferred {
    reject_if!(index != INDEX, "the index must be u32, found {index}");
    match ty.shape.dims() {
        [] => Err(InferError::new("a scalar has no elements to pick from")),
        [_, rest @ ..] => sized(rest).map(|shape| vec![ty.with_shape(shape)]),
    }
}

pub(super) fn stack(operands: &[Type]) -> Inferred {
    let first = operands[0];
    if let Some(place) = operands.iter().position(|ty| *ty != first) {
        let found = operands[place];
        return rejected!("operand {place} must be {first} like the first, found {found}");
    }
    let count = u32::try_from(operands.len()).map_err(|_| InferError::new("too many operands"))?;
    let dims: Vec<u32> = [count].into_iter().chain(first.shape.dims().iter().copied()).collect();
    sized(&dims).map(|shape| vec![first.with_shape(shape)])
}

//! Ops that move elements: each result element is a copy of one operand element.
//!
//! [`sources`] maps result elements to operand elements. The forward evaluation copies along this map and the reverse
//! adds gradients along it, so each op has a single definition.

use super::index::place_of;
use crate::reference::datum::Datum;
use crate::reference::error::{Checked, malformed};
use crate::reference::frame::Call;
use autobatch_ir::graph::Op;
use autobatch_ir::numeric::Real;
use autobatch_ir::types::{DType, Shape, Type};

/// The source of a result element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) operand: usize,
    pub(crate) element: usize,
}

/// The results of an op that moves elements.
pub(super) fn evaluate<T: Real>(op: &Op, call: &Call<'_, T>) -> Checked<Vec<Datum<T>>> {
    let sources = sources(op, call)?;
    let operands = if *op == Op::Pick { 1 } else { call.args.len() };
    if call.types[0].dtype == DType::F32 {
        let from = (0..operands).map(|operand| call.floats(operand)).collect::<Checked<Vec<_>>>()?;
        Ok(sources.iter().map(|result| Datum::floats(copy(result, |s| from[s.operand][s.element]))).collect())
    } else {
        let from = (0..operands).map(|operand| call.words(operand)).collect::<Checked<Vec<_>>>()?;
        Ok(sources.iter().map(|result| Datum::words(copy(result, |s| from[s.operand][s.element]))).collect())
    }
}

fn copy<N>(sources: &[Source], element: impl Fn(Source) -> N) -> Vec<N> {
    sources.iter().map(|&source| element(source)).collect()
}

/// The sources of the elements of every result.
pub(crate) fn sources<T: Real>(op: &Op, call: &Call<'_, T>) -> Checked<Vec<Vec<Source>>> {
    let from = call.types[0].shape;
    let elements = call.results[0].shape.elements();
    let first = |element: usize| Source { operand: 0, element };
    let one = match op {
        Op::Reshape(_) => (0..elements).map(first).collect(),
        Op::Broadcast(shape) => broadcast(from, *shape).into_iter().map(first).collect(),
        Op::Transpose(permutation) => {
            let strides = strides(from);
            let axes = permutation.0.iter().take(from.rank());
            let moved: Vec<usize> = axes.map(|&axis| strides[axis as usize]).collect();
            walk(call.results[0].shape, &moved).into_iter().map(first).collect()
        }
        Op::Pick => {
            let rows = from.dims().first().map_or(1, |&rows| rows as usize);
            let start = place_of(call, 1, 0, rows)? * elements;
            (start..start + elements).map(first).collect()
        }
        Op::Slice { axis, start, len } => {
            let (outer, extent, inner) = extents_around(call.types[0], *axis)?;
            block(outer, extent * inner, *start as usize * inner, *len as usize * inner)
                .into_iter()
                .map(first)
                .collect()
        }
        Op::Split { axis, parts } => {
            let (outer, extent, inner) = extents_around(call.types[0], *axis)?;
            let part = extent / *parts as usize * inner;
            let cut = |number| block(outer, extent * inner, number * part, part);
            let parts = (0..*parts as usize).map(|number| cut(number).into_iter().map(first).collect());
            return Ok(parts.collect());
        }
        Op::Concat { axis } => concat(call, *axis)?,
        Op::Stack => (0..call.args.len())
            .flat_map(|operand| (0..from.elements()).map(move |element| Source { operand, element }))
            .collect(),
        _ => return malformed(format!("{} does not move elements", op.spelling())),
    };
    Ok(vec![one])
}

/// The number of blocks outside an axis, its extent, and the number of elements inside it.
fn extents_around(ty: Type, axis: u8) -> Checked<(usize, usize, usize)> {
    let dims = ty.shape.dims();
    let axis = axis as usize;
    let Some(&extent) = dims.get(axis) else { return malformed(format!("{ty} has no axis {axis}")) };
    let size = |dims: &[u32]| dims.iter().map(|&extent| extent as usize).product::<usize>();
    Ok((size(&dims[..axis]), extent as usize, size(&dims[axis + 1..])))
}

/// The elements `start..start + len` of each of `outer` blocks of `size` elements.
fn block(outer: usize, size: usize, start: usize, len: usize) -> Vec<usize> {
    (0..outer).flat_map(|block| (0..len).map(move |i| block * size + start + i)).collect()
}

fn concat<T>(call: &Call<'_, T>, axis: u8) -> Checked<Vec<Source>> {
    let cuts = call.types.iter().map(|&ty| extents_around(ty, axis)).collect::<Checked<Vec<_>>>()?;
    let outer = cuts.first().map_or(0, |cut| cut.0);
    let mut sources = Vec::new();
    for block in 0..outer {
        for (operand, &(_, extent, inner)) in cuts.iter().enumerate() {
            let size = extent * inner;
            sources.extend((0..size).map(|i| Source { operand, element: block * size + i }));
        }
    }
    Ok(sources)
}

fn strides(shape: Shape) -> [usize; Shape::MAX_RANK] {
    let mut strides = [0; Shape::MAX_RANK];
    let mut stride = 1;
    for (axis, &extent) in shape.dims().iter().enumerate().rev() {
        strides[axis] = stride;
        stride *= extent as usize;
    }
    strides
}

/// The operand element of each result element of a broadcast: repeated axes have stride 0.
fn broadcast(from: Shape, to: Shape) -> Vec<usize> {
    let new_axes = to.rank().saturating_sub(from.rank());
    let own = strides(from);
    let stride = |axis: usize| match axis.checked_sub(new_axes) {
        Some(axis) if from.dims()[axis] > 1 => own[axis],
        _ => 0,
    };
    walk(to, &(0..to.rank()).map(stride).collect::<Vec<_>>())
}

/// The positions visited in row-major order of a shape with these strides.
fn walk(shape: Shape, strides: &[usize]) -> Vec<usize> {
    let mut positions = vec![0];
    for (&extent, &stride) in shape.dims().iter().zip(strides) {
        positions = positions
            .iter()
            .flat_map(|&position| (0..extent as usize).map(move |i| position + i * stride))
            .collect();
    }
    positions
}

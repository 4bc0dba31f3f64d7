//! Extents as torch counts them, and the same extents without leading ones, as the engine stores them.
//!
//! A tensor of one instance often begins with extents of 1. They change no element, so a value of the engine leaves them out:
//! `(1, 8)` and `(8,)` are both `[8]`. What adds or drops leading ones is a view.

use super::{Fail, Made};
use autobatch::ir::Shape;
use smallvec::SmallVec;

/// The extents of a tensor.
pub(super) type Dims = SmallVec<[u32; 5]>;

/// The number of leading extents of 1.
pub(super) fn leading_ones(dims: &[u32]) -> usize {
    dims.iter().take_while(|&&extent| extent == 1).count()
}

/// The extents without the leading ones.
pub(super) fn core(dims: &[u32]) -> &[u32] {
    &dims[leading_ones(dims)..]
}

/// The shape of the engine's value for a tensor of these extents.
pub(super) fn shape_of(dims: &[u32]) -> Made<Shape> {
    if dims.contains(&0) {
        return Err(Fail::refused(format!("{} has no elements", written(dims))));
    }
    Shape::new(core(dims)).map_err(|error| Fail::refused(format!("the shape {}: {error}", written(dims))))
}

/// The extents as torch prints them.
pub(super) fn written(dims: &[u32]) -> String {
    let extents: Vec<String> = dims.iter().map(u32::to_string).collect();
    format!("({}{})", extents.join(", "), if dims.len() == 1 { "," } else { "" })
}

/// The number of elements.
pub(super) fn elements(dims: &[u32]) -> usize {
    dims.iter().map(|&extent| extent as usize).product()
}

/// The axis that `dim` names in a tensor of this rank. Torch counts the axes of a scalar as one.
pub(super) fn axis(dim: i64, rank: usize) -> Made<usize> {
    let axes = rank.max(1) as i64;
    let axis = if dim < 0 { dim + axes } else { dim };
    if (0..axes).contains(&axis) {
        return Ok(axis as usize);
    }
    Err(Fail::refused(format!("axis {dim} of a tensor of rank {rank}")))
}

/// The extents of an elementwise result.
pub(super) fn broadcast(a: &[u32], b: &[u32]) -> Made<Dims> {
    let rank = a.len().max(b.len());
    let extent = |dims: &[u32], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |own| dims[own]);
    (0..rank)
        .map(|axis| match (extent(a, axis), extent(b, axis)) {
            (x, y) if x == y || y == 1 => Ok(x),
            (1, y) => Ok(y),
            _ => Err(Fail::refused(format!("the shapes {} and {} do not broadcast", written(a), written(b)))),
        })
        .collect()
}

/// The extents that `sizes` asks for, where one may be -1.
pub(super) fn resolved(sizes: &[i64], elements: usize) -> Made<Dims> {
    let known: i64 = sizes.iter().filter(|&&size| size >= 0).product();
    let wrong = || Fail::refused(format!("{elements} elements do not fit the shape {sizes:?}"));
    let mut dims = Dims::new();
    for &size in sizes {
        let extent = match size {
            -1 if known > 0 => elements as i64 / known,
            size => size,
        };
        dims.push(u32::try_from(extent).map_err(|_| wrong())?);
    }
    if self::elements(&dims) != elements || sizes.iter().filter(|&&size| size == -1).count() > 1 {
        return Err(wrong());
    }
    Ok(dims)
}

/// The extents with one of them replaced.
pub(super) fn with_extent(dims: &[u32], axis: usize, extent: u32) -> Dims {
    let mut dims = Dims::from_slice(dims);
    if let Some(own) = dims.get_mut(axis) {
        *own = extent;
    }
    dims
}

/// The extents without some of them, or with ones in their place.
pub(super) fn without(dims: &[u32], axes: &[usize], keep: bool) -> Dims {
    let own = dims.iter().enumerate();
    own.filter_map(|(axis, &extent)| match axes.contains(&axis) {
        false => Some(extent),
        true => keep.then_some(1),
    })
    .collect()
}

//! Actions that move elements and compute nothing, for any element type and axis.

use super::Results;
use crate::random::act::Act;
use crate::random::recipe::Step;
use crate::random::stage::{Bounded, ELEMENTS, Stage};
use autobatch_ir::{Shape, Type, Value};

pub(super) fn emit<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    let g = stage.g;
    let size = step.size as usize;
    match step.act {
        Act::Broadcast => one(some(stage, step), |x| broadcast(x, size)),
        Act::Concat => {
            let x = stage.rows(step, 0);
            let y = stage.like(step, x);
            let parts = if x.0.shape().elements() * 3 <= ELEMENTS { 2 + size % 2 } else { 1 };
            vec![(g.concat(&[x.0, y.0, x.0][..parts]), x.1.max(y.1))]
        }
        Act::ConcatAxis => vec![concat_axis(stage, step)],
        Act::Split => {
            let (x, bound) = stage.rows(step, 0);
            let even = x.shape().width().is_multiple_of(2);
            let even = if even { x } else { g.concat([x, x]) };
            even.split::<2>().map(|part| (part, bound)).to_vec()
        }
        Act::Chunks => {
            let (x, bound) = stage.block(step, 0);
            let (axis, extent) = axis(x, size);
            let parts: Vec<usize> =
                (1..=extent).rev().filter(|&parts| extent.is_multiple_of(parts)).collect();
            let parts = parts[size / 4 % parts.len()];
            x.chunks(axis, parts).into_iter().map(|part| (part, bound)).collect()
        }
        Act::Slice => one(stage.rows(step, 0), |x| {
            let width = x.shape().width();
            let start = size % width;
            x.slice(start..start + 1 + (size / 16) % (width - start))
        }),
        Act::SliceAxis => one(stage.block(step, 0), |x| {
            let (axis, extent) = axis(x, size);
            let start = size / 4 % extent;
            x.slice_axis(axis, start..start + 1 + size / 64 % (extent - start))
        }),
        Act::Reshape => one(some(stage, step), |x| reshape(x, size)),
        Act::Transpose => one(stage.block(step, 0), |x| transpose(x, size)),
        Act::Pick => {
            let (x, bound) = stage.block(step, 0);
            let index = stage.index(step, x.shape().dims()[0] as usize);
            vec![(x.pick(index), bound)]
        }
        Act::Stack => {
            let x = some(stage, step);
            if x.0.shape().rank() == 4 || x.0.shape().elements() * 3 > ELEMENTS {
                return vec![(x.0.reshape([x.0.shape().elements()]), x.1)];
            }
            let y = stage.like(step, x);
            vec![(g.stack(&[x.0, y.0, x.0][..1 + size % 3]), x.1.max(y.1))]
        }
        _ => unreachable!("not an action on shapes"),
    }
}

fn one<'g>(x: Bounded<'g>, f: impl FnOnce(Value<'g>) -> Value<'g>) -> Results<'g> {
    vec![(f(x.0), x.1)]
}

/// Returns a value of any rank and element type.
fn some<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    if step.size / 65_536 % 3 == 2 { stage.float(step, 0) } else { stage.block(step, 0) }
}

/// Returns an axis and its extent.
fn axis(x: Value<'_>, size: usize) -> (usize, usize) {
    let axis = size % x.shape().rank();
    (axis, x.shape().dims()[axis] as usize)
}

/// Concatenates one to three values, which may differ in their extents along the axis.
fn concat_axis<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Bounded<'g> {
    let first = stage.block(step, 0);
    let (axis, _) = axis(first.0, step.size as usize);
    let ty = first.0.ty();
    let others = |shape: Shape| -> Vec<u32> {
        let dims = shape.dims().iter().enumerate();
        dims.filter(|&(place, _)| place != axis).map(|(_, &extent)| extent).collect()
    };
    let fits = |other: Type| {
        let alike = other.dtype == ty.dtype && other.shape.rank() == ty.shape.rank();
        alike && others(other.shape) == others(ty.shape) && other.shape.elements() * 3 <= ELEMENTS
    };
    let (mut parts, mut bound) = (vec![first.0], first.1);
    for slot in 1..=step.size / 4 % 3 {
        if let Some(next) = stage.find(step, slot, fits) {
            parts.push(next.0);
            bound = bound.max(next.1);
        }
    }
    (stage.g.concat_axis(axis, parts), bound)
}

/// Broadcasts axes of extent 1 and adds an outer axis. Adds an axis of extent 1 if there is none.
fn broadcast(x: Value<'_>, size: usize) -> Value<'_> {
    if x.shape().elements() * 27 > ELEMENTS {
        return x.broadcast(x.shape());
    }
    let mut dims: Vec<usize> = x.shape().dims().iter().map(|&extent| extent as usize).collect();
    let repeat = 2 + size % 2;
    let mut x = x;
    if !dims.contains(&1) && dims.len() < 4 && (size / 2).is_multiple_of(2) {
        dims.insert(size / 4 % (dims.len() + 1), 1);
        x = x.reshape(dims.as_slice());
    }
    // Broadcasts at most two such axes besides the outer axis.
    let singles: Vec<usize> = (0..dims.len()).filter(|&axis| dims[axis] == 1).collect();
    for (number, &axis) in singles.iter().rev().take(2).enumerate() {
        dims[axis] = if size >> (5 + number) & 1 == 0 { repeat } else { 1 };
    }
    if dims.len() < 4 && (size / 16).is_multiple_of(2) {
        dims.insert(0, repeat);
    }
    x.broadcast(dims.as_slice())
}

fn reshape(x: Value<'_>, size: usize) -> Value<'_> {
    let n = x.shape().elements();
    let half = if n.is_multiple_of(2) { 2 } else { 1 };
    match size % 7 {
        0 if n == 1 => x.reshape([]),
        0 | 1 => x.reshape([n]),
        2 => x.reshape([n, 1]),
        3 => x.reshape([half, n / half]),
        4 => x.reshape([half, 1, n / half]),
        5 => x.reshape([1, n / half, half]),
        _ => x.reshape([1, half, n / half, 1]),
    }
}

/// Permutes the axes.
fn transpose(x: Value<'_>, size: usize) -> Value<'_> {
    let rank = x.shape().rank();
    let mut left: Vec<usize> = (0..rank).collect();
    let mut number = size;
    let mut next = || {
        // The last remaining axis comes first, so the identity is the last of all permutations.
        let place = left.len() - 1 - number % left.len();
        number /= left.len();
        left.remove(place)
    };
    match rank {
        1 => x.transpose([next()]),
        2 => x.transpose([(); 2].map(|()| next())),
        3 => x.transpose([(); 3].map(|()| next())),
        _ => x.transpose([(); 4].map(|()| next())),
    }
}

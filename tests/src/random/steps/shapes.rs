//! Acts that move elements and compute nothing.

use super::{Results, is_index};
use crate::random::act::Act;
use crate::random::recipe::Step;
use crate::random::stage::{Bounded, ELEMENTS, Stage};
use autobatch_ir::Value;

pub(super) fn emit<'g>(stage: &mut Stage<'g, '_>, step: &Step) -> Results<'g> {
    let g = stage.g;
    let size = step.size as usize;
    match step.act {
        Act::Broadcast => one(stage.float(step, 0), |x| broadcast(x, size)),
        Act::Concat => {
            let x = stage.rows(step, 0);
            let y = stage.like(step, x);
            let parts = if x.0.shape().elements() * 3 <= ELEMENTS { 2 + size % 2 } else { 1 };
            vec![(g.concat(&[x.0, y.0, x.0][..parts]), x.1.max(y.1))]
        }
        Act::ConcatAxis => {
            let (x, y) = (stage.matrix(step, 0), stage.matrix(step, 1));
            vec![(g.concat_axis(0, [x.0, y.0]), x.1.max(y.1))]
        }
        Act::Split => {
            let (x, bound) = stage.rows(step, 0);
            let even = x.shape().width().is_multiple_of(2);
            let even = if even { x } else { g.concat([x, x]) };
            even.split::<2>().map(|part| (part, bound)).to_vec()
        }
        Act::Chunks => {
            let (x, bound) = stage.matrix(step, 0);
            x.chunks(0, x.shape().dims()[0] as usize).into_iter().map(|row| (row, bound)).collect()
        }
        Act::Slice => one(stage.rows(step, 0), |x| {
            let width = x.shape().width();
            let start = size % width;
            x.slice(start..start + 1 + (size / 16) % (width - start))
        }),
        Act::SliceAxis => one(stage.rows(step, 0), |x| {
            let extent = x.shape().dims()[0] as usize;
            let start = size % extent;
            x.slice_axis(0, start..extent)
        }),
        Act::Reshape => one(stage.float(step, 0), |x| reshape(x, size)),
        Act::Transpose => one(stage.rows(step, 0), transpose),
        Act::Pick => {
            let (x, bound) = stage.rows(step, 0);
            let index = stage.index(step, x.shape().dims()[0] as usize);
            vec![(x.pick(index), bound)]
        }
        Act::Stack => {
            let fits = |ty: autobatch_ir::Type| !is_index(ty) && ty.shape.elements() * 3 <= ELEMENTS;
            let x = stage.find(step, 0, |ty| fits(ty) && ty.shape.rank() < 4);
            let x = x.unwrap_or_else(|| stage.vector(step, 0));
            let y = stage.like(step, x);
            vec![(g.stack(&[x.0, y.0, x.0][..1 + size % 3]), x.1.max(y.1))]
        }
        _ => unreachable!("not an act on shapes"),
    }
}

fn one<'g>(x: Bounded<'g>, f: impl FnOnce(Value<'g>) -> Value<'g>) -> Results<'g> {
    vec![(f(x.0), x.1)]
}

/// A new outer axis, and an axis of extent 1 repeated where there is one.
fn broadcast(x: Value<'_>, size: usize) -> Value<'_> {
    let mut dims: Vec<usize> = x.shape().dims().iter().map(|&extent| extent as usize).collect();
    let repeat = 2 + size % 2;
    if x.shape().elements() * 9 > ELEMENTS {
        return x.broadcast(dims.as_slice());
    }
    if let Some(single) = dims.iter_mut().find(|extent| **extent == 1) {
        *single = repeat;
    }
    if dims.len() < 4 {
        dims.insert(0, repeat);
    }
    x.broadcast(dims.as_slice())
}

fn reshape(x: Value<'_>, size: usize) -> Value<'_> {
    let n = x.shape().elements();
    let half = if n.is_multiple_of(2) { 2 } else { 1 };
    match size % 6 {
        0 if n == 1 => x.reshape([]),
        0 | 1 => x.reshape([n]),
        2 => x.reshape([n, 1]),
        3 => x.reshape([half, n / half]),
        4 => x.reshape([half, 1, n / half]),
        _ => x.reshape([1, half, n / half, 1]),
    }
}

fn transpose(x: Value<'_>) -> Value<'_> {
    match x.shape().rank() {
        2 => x.t(),
        3 => x.transpose([2, 0, 1]),
        4 => x.transpose([3, 1, 0, 2]),
        _ => x.transpose([0]),
    }
}

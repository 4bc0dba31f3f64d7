//! Tensors of one number, in the shape or for the use of a recorded one.

use super::{Op, one};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, shape_of};
use crate::lazy::tensor::Tensor;
use crate::lazy::{Made, Outcome, Recording};
use autobatch::ir::types::DType;

const LIKE: &[&str] = &["input", "dtype", "layout", "device", "memory_format"];
const NEW: &[&str] = &["input", "*size", "dtype", "device", "layout"];

pub(super) const OPS: &[Op] = &[
    Op::new(&["zeros_like"], LIKE, |r, call| like(r, call, 0.0)).not_of_params(),
    Op::new(&["ones_like"], LIKE, |r, call| like(r, call, 1.0)).not_of_params(),
    Op::new(&["full_like"], &["input", "fill_value", "dtype", "device"], |r, call| {
        let number = call.number(1, 0.0)? as f32;
        like(r, call, number)
    })
    .not_of_params(),
    Op::new(&["new_zeros"], NEW, |r, call| new(r, call, 0.0)).not_of_params(),
    Op::new(&["new_ones"], NEW, |r, call| new(r, call, 1.0)).not_of_params(),
    Op::new(&["new_full"], &["input", "size", "fill_value", "dtype", "device"], |r, call| {
        let (sizes, number) = (call.ints(1)?.unwrap_or_default(), call.number(2, 0.0)? as f32);
        of_sizes(r, call, &sizes, number)
    })
    .not_of_params(),
];

/// Ops that replace all elements of their first argument.
pub(super) const REPLACING: &[Op] = &[
    Op::new(&["zero_"], &["input"], |r, call| replaced(r, call, 0.0)).changing(),
    Op::new(&["fill_"], &["input", "value"], |r, call| {
        let number = call.number(1, 0.0)? as f32;
        replaced(r, call, number)
    })
    .changing(),
    Op::new(&["copy_"], &["input", "src", "non_blocking"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let from = r.tensor(&call.need(1)?)?;
        let from = r.cast(&from, x.kind)?;
        let made = r.expanded(&from, x.dims)?;
        // Torch goes on to record the gradient of what it replaces, which is zero.
        one(Tensor { grad: r.grad && r.enabled, ..made })
    })
    .changing(),
];

/// The first argument with a number in place of each element. Torch goes on to record its gradient, which is zero.
fn replaced(r: &mut Recording<'_, '_>, call: &Call<'_, '_>, number: f32) -> Made<Outcome> {
    let x = r.float_tensor(&call.need(0)?)?;
    one(r.map(&x, |x| x.graph().fill(x.shape(), number))?)
}

fn like(r: &mut Recording<'_, '_>, call: &Call<'_, '_>, number: f32) -> Made<Outcome> {
    let x = r.tensor(&call.need(0)?)?;
    let x = r.cast(&x, crate::lazy::tensor::Kind::Float)?;
    r.grad = false;
    one(r.map(&x, |x| match x.ty().dtype {
        DType::F32 => x.graph().fill(x.shape(), number),
        _ => x,
    })?)
}

fn new(r: &mut Recording<'_, '_>, call: &Call<'_, '_>, number: f32) -> Made<Outcome> {
    let sizes = call.ints_from(1)?;
    of_sizes(r, call, &sizes, number)
}

fn of_sizes(r: &mut Recording<'_, '_>, call: &Call<'_, '_>, sizes: &[i64], number: f32) -> Made<Outcome> {
    r.tensor(&call.need(0)?)?;
    r.grad = false;
    let dims: Dims = sizes.iter().map(|&size| u32::try_from(size).unwrap_or(0)).collect();
    let shape = shape_of(&dims)?;
    one(r.made(r.graph.fill(shape, number), dims)?)
}

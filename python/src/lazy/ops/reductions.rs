//! Sums, means, maxima and normalisations along axes.

use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, axis, broadcast, elements, leading_ones, shape_of, with_extent, without};
use crate::lazy::tensor::{Form, Kind, Operand, Tensor, shaped};
use crate::lazy::{Made, Outcome, Recording};
use autobatch::ir::graph::Value;
use pyo3::prelude::*;
use smallvec::SmallVec;

/// The number that a reduction computes of the elements along an axis.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fold {
    Sum,
    Mean,
    Max,
    Min,
}

pub(super) const OPS: &[Op] = &[
    Op::new(&["sum"], &["input", "dim", "keepdim", "dtype"], |r, call| r.reduction(call, Fold::Sum)).counts(),
    Op::new(&["mean"], &["input", "dim", "keepdim", "dtype"], |r, call| r.reduction(call, Fold::Mean)),
    Op::new(&["amax"], &["input", "dim", "keepdim"], |r, call| r.reduction(call, Fold::Max)),
    Op::new(&["amin"], &["input", "dim", "keepdim"], |r, call| r.reduction(call, Fold::Min)),
    Op::new(&["max"], &["input", "dim", "keepdim"], |r, call| r.extreme(call, Fold::Max)),
    Op::new(&["min"], &["input", "dim", "keepdim"], |r, call| r.extreme(call, Fold::Min)),
    Op::new(&["argmax"], &["input", "dim", "keepdim"], |r, call| r.place(call, Fold::Max)).not_of_params(),
    Op::new(&["argmin"], &["input", "dim", "keepdim"], |r, call| r.place(call, Fold::Min)).not_of_params(),
    Op::new(&["logsumexp"], &["input", "dim", "keepdim"], |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let [at] = r.axes(call, &x)?[..] else { return refuse("logsumexp over several axes") };
        let keep = call.flag(2, false)?;
        one(r.along(&x, at, keep, &|x| x.logsumexp())?)
    }),
    Op::new(&["softmax"], &["input", "dim", "dtype"], |r, call| r.normalised(call, |x| x.softmax())),
    Op::new(&["log_softmax"], &["input", "dim", "dtype"], |r, call| r.normalised(call, |x| x.log_softmax())),
    Op::new(&["softmin"], &["input", "dim", "dtype"], |r, call| r.normalised(call, |x| (-x).softmax())),
    Op::new(&["norm"], &["input", "p", "dim", "keepdim", "dtype"], norm),
    Op::new(&["linalg_vector_norm", "vector_norm"], &["x", "ord", "dim", "keepdim", "dtype"], norm),
    Op::new(&["prod"], &["input", "dim", "keepdim", "dtype"], |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let (axes, keep) = (r.axes(call, &x)?, call.flag(2, false)?);
        let mut made = x;
        for &at in axes.iter().rev() {
            let count = made.dims.get(at).copied().unwrap_or(1);
            let mut product = r.range(&made, at, 0, 1)?;
            for number in 1..count {
                let part = r.range(&made, at, number, 1)?;
                product = r.pair(Operand::Tensor(product), Operand::Tensor(part), |a, b| a * b)?;
            }
            let dims = without(&made.dims, &[at], keep);
            made = r.reshaped(&product, dims)?;
        }
        one(made)
    })
    .counts(),
    Op::new(&["any"], &["input", "dim", "keepdim"], |r, call| r.truths(call, Fold::Max)).not_of_params(),
    Op::new(&["all"], &["input", "dim", "keepdim"], |r, call| r.truths(call, Fold::Min)).not_of_params(),
    Op::new(&["var"], &["input", "dim", "unbiased", "keepdim", "correction"], |r, call| {
        one(variance(r, call)?)
    }),
    Op::new(&["std"], &["input", "dim", "unbiased", "keepdim", "correction"], |r, call| {
        let made = variance(r, call)?;
        one(r.map(&made, root)?)
    }),
    Op::new(&["layer_norm"], &["input", "normalized_shape", "weight", "bias", "eps"], layer_norm),
    Op::new(&["rms_norm"], &["input", "normalized_shape", "weight", "eps"], |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let eps = call.number(3, f64::from(f32::EPSILON))? as f32;
        let (flat, width) = flattened(r, &x, &call.ints(1)?.unwrap_or_default())?;
        let squares = r.map(&flat, |x| x.square())?;
        let means = r.fold(&squares, flat.rank() - 1, true, Fold::Mean)?;
        let scales = r.map(&means, |x| (x + eps).rsqrt())?;
        let made = r.pair(Operand::Tensor(flat), Operand::Tensor(scales), |x, scale| x * scale)?;
        let made = r.reshaped(&made, x.dims.clone())?;
        debug_assert!(width > 0);
        scaled(r, made, call.get(2)?, None)
    }),
    Op::new(&["normalize"], &["input", "p", "dim", "eps"], |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let (at, eps) = (axis(call.int(2)?.unwrap_or(1), x.rank())?, call.number(3, 1e-12)? as f32);
        if call.number(1, 2.0)? != 2.0 {
            return refuse("another norm than the Euclidean one");
        }
        let length = r.along(&x, at, true, &|x| x.norm())?;
        let length = r.map(&length, |x| x.clamp(eps, f32::INFINITY))?;
        one(r.pair(Operand::Tensor(x), Operand::Tensor(length), |x, length| x / length)?)
    }),
    Op::new(&["cosine_similarity"], &["x1", "x2", "dim", "eps"], |r, call| {
        let (a, b) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
        let rank = a.rank().max(b.rank());
        let (at, eps) = (axis(call.int(2)?.unwrap_or(1), rank)?, call.number(3, 1e-8)? as f32);
        let (a, b) = (r.of_rank(&a, rank)?, r.of_rank(&b, rank)?);
        let dims = broadcast(&a.dims, &b.dims)?;
        let Some(&extent) = dims.get(at) else { return refuse("an axis of a scalar") };
        // Only the axis of the vectors must be as long as in the other tensor.
        let a = r.expanded(&a, with_extent(&a.dims, at, extent))?;
        let b = r.expanded(&b, with_extent(&b.dims, at, extent))?;
        let length = |r: &Recording<'_, '_>, x: &Tensor| {
            let length = r.along(x, at, false, &|x| x.norm())?;
            r.map(&length, |x| x.clamp(eps, f32::INFINITY))
        };
        let lengths = [length(r, &a)?, length(r, &b)?].map(Operand::Tensor);
        let product = r.pair(Operand::Tensor(a), Operand::Tensor(b), |a, b| a * b)?;
        let product = r.fold(&product, at, false, Fold::Sum)?;
        let [a, b] = lengths;
        let lengths = r.pair(a, b, |a, b| a * b)?;
        one(r.pair(Operand::Tensor(product), Operand::Tensor(lengths), |x, length| x / length)?)
    }),
    Op::new(&["cumsum"], &["input", "dim", "dtype"], |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(0), x.rank())?;
        let count = x.dims.get(at).copied().unwrap_or(1);
        let mut parts: Vec<Tensor> = Vec::new();
        for number in 0..count {
            let part = r.range(&x, at, number, 1)?;
            let part = match parts.last() {
                None => part,
                Some(sum) => r.pair(Operand::Tensor(sum.clone()), Operand::Tensor(part), |a, b| a + b)?,
            };
            parts.push(part);
        }
        one(if x.rank() == 0 { x } else { r.joined(&parts, at)? })
    })
    .counts(),
];

fn norm(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let x = r.float_tensor(&call.need(0)?)?;
    let order = match call.get(1)? {
        None => 2.0,
        Some(order) if order.extract::<String>().is_ok_and(|order| order == "fro") => 2.0,
        Some(_) => call.number(1, 2.0)?,
    };
    let keep = call.flag(3, false)?;
    let axes = match call.ints(2)? {
        None => (0..x.rank()).collect(),
        Some(dims) => dims.iter().map(|&dim| axis(dim, x.rank())).collect::<Made<SmallVec<[usize; 5]>>>()?,
    };
    if order == 1.0 {
        let sizes = r.map(&x, |x| x.abs())?;
        return one(r.summed(&sizes, &axes, keep)?);
    }
    if order != 2.0 {
        return refuse(format!("the norm of order {order}"));
    }
    if let [at] = axes[..] {
        return one(r.along(&x, at, keep, &|x| x.norm())?);
    }
    let squares = r.map(&x, |x| x.square())?;
    let sum = r.summed(&squares, &axes, keep)?;
    one(r.map(&sum, root)?)
}

/// The square root, whose derivative at zero is zero, as torch has it for norms and deviations.
fn root(x: Value<'_>) -> Value<'_> {
    let (one, positive) = (x.graph().fill(x.shape(), 1.0), x.greater(0.0));
    positive.select(positive.select(x, one).sqrt(), x * 0.0)
}

fn variance(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Tensor> {
    let x = r.float_tensor(&call.need(0)?)?;
    let unbiased = match call.get(1)? {
        // `var(False)` and `var(dim=0, unbiased=False)`.
        Some(flag) if flag.is_instance_of::<pyo3::types::PyBool>() => {
            return refuse("var(unbiased); name the axes");
        }
        _ => call.flag(2, true)?,
    };
    let correction = call.number(4, f64::from(u8::from(unbiased)))? as f32;
    let axes = r.axes(call, &x)?;
    let keep = call.flag(3, false)?;
    let count: usize =
        axes.iter().map(|&axis| x.dims.get(axis).map_or(1, |&extent| extent as usize)).product();
    let mut mean = x.clone();
    for &axis in &axes {
        mean = r.fold(&mean, axis, true, Fold::Mean)?;
    }
    let far = r.pair(Operand::Tensor(x), Operand::Tensor(mean), |x, mean| (x - mean).square())?;
    let sum = r.summed(&far, &axes, keep)?;
    let divisor = (count as f32 - correction).max(0.0);
    r.map(&sum, |sum| sum / divisor)
}

/// The tensor with its last axes, those of a normalised shape, as one.
fn flattened(r: &Recording<'_, '_>, x: &Tensor, shape: &[i64]) -> Made<(Tensor, u32)> {
    let Some(outer) = x.rank().checked_sub(shape.len()).filter(|_| !shape.is_empty()) else {
        return refuse("a normalised shape with more axes than the tensor");
    };
    if x.dims[outer..].iter().zip(shape).any(|(&own, &wanted)| i64::from(own) != wanted) {
        return refuse(format!("a normalised shape {shape:?}"));
    }
    let width = elements(&x.dims[outer..]) as u32;
    let dims: Dims = x.dims[..outer].iter().copied().chain([width]).collect();
    Ok((r.reshaped(x, dims)?, width))
}

fn scaled(
    r: &mut Recording<'_, '_>,
    mut made: Tensor,
    weight: Option<Bound<'_, PyAny>>,
    bias: Option<Bound<'_, PyAny>>,
) -> Made<Outcome> {
    if let Some(weight) = weight {
        let weight = r.operand(&weight)?;
        made = r.pair(Operand::Tensor(made), weight, |x, weight| x * weight)?;
    }
    if let Some(bias) = bias {
        let bias = r.operand(&bias)?;
        made = r.pair(Operand::Tensor(made), bias, |x, bias| x + bias)?;
    }
    one(made)
}

fn layer_norm(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let x = r.float_tensor(&call.need(0)?)?;
    let eps = call.number(4, 1e-5)? as f32;
    let (flat, width) = flattened(r, &x, &call.ints(1)?.unwrap_or_default())?;
    let made = r.by_last_axis(&flat, width, |x| x.layer_norm(eps))?;
    let made = r.reshaped(&made, x.dims.clone())?;
    scaled(r, made, call.get(2)?, call.get(3)?)
}

impl<'g> Recording<'_, 'g> {
    /// The tensor with leading extents of 1 up to a rank.
    fn of_rank(&self, x: &Tensor, rank: usize) -> Made<Tensor> {
        let new = rank.saturating_sub(x.rank());
        self.reshaped(x, std::iter::repeat_n(1, new).chain(x.dims.iter().copied()).collect::<Dims>())
    }

    /// The axes that a call names at its second place; all without one.
    fn axes(&self, call: &Call<'_, '_>, x: &Tensor) -> Made<SmallVec<[usize; 5]>> {
        let mut axes = match call.ints(1)? {
            Some(dims) if !dims.is_empty() => {
                dims.iter().map(|&dim| axis(dim, x.rank())).collect::<Made<SmallVec<[usize; 5]>>>()?
            }
            _ => (0..x.rank()).collect(),
        };
        axes.sort_unstable();
        Ok(axes)
    }

    fn reduction(&mut self, call: &Call<'_, '_>, fold: Fold) -> Made<Outcome> {
        let x = self.float_tensor(&call.need(0)?)?;
        let axes = self.axes(call, &x)?;
        let keep = call.flag(2, false)?;
        one(self.folded(&x, &axes, keep, fold)?)
    }

    /// `any` and `all`.
    fn truths(&mut self, call: &Call<'_, '_>, fold: Fold) -> Made<Outcome> {
        let x = self.tensor(&call.need(0)?)?;
        let x = self.cast(&self.cast(&x, Kind::Bool)?, Kind::Float)?;
        let (axes, keep) = (self.axes(call, &x)?, call.flag(2, false)?);
        let made = self.folded(&x, &axes, keep, fold)?;
        let made = self.map(&made, |x| x.greater(0.0))?;
        one(Tensor { kind: Kind::Bool, grad: false, stopped: false, ..made })
    }

    /// The sum along axes, which ascend.
    pub(super) fn summed(&self, x: &Tensor, axes: &[usize], keep: bool) -> Made<Tensor> {
        self.folded(x, axes, keep, Fold::Sum)
    }

    pub(super) fn folded(&self, x: &Tensor, axes: &[usize], keep: bool, fold: Fold) -> Made<Tensor> {
        let mut made = x.clone();
        if axes.len() == x.rank() && x.as_rows().is_none() && x.rank() > 0 {
            // All axes at once.
            let value = self.whole(x)?;
            let value = match fold {
                _ if value.shape().rank() == 0 => value,
                Fold::Sum => value.sum(),
                Fold::Mean => value.mean(),
                Fold::Max => value.max(),
                Fold::Min => value.min(),
            };
            return self.made(value, without(&x.dims, axes, keep));
        }
        for &axis in axes.iter().rev() {
            made = self.fold(&made, axis, keep, fold)?;
        }
        Ok(made)
    }

    /// One number of the elements along an axis.
    pub(super) fn fold(&self, x: &Tensor, at: usize, keep: bool, fold: Fold) -> Made<Tensor> {
        let lead = leading_ones(&x.dims);
        if let Some(rows) = x.as_rows()
            && at == lead
        {
            let rows = rows.iter().map(|&row| self.value(row));
            let value = match fold {
                Fold::Sum => self.graph.list(rows).sum(),
                Fold::Mean => self.graph.list(rows).mean(),
                Fold::Max => self.graph.list(rows).max(),
                Fold::Min => -self.graph.list(rows.map(|row| -row)).max(),
            };
            return self.made(value, without(&x.dims, &[at], keep));
        }
        self.along(x, at, keep, &|x| match fold {
            Fold::Sum => x.sum_rows(),
            Fold::Mean => x.mean_rows(),
            Fold::Max => x.max_rows(),
            Fold::Min => x.min_rows(),
        })
    }

    /// Applies a function that makes one number of each row, along any axis.
    pub(super) fn along(
        &self,
        x: &Tensor,
        at: usize,
        keep: bool,
        f: &dyn Fn(Value<'g>) -> Value<'g>,
    ) -> Made<Tensor> {
        let dims = without(&x.dims, &[at], keep);
        let lead = leading_ones(&x.dims);
        if let Some(rows) = x.as_rows()
            && at > lead
        {
            let row = Dims::from_slice(&x.dims[lead + 1..]);
            let made = rows.iter().map(|&key| {
                let row = Tensor { dims: row.clone(), form: Form::Whole(key), ..x.clone() };
                let made = self.along(&row, at - lead - 1, false, f)?;
                self.whole(&made)
            });
            let made = made.collect::<Made<Vec<_>>>()?;
            return self.made_of_rows(made, dims);
        }
        let last = self.last(x, at)?;
        let value = f(last);
        let shape = shape_of(&dims)?;
        self.made(shaped(value, shape.dims()), dims)
    }

    /// The tensor as one value whose last axis is an axis of the tensor.
    fn last(&self, x: &Tensor, at: usize) -> Made<Value<'g>> {
        let lead = leading_ones(&x.dims).min(at);
        let dims = &x.dims[lead..];
        let value = self.whole_as(x, if dims.is_empty() { &[1] } else { dims })?;
        Ok(match (dims.len(), at - lead) {
            (0, _) => value,
            (rank, at) if at + 1 == rank => value,
            (2, 0) => value.t(),
            (3, 0) => value.transpose([1, 2, 0]),
            (3, 1) => value.transpose([0, 2, 1]),
            (4, 0) => value.transpose([1, 2, 3, 0]),
            (4, 1) => value.transpose([0, 2, 3, 1]),
            (4, 2) => value.transpose([0, 1, 3, 2]),
            (rank, _) => return refuse(format!("an axis of a tensor of rank {rank}")),
        })
    }

    /// Records a function of rows along the axis that the call names.
    fn normalised(&mut self, call: &Call<'_, '_>, f: impl Fn(Value<'g>) -> Value<'g>) -> Made<Outcome> {
        let x = self.float_tensor(&call.need(0)?)?;
        let Some(dim) = call.int(1)? else { return refuse("no axis; name it: dim=-1") };
        let at = axis(dim, x.rank())?;
        one(self.each_along(&x, at, f)?)
    }

    /// Applies a function of rows along any axis.
    pub(super) fn each_along(
        &self,
        x: &Tensor,
        at: usize,
        f: impl Fn(Value<'g>) -> Value<'g>,
    ) -> Made<Tensor> {
        if x.rank() == 0 {
            let value = f(self.whole_as(x, &[1])?);
            return self.made(shaped(value, &[]), Dims::new());
        }
        if at + 1 == x.rank() {
            return self.by_last_axis(x, x.dims[at], f);
        }
        let mut order: SmallVec<[usize; 5]> = (0..x.rank()).collect();
        order.swap(at, x.rank() - 1);
        let turned = self.permuted(x, &order)?;
        let made = self.by_last_axis(&turned, x.dims[at], f)?;
        self.permuted(&made, &order)
    }

    /// `max` and `min`: of all elements, along an axis with places, or of two tensors.
    fn extreme(&mut self, call: &Call<'_, '_>, fold: Fold) -> Made<Outcome> {
        let Some(second) = call.get(1)? else { return self.reduction(call, fold) };
        if !second.is_instance_of::<pyo3::types::PyInt>() {
            let (a, b) = (self.operand(&call.need(0)?)?, self.operand(&second)?);
            return one(match fold {
                Fold::Max => self.pair(a, b, |a, b| a.maximum(b))?,
                _ => self.pair(a, b, |a, b| a.minimum(b))?,
            });
        }
        let x = self.float_tensor(&call.need(0)?)?;
        let [at] = self.axes(call, &x)?[..] else { return refuse("several axes") };
        let keep = call.flag(2, false)?;
        let values = self.fold(&x, at, keep, fold)?;
        let name = if fold == Fold::Max { "max" } else { "min" };
        Ok(Outcome::Named(name, vec![values, self.places(&x, at, keep, fold)?]))
    }

    /// The places of the largest or smallest elements along an axis.
    fn places(&self, x: &Tensor, at: usize, keep: bool, fold: Fold) -> Made<Tensor> {
        let made =
            self.along(x, at, keep, &|x| if fold == Fold::Max { x.argmax() } else { (-x).argmax() })?;
        Ok(Tensor { kind: Kind::Int, grad: false, stopped: false, ..made })
    }

    fn place(&mut self, call: &Call<'_, '_>, fold: Fold) -> Made<Outcome> {
        let x = self.float_tensor(&call.need(0)?)?;
        let keep = call.flag(2, false)?;
        match call.int(1)? {
            Some(dim) => one(self.places(&x, axis(dim, x.rank())?, keep, fold)?),
            None => {
                let flat = self.reshaped(&x, [elements(&x.dims) as u32].into_iter().collect::<Dims>())?;
                one(self.places(&flat, 0, false, fold)?)
            }
        }
    }
}

//! Convolutions and pools along the last axis, and what pads, turns and cuts tensors.

use super::reductions::Fold;
use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, axis, core, shape_of, with_extent, written};
use crate::lazy::tensor::{Form, Operand, Tensor, shaped};
use crate::lazy::{Made, Outcome, Recording};
use autobatch::ir::graph::Value;
use pyo3::prelude::*;
use std::ops::Range;

pub(super) const OPS: &[Op] = &[
    Op::new(
        &["conv1d"],
        &["input", "weight", "bias", "stride", "padding", "dilation", "groups"],
        |r, call| {
            let (x, weight) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
            let bias = call.get(2)?.map(|bias| r.float_tensor(&bias)).transpose()?;
            one(r.convolution(call, &x, &weight, bias.as_ref())?)
        },
    ),
    Op::new(
        &["max_pool1d"],
        &["input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"],
        |r, call| {
            if call.flag(5, false)? || call.flag(6, false)? || whole(call, 4, 1)? != 1 {
                return refuse("a pool with ceil_mode, return_indices or a dilation");
            }
            r.pool(call, Fold::Max, false)
        },
    ),
    Op::new(
        &["avg_pool1d"],
        &["input", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"],
        |r, call| {
            if call.flag(4, false)? {
                return refuse("a pool with ceil_mode");
            }
            let counts_padding = call.flag(5, true)?;
            r.pool(call, Fold::Mean, counts_padding)
        },
    ),
    Op::new(&["adaptive_max_pool1d"], &["input", "output_size", "return_indices"], |r, call| {
        if call.flag(2, false)? {
            return refuse("a pool with return_indices");
        }
        r.adaptive_pool(call, Fold::Max)
    }),
    Op::new(&["adaptive_avg_pool1d"], &["input", "output_size"], |r, call| r.adaptive_pool(call, Fold::Mean)),
    Op::new(&["pad"], &["input", "pad", "mode", "value"], |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let sizes = call.ints(1)?.unwrap_or_default();
        let (mode, number) = (call.word(2, "constant")?, call.number(3, 0.0)? as f32);
        if mode != "constant" || sizes.len() % 2 == 1 || sizes.len() / 2 > x.rank() {
            return refuse(format!("padding of {sizes:?} in the mode {mode:?}"));
        }
        let mut made = x;
        for (number_of_pair, pair) in sizes.chunks(2).enumerate() {
            let at = made.rank() - 1 - number_of_pair;
            let filled = |r: &Recording<'_, '_>, made: &Tensor, size: i64| {
                let Ok(size) = u32::try_from(size) else { return refuse("negative padding; use a slice") };
                (size > 0).then(|| r.filled(with_extent(&made.dims, at, size), number)).transpose()
            };
            let parts = [filled(r, &made, pair[0])?, Some(made.clone()), filled(r, &made, pair[1])?];
            made = r.joined(&parts.into_iter().flatten().collect::<Vec<_>>(), at)?;
        }
        one(made)
    }),
    Op::new(&["flip"], &["input", "*dims"], |r, call| {
        let mut made = r.float_tensor(&call.need(0)?)?;
        for dim in call.ints_from(1)? {
            let at = axis(dim, made.rank())?;
            let count = made.dims.get(at).copied().unwrap_or(1);
            let parts =
                (0..count).rev().map(|number| r.range(&made, at, number, 1)).collect::<Made<Vec<_>>>()?;
            made = r.joined(&parts, at)?;
        }
        one(made)
    }),
    Op::new(&["tril"], &["input", "diagonal"], |r, call| {
        let diagonal = call.int(1)?.unwrap_or(0);
        r.triangle(call, |row, columns| 0..(row + 1 + diagonal).clamp(0, columns))
    }),
    Op::new(&["triu"], &["input", "diagonal"], |r, call| {
        let diagonal = call.int(1)?.unwrap_or(0);
        r.triangle(call, |row, columns| (row + diagonal).clamp(0, columns)..columns)
    }),
    Op::new(&["glu"], &["input", "dim"], |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(-1), x.rank())?;
        let extent = x.dims.get(at).copied().unwrap_or(1);
        if extent % 2 == 1 {
            return refuse(format!("glu of {extent} elements"));
        }
        let (a, b) = (r.range(&x, at, 0, extent / 2)?, r.range(&x, at, extent / 2, extent / 2)?);
        one(r.pair(Operand::Tensor(a), Operand::Tensor(b), |a, b| a * b.sigmoid())?)
    }),
    Op::new(&["prelu"], &["input", "weight"], |r, call| {
        let (x, weight) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
        if weight.dims[..] != [1] && x.rank() != 2 {
            return refuse("slopes of channels of a tensor that is no matrix");
        }
        let (positive, negative) = (r.map(&x, |x| x.relu())?, r.map(&x, |x| x - x.relu())?);
        let negative = r.pair(Operand::Tensor(negative), Operand::Tensor(weight), |x, slope| x * slope)?;
        one(r.pair(Operand::Tensor(positive), Operand::Tensor(negative), |a, b| a + b)?)
    }),
];

/// A size: one int, or a tuple of one.
fn whole(call: &Call<'_, '_>, place: usize, default: u32) -> Made<u32> {
    match call.ints(place)?.as_deref() {
        None | Some([]) => Ok(default),
        Some(&[size]) if (0..1 << 16).contains(&size) => Ok(size as u32),
        Some(sizes) => refuse(format!("the sizes {sizes:?}")),
    }
}

impl<'g> Recording<'_, 'g> {
    fn filled(&self, dims: Dims, number: f32) -> Made<Tensor> {
        let shape = shape_of(&dims)?;
        self.made(self.graph.fill(shape, number), dims)
    }

    /// `conv1d` of one instance: each window, as one vector, times the weight.
    fn convolution(
        &self,
        call: &Call<'_, '_>,
        x: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
    ) -> Made<Tensor> {
        let (&[.., channels, len], &[outputs, own, kernel]) = (&x.dims[..], &weight.dims[..]) else {
            return refuse(format!("a convolution of {} with {}", written(&x.dims), written(&weight.dims)));
        };
        let (stride, dilation) = (whole(call, 3, 1)?.max(1), whole(call, 5, 1)?.max(1));
        let groups = call.int(6)?.unwrap_or(1).clamp(1, i64::from(channels)) as u32;
        let span = dilation * (kernel - 1) + 1;
        let (before, after) = match call.get(4)? {
            Some(word) if word.extract::<String>().is_ok_and(|word| word == "same") => {
                ((span - 1) / 2, (span - 1) - (span - 1) / 2)
            }
            Some(word) if word.extract::<String>().is_ok_and(|word| word == "valid") => (0, 0),
            _ => (whole(call, 4, 0)?, whole(call, 4, 0)?),
        };
        if x.rank() > 3 || own * groups != channels || outputs % groups != 0 || len + before + after < span {
            return refuse(format!("a convolution of {} with {}", written(&x.dims), written(&weight.dims)));
        }
        let outer = Dims::from_slice(&x.dims[..x.rank() - 2]);
        if let [count] = outer[..]
            && count != 1
        {
            return refuse(format!("a minibatch of {count} sequences; call it for each instance"));
        }
        let x = self.reshaped(x, Dims::from_slice(&[channels, len]))?;
        let turned = self.permuted(&x, &[1, 0])?;
        let zeros = self.graph.fill([channels as usize], 0.0);
        let rows: Vec<Value<'g>> = (0..before)
            .map(|_| zeros)
            .chain(self.rows_of(&turned, channels)?)
            .chain((0..after).map(|_| zeros))
            .collect();
        let windows = (0..=(len + before + after - span) / stride).map(|number| {
            let places = (0..kernel).map(move |tap| (number * stride + tap * dilation) as usize);
            places.map(|place| rows[place]).collect::<Vec<_>>()
        });
        let mut made = Vec::new();
        for window in windows {
            let parts = (0..groups).map(|group| {
                let channels = (group * own) as usize..((group + 1) * own) as usize;
                let flat = match groups {
                    1 => flattened(self, &window, own),
                    _ => flattened(
                        self,
                        &window.iter().map(|row| row.slice(channels.clone())).collect::<Vec<_>>(),
                        own,
                    ),
                };
                self.convolved(flat, weight, bias, group, groups)
            });
            let parts = parts.collect::<Made<Vec<_>>>()?;
            let all = if let [only] = parts[..] { only } else { self.graph.concat(parts) };
            made.push(shaped(all, core(&[outputs])));
        }
        let count = made.len() as u32;
        let made = self.made_of_rows(made, Dims::from_slice(&[count, outputs]))?;
        let made = self.permuted(&made, &[1, 0])?;
        let dims: Dims = outer.iter().copied().chain([outputs, count]).collect();
        self.reshaped(&made, dims)
    }

    /// The product of a window with the weight of a group of outputs.
    fn convolved(
        &self,
        window: Value<'g>,
        weight: &Tensor,
        bias: Option<&Tensor>,
        group: u32,
        groups: u32,
    ) -> Made<Value<'g>> {
        let &[outputs, own, kernel] = &weight.dims[..] else { return refuse("such a weight") };
        let of_bias = bias.and_then(|bias| match bias.form {
            Form::Param { number, .. } => Some(self.engine.params[number].param()),
            _ => None,
        });
        // The engine stores a parameter of three axes as a matrix with a row for each output.
        if let Form::Param { number, .. } = weight.form
            && groups == 1
            && (bias.is_none() || of_bias.is_some())
        {
            return Ok(window.affine_transposed(self.engine.params[number].param(), of_bias));
        }
        let each = outputs / groups;
        let weight = self.range(weight, 0, group * each, each)?;
        let product = self.whole_as(&weight, &[each, own * kernel])?.matmul(window);
        match bias {
            None => Ok(product),
            Some(bias) => {
                let bias = self.range(bias, 0, group * each, each)?;
                Ok(shaped(product, &[each]) + self.whole_as(&bias, &[each])?)
            }
        }
    }

    /// The rows of a matrix as vectors.
    fn rows_of(&self, x: &Tensor, width: u32) -> Made<Vec<Value<'g>>> {
        let rows = (0..x.dims[0]).map(|row| {
            let row = self.range(x, 0, row, 1)?;
            self.whole_as(&row, &[width])
        });
        rows.collect()
    }

    /// A pool with windows of one size.
    fn pool(&mut self, call: &Call<'_, '_>, fold: Fold, counts_padding: bool) -> Made<Outcome> {
        let x = self.float_tensor(&call.need(0)?)?;
        let kernel = whole(call, 1, 0)?;
        let (stride, padding) = (whole(call, 2, kernel)?.max(1), whole(call, 3, 0)?);
        let len = x.dims.last().copied().unwrap_or(1);
        if kernel == 0 || len + 2 * padding < kernel || 2 * padding > kernel {
            return refuse(format!("windows of {kernel} elements over {}", written(&x.dims)));
        }
        let windows = (0..=(len + 2 * padding - kernel) / stride).map(|number| {
            let start = number * stride;
            start.saturating_sub(padding)..(start + kernel - padding).min(len)
        });
        let size = |window: &Range<u32>| if counts_padding { kernel } else { window.end - window.start };
        self.pooled(&x, windows, fold, size)
    }

    /// A pool with a number of windows.
    fn adaptive_pool(&mut self, call: &Call<'_, '_>, fold: Fold) -> Made<Outcome> {
        let x = self.float_tensor(&call.need(0)?)?;
        let (count, len) = (whole(call, 1, 1)?, x.dims.last().copied().unwrap_or(1));
        let windows = (0..count).map(|number| number * len / count..((number + 1) * len).div_ceil(count));
        self.pooled(&x, windows, fold, |window| window.end - window.start)
    }

    fn pooled(
        &self,
        x: &Tensor,
        windows: impl Iterator<Item = Range<u32>>,
        fold: Fold,
        size: impl Fn(&Range<u32>) -> u32,
    ) -> Made<Outcome> {
        let Some(at) = x.rank().checked_sub(1) else { return refuse("a pool over a scalar") };
        let parts = windows.map(|window| {
            let own = window.end - window.start;
            let part = self.range(x, at, window.start, own)?;
            let part = self.fold(&part, at, true, fold)?;
            match size(&window) {
                size if fold == Fold::Mean && size != own => {
                    self.map(&part, |part| part * (own as f32 / size as f32))
                }
                _ => Ok(part),
            }
        });
        one(self.joined(&parts.collect::<Made<Vec<_>>>()?, at)?)
    }

    /// A matrix with zeros outside of a range of columns of each row.
    fn triangle(&mut self, call: &Call<'_, '_>, kept: impl Fn(i64, i64) -> Range<i64>) -> Made<Outcome> {
        let x = self.float_tensor(&call.need(0)?)?;
        let &[rows, columns] = &x.dims[..] else { return refuse("a triangle of a tensor that is no matrix") };
        let made = (0..rows).map(|row| {
            let kept = kept(i64::from(row), i64::from(columns));
            let (start, end) = (kept.start as u32, (kept.end as u32).max(kept.start as u32));
            let own = self.range(&x, 0, row, 1)?;
            let zeros =
                |count: u32| (count > 0).then(|| self.filled(Dims::from_slice(&[1, count]), 0.0)).transpose();
            let middle = (end > start).then(|| self.range(&own, 1, start, end - start)).transpose()?;
            let parts = [zeros(start)?, middle, zeros(columns - end)?];
            self.joined(&parts.into_iter().flatten().collect::<Vec<_>>(), 1)
        });
        one(self.joined(&made.collect::<Made<Vec<_>>>()?, 0)?)
    }
}

/// The rows of a window as one vector in the order of a weight: by channels, then by places.
fn flattened<'g>(r: &Recording<'_, 'g>, window: &[Value<'g>], channels: u32) -> Value<'g> {
    match (window, channels) {
        (&[only], _) => only,
        (_, 1) => r.graph.concat(window),
        _ => r.graph.stack(window).t().reshape([window.len() * channels as usize]),
    }
}

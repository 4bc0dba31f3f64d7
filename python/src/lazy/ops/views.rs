//! Ops that only move elements: shapes, orders of axes, and joining.

use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{
    Dims, axis, core, elements, leading_ones, resolved, shape_of, with_extent, without, written,
};
use crate::lazy::tensor::{Form, Kind, Tensor, shaped};
use crate::lazy::{Made, Outcome, Recording};
use autobatch::ir::graph::Value;
use pyo3::prelude::*;
use smallvec::SmallVec;

pub(super) const OPS: &[Op] = &[
    Op::new(&["view", "reshape"], &["input", "*shape"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let dims = resolved(&call.ints_from(1)?, elements(&x.dims))?;
        one(r.reshaped(&x, dims)?)
    })
    .view(),
    Op::new(&["view_as", "reshape_as"], &["input", "other"], |r, call| {
        let (x, other) = (r.tensor(&call.need(0)?)?, r.tensor(&call.need(1)?)?);
        if elements(&x.dims) != elements(&other.dims) {
            return refuse(format!(
                "{} has not as many elements as {}",
                written(&x.dims),
                written(&other.dims)
            ));
        }
        one(r.reshaped(&x, other.dims)?)
    })
    .view(),
    Op::new(&["flatten"], &["input", "start_dim", "end_dim"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let first = axis(call.int(1)?.unwrap_or(0), x.rank())?;
        let last = axis(call.int(2)?.unwrap_or(-1), x.rank())?;
        if x.rank() == 0 {
            return one(x.seen_as(Dims::from_slice(&[1])));
        }
        if first > last {
            return refuse("start_dim lies behind end_dim");
        }
        let mut dims = Dims::from_slice(&x.dims[..first]);
        dims.push(x.dims[first..=last].iter().product());
        dims.extend_from_slice(&x.dims[last + 1..]);
        one(r.reshaped(&x, dims)?)
    })
    .view(),
    Op::new(&["unflatten"], &["input", "dim", "sizes"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(0), x.rank())?;
        let Some(&extent) = x.dims.get(at) else { return refuse("an axis of a scalar") };
        let parts = resolved(&call.ints_from(2)?, extent as usize)?;
        let dims = x.dims[..at].iter().chain(&parts).chain(&x.dims[at + 1..]).copied().collect::<Dims>();
        one(r.reshaped(&x, dims)?)
    })
    .view(),
    Op::new(&["unsqueeze"], &["input", "dim"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(0), x.rank() + 1)?;
        let mut dims = x.dims.clone();
        dims.insert(at, 1);
        one(r.reshaped(&x, dims)?)
    })
    .view(),
    Op::new(&["squeeze"], &["input", "dim"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let axes: SmallVec<[usize; 5]> = match call.ints(1)? {
            None => (0..x.rank()).collect(),
            Some(dims) => dims.iter().map(|&dim| axis(dim, x.rank())).collect::<Made<_>>()?,
        };
        let ones: SmallVec<[usize; 5]> =
            axes.into_iter().filter(|&axis| x.dims.get(axis).is_some_and(|&extent| extent == 1)).collect();
        let dims = without(&x.dims, &ones, false);
        one(r.reshaped(&x, dims)?)
    })
    .view(),
    Op::new(&["transpose", "swapaxes", "swapdims"], &["input", "dim0", "dim1"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let (a, b) = (call.int(1)?.unwrap_or(0), call.int(2)?.unwrap_or(1));
        let (a, b) = (axis(a, x.rank())?, axis(b, x.rank())?);
        let mut order: SmallVec<[usize; 5]> = (0..x.rank()).collect();
        // A scalar has one axis for torch.
        if x.rank() > 0 {
            order.swap(a, b);
        }
        one(r.permuted(&x, &order)?)
    })
    .view(),
    Op::new(&["permute"], &["input", "*dims"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let dims = call.ints_from(1)?;
        let order = dims.iter().map(|&dim| axis(dim, x.rank())).collect::<Made<SmallVec<[usize; 5]>>>()?;
        if order.len() != x.rank() || (0..x.rank()).any(|axis| !order.contains(&axis)) {
            return refuse(format!("{dims:?} is no order of the axes of {}", written(&x.dims)));
        }
        one(r.permuted(&x, &order)?)
    })
    .view(),
    Op::new(&["t"], &["input"], transposed).view(),
    Op::new(&["T"], &["input"], transposed).view().attribute(),
    Op::new(&["mT"], &["input"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        if x.rank() < 2 {
            return refuse("mT of a vector");
        }
        let mut order: SmallVec<[usize; 5]> = (0..x.rank()).collect();
        order.swap(x.rank() - 1, x.rank() - 2);
        one(r.permuted(&x, &order)?)
    })
    .view()
    .attribute(),
    Op::new(&["expand"], &["input", "*size"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let sizes = call.ints_from(1)?;
        let Some(new) = sizes.len().checked_sub(x.rank()) else {
            return refuse(format!("the sizes {sizes:?} of a tensor of rank {}", x.rank()));
        };
        let own = |at: usize| at.checked_sub(new).map_or(1, |at| x.dims[at]);
        let dims =
            sizes.iter().enumerate().map(|(at, &size)| if size == -1 { own(at) } else { size.max(0) as u32 });
        let dims: Dims = dims.collect();
        one(r.expanded(&x, dims)?)
    })
    .view(),
    Op::new(&["expand_as", "broadcast_to"], &["input", "other"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let dims = match call.ints(1) {
            Ok(Some(sizes)) => sizes.iter().map(|&size| size.max(0) as u32).collect(),
            _ => r.tensor(&call.need(1)?)?.dims,
        };
        one(r.expanded(&x, dims)?)
    })
    .view(),
    Op::new(&["repeat"], &["input", "*repeats"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let repeats = call.ints_from(1)?;
        let mut made = x.clone();
        let new = repeats.len().saturating_sub(x.rank());
        made =
            r.reshaped(&made, std::iter::repeat_n(1, new).chain(x.dims.iter().copied()).collect::<Dims>())?;
        for (at, &count) in repeats.iter().enumerate().filter(|(_, count)| **count != 1) {
            if !(1..=1 << 16).contains(&count) {
                return refuse(format!("{count} repetitions"));
            }
            let parts = vec![made.clone(); count as usize];
            made = r.joined(&parts, at)?;
        }
        one(made)
    }),
    Op::new(&["chunk"], &["input", "chunks", "dim"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let at = axis(call.int(2)?.unwrap_or(0), x.rank())?;
        let chunks = call.int(1)?.unwrap_or(1).max(1) as u32;
        let whole = x.dims.get(at).copied().unwrap_or(1);
        r.parts(&x, at, (0..).map(|_| whole.div_ceil(chunks)))
    })
    .view(),
    Op::new(
        &["split", "split_with_sizes", "tensor_split"],
        &["tensor", "split_size_or_sections", "dim"],
        |r, call| {
            let x = r.tensor(&call.need(0)?)?;
            let at = axis(call.int(2)?.unwrap_or(0), x.rank())?;
            let sizes = call.need(1)?;
            match sizes.extract::<i64>() {
                Ok(size) if size > 0 => r.parts(&x, at, (0..).map(|_| size as u32)),
                Ok(size) => refuse(format!("parts of {size} elements")),
                Err(_) => {
                    let sizes = call.ints(1)?.unwrap_or_default();
                    let total: i64 = sizes.iter().sum();
                    if total != i64::from(x.dims.get(at).copied().unwrap_or(1))
                        || sizes.iter().any(|&size| size < 1)
                    {
                        return refuse(format!("parts of {sizes:?} of {} along axis {at}", written(&x.dims)));
                    }
                    r.parts(&x, at, sizes.into_iter().map(|size| size as u32))
                }
            }
        },
    )
    .view(),
    Op::new(&["unbind"], &["input", "dim"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(0), x.rank())?;
        let Some(&count) = x.dims.get(at) else { return refuse("unbind of a scalar") };
        let dims = without(&x.dims, &[at], false);
        let made = (0..count).map(|number| {
            let part = r.range(&x, at, number, 1)?;
            r.reshaped(&part, dims.clone())
        });
        Ok(Outcome::Tuple(made.collect::<Made<_>>()?))
    })
    .view(),
    Op::new(&["cat", "concat", "concatenate"], &["tensors", "dim"], |r, call| {
        let parts = r.all(&call.need(0)?)?;
        let dim =
            match (call.int(1)?, call.kwargs.map(|kwargs| kwargs.get_item("axis")).transpose()?.flatten()) {
                (None, Some(axis)) => axis.extract()?,
                (dim, _) => dim.unwrap_or(0),
            };
        let at = axis(dim, parts.first().map_or(1, Tensor::rank))?;
        one(r.joined(&parts, at)?)
    }),
    Op::new(&["hstack"], &["tensors"], |r, call| {
        let parts = r.all(&call.need(0)?)?;
        let at = usize::from(parts.first().is_some_and(|part| part.rank() > 1));
        one(r.joined(&parts, at)?)
    }),
    Op::new(&["vstack", "row_stack"], &["tensors"], |r, call| {
        let parts = r.all(&call.need(0)?)?;
        let rows = parts.iter().map(|part| match part.rank() {
            0 | 1 => r.reshaped(part, Dims::from_slice(&[1, elements(&part.dims) as u32])),
            _ => Ok(part.clone()),
        });
        one(r.joined(&rows.collect::<Made<Vec<_>>>()?, 0)?)
    }),
    Op::new(&["stack"], &["tensors", "dim"], |r, call| {
        let parts = r.all(&call.need(0)?)?;
        let rank = parts.first().map_or(0, Tensor::rank);
        let at = axis(call.int(1)?.unwrap_or(0), rank + 1)?;
        let parts = parts.iter().map(|part| {
            let mut dims = part.dims.clone();
            dims.insert(at, 1);
            r.reshaped(part, dims)
        });
        let parts = parts.collect::<Made<Vec<_>>>()?;
        one(r.joined(&parts, at)?)
    }),
];

fn transposed(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let x = r.tensor(&call.need(0)?)?;
    match x.rank() {
        0 | 1 => one(x),
        2 => one(r.permuted(&x, &[1, 0])?),
        rank => refuse(format!("the transpose of a tensor of rank {rank}; use permute or mT")),
    }
}

impl<'g> Recording<'_, 'g> {
    /// Reads a sequence of tensors.
    fn all(&mut self, any: &Bound<'_, PyAny>) -> Made<Vec<Tensor>> {
        let mut parts = Vec::new();
        for part in any.try_iter()? {
            parts.push(self.tensor(&part?)?);
        }
        match parts.is_empty() {
            true => refuse("no tensors"),
            false => Ok(parts),
        }
    }

    /// The same elements in other extents.
    pub(in crate::lazy) fn reshaped(&self, x: &Tensor, dims: impl Into<Dims>) -> Made<Tensor> {
        let dims: Dims = dims.into();
        let (old, new) = (x.core(), core(&dims));
        let made = |made: Tensor| Tensor { kind: x.kind, grad: x.grad, stopped: x.stopped, ..made };
        if old == new {
            return Ok(x.seen_as(dims));
        }
        if let (Form::Rows(rows), Some((first, row))) = (&x.form, new.split_first())
            && *first as usize == rows.len()
        {
            let row = core(row);
            let rows = rows.iter().map(|&key| {
                let value = self.value(key);
                shaped(value, row)
            });
            return self.made_of_rows(rows.collect(), dims.clone()).map(made);
        }
        let shape = shape_of(&dims)?;
        self.made(self.whole(x)?.reshape(shape), dims).map(made)
    }

    /// The axes in another order.
    pub(in crate::lazy) fn permuted(&self, x: &Tensor, order: &[usize]) -> Made<Tensor> {
        let dims: Dims = order.iter().map(|&axis| x.dims[axis]).collect();
        // Axes of one element change no order.
        let long: SmallVec<[usize; 5]> = (0..x.rank()).filter(|&axis| x.dims[axis] != 1).collect();
        let moved: SmallVec<[usize; 5]> =
            order.iter().filter_map(|axis| long.iter().position(|own| own == axis)).collect();
        if moved.iter().enumerate().all(|(at, &from)| at == from) {
            return self.reshaped(x, dims);
        }
        if let Form::Param { number, transposed } = x.form
            && x.rank() == 2
        {
            return Ok(Tensor { dims, form: Form::Param { number, transposed: !transposed }, ..x.clone() });
        }
        let extents: SmallVec<[u32; 5]> = long.iter().map(|&axis| x.dims[axis]).collect();
        let value = self.whole_as(x, &extents)?;
        let value = match *moved {
            [a, b] => value.transpose([a, b]),
            [a, b, c] => value.transpose([a, b, c]),
            [a, b, c, d] => value.transpose([a, b, c, d]),
            _ => return refuse(format!("a tensor of shape {} in another order of axes", written(&x.dims))),
        };
        let shape = shape_of(&dims)?;
        let value = shaped(value, shape.dims());
        let made = self.made(value, dims)?;
        Ok(Tensor { kind: x.kind, grad: x.grad, stopped: x.stopped, ..made })
    }

    /// The elements repeated along axes of one.
    pub(in crate::lazy) fn expanded(&self, x: &Tensor, dims: Dims) -> Made<Tensor> {
        if crate::lazy::dims::broadcast(&x.dims, &dims)? != dims {
            return refuse(format!("{} does not expand to {}", written(&x.dims), written(&dims)));
        }
        let shape = shape_of(&dims)?;
        if shape.dims() == x.core() {
            return Ok(x.seen_as(dims));
        }
        let made = self.made(self.whole(x)?.broadcast(shape), dims)?;
        Ok(Tensor { kind: x.kind, grad: x.grad, stopped: x.stopped, ..made })
    }

    /// A range of an axis.
    pub(in crate::lazy) fn range(&self, x: &Tensor, at: usize, start: u32, len: u32) -> Made<Tensor> {
        let dims = with_extent(&x.dims, at, len);
        if x.dims.get(at).is_none_or(|&extent| extent == len) {
            return Ok(x.clone());
        }
        let lead = leading_ones(&x.dims);
        let made = |made: Tensor| Tensor { kind: x.kind, grad: x.grad, stopped: x.stopped, ..made };
        let range = start as usize..(start + len) as usize;
        if at == lead && (x.as_rows().is_some() || len == 1) {
            let rows = (start..start + len).map(|at| self.row_at(x, at));
            return self.made_of_rows(rows.collect::<Made<_>>()?, dims).map(made);
        }
        let cut = |value: Value<'g>, axis: usize, dims: &[u32]| {
            let cut = value.slice_axis(axis, range.clone());
            shaped(cut, core(dims))
        };
        if let Some(rows) = x.as_rows() {
            // The value of a row leaves out its own leading ones.
            let row = &x.dims[lead + 1..];
            let axis = at - lead - 1 - leading_ones(row);
            let rows = rows.iter().map(|&key| cut(self.value(key), axis, &dims[lead + 1..]));
            return self.made_of_rows(rows.collect(), dims.clone()).map(made);
        }
        self.made(cut(self.whole(x)?, at - lead, &dims), dims.clone()).map(made)
    }

    /// Consecutive parts along an axis.
    fn parts(&self, x: &Tensor, at: usize, sizes: impl Iterator<Item = u32>) -> Made<Outcome> {
        let whole = x.dims.get(at).copied().unwrap_or(1);
        let (mut parts, mut start) = (Vec::new(), 0);
        for size in sizes {
            if start >= whole {
                break;
            }
            let len = size.min(whole - start);
            parts.push(self.range(x, at, start, len)?);
            start += len;
        }
        Ok(Outcome::Tuple(parts))
    }

    /// Tensors joined along an axis. Truth values stay some if all parts have them.
    pub(in crate::lazy) fn joined(&self, parts: &[Tensor], at: usize) -> Made<Tensor> {
        let kind = parts.first().map_or(Kind::Float, |first| first.kind);
        let alike = parts.iter().all(|part| part.kind == kind);
        if alike && kind != Kind::Bool {
            return Ok(Tensor { kind, ..self.joined_alike(parts, at)? });
        }
        // The graph joins floats.
        let floats = parts.iter().map(|part| self.floats(part.clone())).collect::<Made<Vec<_>>>()?;
        let joined = self.joined_alike(&floats, at)?;
        if alike { self.cast(&joined, Kind::Bool) } else { Ok(joined) }
    }

    fn joined_alike(&self, parts: &[Tensor], at: usize) -> Made<Tensor> {
        let Some(first) = parts.first() else { return refuse("no tensors") };
        if let [only] = parts {
            return Ok(only.clone());
        }
        let fits = |part: &Tensor| {
            part.rank() == first.rank()
                && (0..first.rank()).all(|axis| axis == at || part.dims[axis] == first.dims[axis])
        };
        if first.rank() == 0 {
            return refuse("scalars cannot be joined; use torch.stack");
        }
        if let Some(other) = parts.iter().find(|part| !fits(part)) {
            return refuse(format!(
                "{} cannot be joined to {} along axis {at}",
                written(&other.dims),
                written(&first.dims)
            ));
        }
        let total: u32 = parts.iter().map(|part| part.dims[at]).sum();
        let dims = with_extent(&first.dims, at, total);
        // Axes of one element before the joined axis are left out.
        let lead = leading_ones(&first.dims[..at]);
        let row = &first.dims[at + 1..];
        if lead == at && (!core(row).is_empty() || parts.iter().all(|part| part.dims[at] == 1)) {
            let mut rows = Vec::with_capacity(total as usize);
            for part in parts {
                match part.dims[at] {
                    1 => rows.push(self.whole(part)?),
                    _ => rows.extend(self.rows(part)?),
                }
            }
            return self.made_of_rows(rows, dims);
        }
        if lead < at && parts.iter().all(|part| part.as_rows().is_some()) {
            // The parts have equal numbers of rows, which are joined one by one.
            let (inner, row) = (at - lead - 1, &first.dims[lead + 1..]);
            let rows = parts.iter().map(|part| self.rows(part)).collect::<Made<Vec<_>>>()?;
            let extents: Vec<Dims> =
                parts.iter().map(|part| with_extent(row, inner, part.dims[at])).collect();
            let made = (0..rows[0].len()).map(|number| {
                let values = rows.iter().zip(&extents).map(|(rows, dims)| shaped(rows[number], dims));
                let value = self.graph.concat_axis(inner, values.collect::<Vec<_>>());
                let wanted = core(&dims[lead + 1..]);
                shaped(value, wanted)
            });
            return self.made_of_rows(made.collect(), dims.clone());
        }
        let values = parts.iter().map(|part| self.whole_as(part, &part.dims[lead..]));
        let value = self.graph.concat_axis(at - lead, values.collect::<Made<Vec<_>>>()?);
        let shape = shape_of(&dims)?;
        self.made(shaped(value, shape.dims()), dims)
    }
}

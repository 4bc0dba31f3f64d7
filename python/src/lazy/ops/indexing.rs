//! Indexing, and reading rows by index.

use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, axis, core, without, written};
use crate::lazy::tensor::{Form, Kind, Tensor, shaped};
use crate::lazy::{Fail, Made, Outcome, Recording};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyInt, PyList, PySlice, PyTuple};
use smallvec::SmallVec;

pub(super) const OPS: &[Op] = &[
    Op::new(&["__getitem__", "getitem"], &["input", "index"], getitem).view(),
    Op::new(&["select"], &["input", "dim", "index"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(0), x.rank())?;
        one(r.at(&x, at, call.int(2)?.unwrap_or(0))?)
    })
    .view(),
    Op::new(&["narrow"], &["input", "dim", "start", "length"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(0), x.rank())?;
        let extent = i64::from(x.dims.get(at).copied().unwrap_or(1));
        let (start, len) = (call.int(2)?.unwrap_or(0), call.int(3)?.unwrap_or(0));
        let start = if start < 0 { start + extent } else { start };
        if start < 0 || len < 1 || start + len > extent {
            return refuse(format!("{len} elements from {start} on, of {extent}"));
        }
        one(r.range(&x, at, start as u32, len as u32)?)
    })
    .view(),
    Op::new(&["index_select"], &["input", "dim", "index"], |r, call| {
        let x = r.tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(0), x.rank())?;
        r.gathered(&x, at, &call.need(2)?)
    }),
    Op::new(&["gather"], &["input", "dim", "index"], |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(0), x.rank())?;
        let Some((indices, dims)) = r.indices(&call.need(2)?)? else { return refuse("recorded indices") };
        if at + 1 != x.rank() || x.rank() > 2 || dims.len() != x.rank() {
            return refuse("gather along another axis than the last one of a vector or matrix");
        }
        let rows = if x.rank() == 2 { x.dims[0] as usize } else { 1 };
        let width = indices.len() / rows.max(1);
        if x.rank() == 2 && dims[0] as usize != rows {
            return refuse(format!("indices {} for {}", written(&dims), written(&x.dims)));
        }
        let mut values = Vec::with_capacity(indices.len());
        for (number, &index) in indices.iter().enumerate() {
            let row = if x.rank() == 2 { r.at(&x, 0, (number / width) as i64)? } else { x.clone() };
            let picked = r.at(&row, 0, index)?;
            values.push(r.whole(&picked)?);
        }
        if values.len() == 1 {
            return one(r.made(values[0], dims)?);
        }
        let value = r.graph.stack(values);
        let shape = core(&dims);
        one(r.made(shaped(value, shape), dims)?)
    }),
    Op::new(
        &["embedding"],
        &["input", "weight", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"],
        embedding,
    ),
];

/// Rows of a table. Torch's function and its module name the index first.
fn embedding(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let (index, weight) = (call.need(0)?, call.need(1)?);
    if call.get(3)?.is_some() {
        return refuse("max_norm changes the table while it is read");
    }
    if call.flag(5, false)? || call.flag(6, false)? {
        return refuse("gradients that are sparse or scaled by frequency");
    }
    let padding = call.int(2)?;
    let table = r.tensor(&weight)?;
    let &[count, width] = &table.dims[..] else { return refuse("a table that is no matrix") };
    let padding = padding.map(|index| if index < 0 { index + i64::from(count) } else { index });
    let Form::Param { number, transposed: false } = table.form else {
        return r.gathered(&table, 0, &index);
    };
    if !r.engine.params[number].is_table {
        return Err(Fail::Unknown { param: weight.unbind(), table: true });
    }
    let known = r.engine.params[number].table();
    let Some((indices, mut dims)) = r.indices(&index)? else {
        let index = r.tensor(&index)?;
        if padding.is_some() {
            return refuse("padding_idx with indices that are recorded");
        }
        if index.kind != Kind::Int {
            return refuse("indices that are no ints");
        }
        let rows = r.rows(&index)?.into_iter().map(|index| known.look(r.graph, index)).collect::<Vec<_>>();
        let mut dims = index.dims.clone();
        dims.push(width);
        return r.table_rows(rows, dims);
    };
    let mut rows = Vec::with_capacity(indices.len());
    for index in indices {
        let row = match u32::try_from(index) {
            Ok(index) if index < count => known.look(r.graph, index),
            _ => return refuse(format!("row {index} of a table of {count} rows")),
        };
        rows.push(if padding == Some(index) { row.scale_gradient(0.0) } else { row });
    }
    if rows.is_empty() {
        return refuse("no indices");
    }
    dims.push(width);
    r.table_rows(rows, dims)
}

/// One part of an index.
enum Part<'py> {
    At(i64),
    Range(u32, u32),
    New,
    Many(Bound<'py, PyAny>),
}

fn getitem(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let x = r.tensor(&call.need(0)?)?;
    let index = match call.args.get_item(1) {
        Ok(index) => index,
        Err(_) => return refuse("no index"),
    };
    let items: SmallVec<[Bound<'_, PyAny>; 4]> = match index.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => [index.clone()].into_iter().collect(),
    };
    let taken = items.iter().filter(|item| !item.is_none() && !item.is_instance_of::<PyEllipsis>()).count();
    let Some(open) = x.rank().checked_sub(taken) else {
        return refuse(format!("{taken} indices of a tensor of shape {}", written(&x.dims)));
    };
    let (mut parts, mut from) = (SmallVec::<[Part<'_>; 5]>::new(), 0);
    for item in items {
        if item.is_none() {
            parts.push(Part::New);
        } else if item.is_instance_of::<PyEllipsis>() {
            for _ in 0..open {
                parts.push(Part::Range(0, x.dims[from]));
                from += 1;
            }
        } else {
            parts.push(part(&item, x.dims[from])?);
            from += 1;
        }
    }
    let (mut made, mut at) = (x, 0);
    for part in parts {
        match part {
            Part::At(index) => made = r.at(&made, at, index)?,
            Part::Range(start, len) => {
                made = r.range(&made, at, start, len)?;
                at += 1;
            }
            Part::New => {
                let mut dims = made.dims.clone();
                dims.insert(at, 1);
                made = r.reshaped(&made, dims)?;
                at += 1;
            }
            Part::Many(indices) => {
                let rank = made.rank();
                let Outcome::One(gathered) = r.gathered(&made, at, &indices)? else {
                    return refuse("such an index");
                };
                at += 1 + gathered.rank() - rank;
                made = gathered;
            }
        }
    }
    one(made)
}

fn part<'py>(item: &Bound<'py, PyAny>, extent: u32) -> Made<Part<'py>> {
    if item.is_instance_of::<PyBool>() {
        return refuse("an index that is a truth value");
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        let range = slice.indices(extent as isize)?;
        if range.step != 1 {
            return refuse("a slice with a step");
        }
        if range.slicelength == 0 {
            return refuse("a slice without elements");
        }
        return Ok(Part::Range(range.start as u32, range.slicelength as u32));
    }
    if item.is_instance_of::<PyInt>() {
        return Ok(Part::At(item.extract()?));
    }
    if item.is_instance_of::<PyList>() {
        let torch = item.py().import("torch")?;
        return Ok(Part::Many(torch.getattr("tensor")?.call1((item,))?));
    }
    Ok(Part::Many(item.clone()))
}

impl<'g> Recording<'_, 'g> {
    /// The part at an index of an axis, without that axis.
    pub(super) fn at(&self, x: &Tensor, at: usize, index: i64) -> Made<Tensor> {
        let Some(&extent) = x.dims.get(at) else { return refuse("an index of a scalar") };
        let from_start = if index < 0 { index + i64::from(extent) } else { index };
        if !(0..i64::from(extent)).contains(&from_start) {
            return refuse(format!("index {index} of an axis of {extent} elements"));
        }
        let part = self.range(x, at, from_start as u32, 1)?;
        self.reshaped(&part, without(&x.dims, &[at], false))
    }

    /// Parts at several indices of an axis.
    fn gathered(&mut self, x: &Tensor, at: usize, indices: &Bound<'_, PyAny>) -> Made<Outcome> {
        let Some((indices, dims)) = self.indices(indices)? else {
            let index = self.tensor(indices)?;
            if index.kind != Kind::Int || at != 0 || !index.dims.iter().all(|&extent| extent == 1) {
                return refuse("recorded indices, except one index of the first axis");
            }
            let (value, row) = (self.whole(x)?, without(&x.dims, &[0], false));
            if x.core().len() != x.rank() {
                return refuse("a recorded index of an axis of one element");
            }
            let picked = value.pick(self.whole(&index)?);
            let picked = shaped(picked, core(&row));
            let dims: Dims = index.dims.iter().chain(&row).copied().collect();
            return one(self.made(picked, dims)?);
        };
        if indices.is_empty() {
            return refuse("no indices");
        }
        let parts = indices.iter().map(|&index| {
            let part = self.at(x, at, index)?;
            let mut dims = part.dims.clone();
            dims.insert(at, 1);
            self.reshaped(&part, dims)
        });
        let joined = self.joined(&parts.collect::<Made<Vec<_>>>()?, at)?;
        let all: Dims = x.dims[..at].iter().chain(&dims).chain(&x.dims[at + 1..]).copied().collect();
        one(self.reshaped(&joined, all)?)
    }

    /// Rows of a table as a tensor.
    fn table_rows(&mut self, rows: Vec<autobatch::ir::graph::Value<'g>>, dims: Dims) -> Made<Outcome> {
        let flat: Dims = [rows.len() as u32, dims[dims.len() - 1]].into_iter().collect();
        // A table of one column has rows without extents.
        let rows = rows.into_iter().map(|row| {
            let wanted = core(&flat[1..]);
            shaped(row, wanted)
        });
        let made = self.made_of_rows(rows.collect(), flat)?;
        one(self.reshaped(&made, dims)?)
    }
}

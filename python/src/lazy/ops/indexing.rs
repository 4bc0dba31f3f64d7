//! Indexing, and reading rows by index.

use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, axis, core, elements, without, written};
use crate::lazy::tensor::{Form, Kind, Tensor, shaped};
use crate::lazy::{Fail, Made, Outcome, Recording};
use autobatch::ir::graph::Value;
use autobatch::ir::types::DType;
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
        one(r.gathered(&x, at, &call.need(2)?)?)
    }),
    Op::new(&["gather"], &["input", "dim", "index"], |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let at = axis(call.int(1)?.unwrap_or(0), x.rank())?;
        let (indices, dims) = r.indices(&call.need(2)?)?;
        if dims.len() != x.rank() || x.rank() > 2 {
            return refuse("gather of a tensor with more than two axes, or with indices of another rank");
        }
        if x.rank() < 2 {
            return one(r.picked(&x, &indices, dims)?);
        }
        // Along the first axis, the columns are picked from.
        let other = 1 - at;
        if dims[other] > x.dims[other] {
            return refuse(format!("indices {} for {}", written(&dims), written(&x.dims)));
        }
        let [_, columns] = [dims[0], dims[1]].map(|extent| extent as usize);
        let lines = (0..dims[other]).map(|line| {
            let own = r.at(&x, other, i64::from(line))?;
            let places = (0..dims[at] as usize).map(|place| match at {
                1 => indices[line as usize * columns + place],
                _ => indices[place * columns + line as usize],
            });
            let picked = r.picked(&own, &places.collect::<Vec<_>>(), Dims::from_slice(&[dims[at]]))?;
            let mut dims = picked.dims.clone();
            dims.insert(other, 1);
            r.reshaped(&picked, dims)
        });
        one(r.joined(&lines.collect::<Made<Vec<_>>>()?, other)?)
    }),
    Op::new(&["one_hot"], &["tensor", "num_classes"], |r, call| {
        let (indices, mut dims) = r.indices(&call.need(0)?)?;
        let Some(classes) = call.int(1)?.and_then(|classes| u32::try_from(classes).ok()) else {
            return refuse("one_hot without a number of classes");
        };
        let rows = indices.iter().map(|index| match index {
            Index::Known(index) => {
                r.graph.one_hot(u32::try_from(*index).unwrap_or(u32::MAX), classes as usize)
            }
            Index::Recorded(index) => r.graph.one_hot(*index, classes as usize),
        });
        dims.push(classes);
        let made = r.table_rows(rows.collect(), dims)?;
        one(Tensor { grad: false, ..r.cast(&made, Kind::Int)? })
    })
    .not_of_params(),
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
        return one(r.gathered(&table, 0, &index)?);
    };
    if !r.engine.params[number].is_table {
        return Err(Fail::Unknown { param: weight.unbind(), table: true });
    }
    let known = r.engine.params[number].table();
    let (indices, mut dims) = r.indices(&index)?;
    let mut rows = Vec::with_capacity(indices.len());
    for index in indices {
        let index = match index {
            Index::Known(index) => index,
            Index::Recorded(index) => {
                let row = known.lookup(r.graph, index);
                rows.push(match padding {
                    Some(padding) => {
                        let is_padding = index.cast(DType::F32).equal(padding as f32);
                        is_padding.broadcast(row.shape()).select(row.stop_gradient(), row)
                    }
                    None => row,
                });
                continue;
            }
        };
        let row = match u32::try_from(index) {
            Ok(index) if index < count => known.lookup(r.graph, index),
            _ => return refuse(format!("row {index} of a table of {count} rows")),
        };
        rows.push(if padding == Some(index) { row.scale_gradient(0.0) } else { row });
    }
    dims.push(width);
    one(r.table_rows(rows, dims)?)
}

/// An index that exists already, or one that is recorded.
#[derive(Clone, Copy)]
enum Index<'g> {
    Known(i64),
    Recorded(Value<'g>),
}

/// One part of an index.
enum Part<'py> {
    At(i64),
    Range(u32, u32),
    /// The start, the step and the number of elements.
    Steps(u32, u32, u32),
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
    let arrays = parts.iter().filter(|part| matches!(part, Part::Many(_))).count();
    if arrays > 0 {
        // Torch counts an int among the arrays, and puts their axes first if they are not side by side.
        let is_array = |part: &Part<'_>| matches!(part, Part::Many(_) | Part::At(_));
        let first = parts.iter().position(is_array).unwrap_or(0);
        let last = parts.iter().rposition(is_array).unwrap_or(0);
        if !parts[first..=last].iter().all(is_array) {
            return refuse("indices of axes that are not side by side");
        }
        if arrays > 1 {
            return paired(r, x, &parts, first..last + 1);
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
            Part::Steps(start, step, count) => {
                let parts = (0..count).map(|number| r.range(&made, at, start + number * step, 1));
                made = r.joined(&parts.collect::<Made<Vec<_>>>()?, at)?;
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
                let gathered = r.gathered(&made, at, &indices)?;
                at += 1 + gathered.rank() - rank;
                made = gathered;
            }
        }
    }
    one(made)
}

/// The elements at pairs of indices: `x[rows, columns]`. `arrays` are the places of the indices among the parts.
fn paired(
    r: &mut Recording<'_, '_>,
    x: Tensor,
    parts: &[Part<'_>],
    arrays: std::ops::Range<usize>,
) -> Made<Outcome> {
    let whole = |part: &Part<'_>, extent: u32| matches!(part, Part::Range(0, len) if *len == extent);
    let before = &parts[..arrays.start];
    if !before.iter().zip(&x.dims).all(|(part, &extent)| whole(part, extent)) {
        return refuse("several arrays of indices behind a part of another axis");
    }
    let behind = parts[arrays.end..].iter().zip(&x.dims[arrays.end..]);
    if !behind.into_iter().all(|(part, &extent)| whole(part, extent)) {
        return refuse("several arrays of indices before a part of another axis");
    }
    let at = arrays.start;
    let mut columns: Vec<Vec<i64>> = Vec::new();
    for part in &parts[arrays] {
        columns.push(match part {
            Part::At(index) => vec![*index],
            Part::Many(indices) => match r.known_indices(indices)? {
                Some((known, dims)) if dims.len() == 1 => known,
                _ => return refuse("several arrays of indices that are recorded or no vectors"),
            },
            _ => return refuse("several arrays of indices"),
        });
    }
    let count = columns.iter().map(Vec::len).max().unwrap_or(0);
    if columns.iter().any(|column| column.len() != count && column.len() != 1) {
        return refuse("arrays of indices of different lengths");
    }
    let made = (0..count).map(|number| {
        let mut part = x.clone();
        for column in &columns {
            part = r.at(&part, at, column[if column.len() == 1 { 0 } else { number }])?;
        }
        let mut dims = part.dims.clone();
        dims.insert(at, 1);
        r.reshaped(&part, dims)
    });
    one(r.joined(&made.collect::<Made<Vec<_>>>()?, at)?)
}

fn part<'py>(item: &Bound<'py, PyAny>, extent: u32) -> Made<Part<'py>> {
    if item.is_instance_of::<PyBool>() {
        return refuse("an index that is a truth value");
    }
    if let Ok(slice) = item.cast::<PySlice>() {
        let range = slice.indices(extent as isize)?;
        if range.slicelength == 0 {
            return refuse("a slice without elements");
        }
        if range.step > 1 {
            return Ok(Part::Steps(range.start as u32, range.step as u32, range.slicelength as u32));
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

    /// Reads indices.
    fn indices(&mut self, any: &Bound<'_, PyAny>) -> Made<(Vec<Index<'g>>, Dims)> {
        let (indices, dims) = match self.known_indices(any)? {
            Some((known, dims)) => (known.into_iter().map(Index::Known).collect::<Vec<_>>(), dims),
            None => {
                let recorded = self.tensor(any)?;
                if recorded.kind != Kind::Int {
                    return refuse("indices that are no ints");
                }
                let flat = Dims::from_slice(&[elements(&recorded.dims) as u32]);
                let rows = self.rows(&self.reshaped(&recorded, flat)?)?;
                (rows.into_iter().map(Index::Recorded).collect(), recorded.dims)
            }
        };
        match indices.is_empty() {
            true => refuse("no indices"),
            false => Ok((indices, dims)),
        }
    }

    /// Elements of a vector, or the scalar itself.
    fn picked(&self, x: &Tensor, indices: &[Index<'g>], dims: Dims) -> Made<Tensor> {
        let values = indices.iter().map(|&index| match index {
            _ if x.rank() == 0 => self.whole(x),
            Index::Known(index) => self.whole(&self.at(x, 0, index)?),
            Index::Recorded(index) => match x.dims[0] {
                1 => self.whole(x),
                count => Ok(self.whole_as(x, &[count])?.pick(index)),
            },
        });
        let flat = Dims::from_slice(&[indices.len() as u32]);
        let made = self.made_of_rows(values.collect::<Made<Vec<_>>>()?, flat)?;
        self.reshaped(&made, dims)
    }

    /// Parts at indices of an axis.
    fn gathered(&mut self, x: &Tensor, at: usize, indices: &Bound<'_, PyAny>) -> Made<Tensor> {
        let (indices, dims) = self.indices(indices)?;
        if x.rank() == 0 {
            return refuse("an index of a scalar");
        }
        let mut first_last: SmallVec<[usize; 5]> = (0..x.rank()).filter(|&axis| axis != at).collect();
        first_last.insert(0, at);
        let parts = indices.iter().map(|&index| {
            let part = match index {
                Index::Known(index) => self.at(x, at, index)?,
                Index::Recorded(_) if x.dims[at] == 1 => self.at(x, at, 0)?,
                Index::Recorded(index) => {
                    let turned = self.permuted(x, &first_last)?;
                    let row = without(&x.dims, &[at], false);
                    let made = self.made(shaped(self.whole(&turned)?.pick(index), core(&row)), row)?;
                    Tensor { kind: x.kind, grad: x.grad, stopped: x.stopped, ..made }
                }
            };
            let mut dims = part.dims.clone();
            dims.insert(at, 1);
            self.reshaped(&part, dims)
        });
        let joined = self.joined(&parts.collect::<Made<Vec<_>>>()?, at)?;
        let all: Dims = x.dims[..at].iter().chain(&dims).chain(&x.dims[at + 1..]).copied().collect();
        self.reshaped(&joined, all)
    }

    /// Rows of a table as a tensor.
    fn table_rows(&mut self, rows: Vec<Value<'g>>, dims: Dims) -> Made<Tensor> {
        let flat: Dims = [rows.len() as u32, dims[dims.len() - 1]].into_iter().collect();
        // A table of one column has rows without extents.
        let rows = rows.into_iter().map(|row| {
            let wanted = core(&flat[1..]);
            shaped(row, wanted)
        });
        let made = self.made_of_rows(rows.collect(), flat)?;
        self.reshaped(&made, dims)
    }
}

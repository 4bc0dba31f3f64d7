//! Functions of several expressions, rows of tables, and steps of recurrent layers.

use super::batched::Batched;
use super::{Known, PyExpression};
use crate::graph::current;
use crate::module::{PyCell, PyTable};
use autobatch::ir::Graph;
use autobatch::ir::graph::{Arg, Value};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::sync::Arc;

/// Reads expressions without a batch. `None` if there is none, or if one has a batch.
fn unbatched(items: &Bound<'_, PyAny>) -> PyResult<Option<SmallVec<[Known; 8]>>> {
    let mut known = SmallVec::new();
    for item in items.try_iter()? {
        let Ok(item) = item?.cast_into::<PyExpression>() else { return Ok(None) };
        let own = Known::of(&item)?;
        if own.b != 1 {
            return Ok(None);
        }
        known.push(own);
    }
    Ok((!known.is_empty()).then_some(known))
}

/// Emits an expression of several values, or none.
fn emit(
    py: Python<'_>,
    known: &[Known],
    f: impl for<'g> FnOnce(&'g Graph, SmallVec<[Value<'g>; 8]>) -> Option<Value<'g>>,
) -> PyResult<Option<PyExpression>> {
    let Some(first) = known.first() else { return Ok(None) };
    let mut is_made = false;
    let made = first.emit(py, |graph, x| {
        let values = known.iter().map(|own| Ok(own.get(graph)?.value)).collect::<PyResult<_>>()?;
        let made = f(graph, values);
        is_made = made.is_some();
        Ok(Batched::new(made.unwrap_or(x.value), 1))
    })?;
    Ok(is_made.then_some(made))
}

#[pymethods]
impl PyExpression {
    /// The concatenation of vectors, or the vector of scalars, without a batch; `None` for anything else.
    #[staticmethod]
    fn join(items: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Some(known) = unbatched(items)? else { return Ok(None) };
        emit(items.py(), &known, |g, values| {
            let rank = values.first()?.shape().rank();
            if rank > 1 || values.iter().any(|value| value.shape().rank() != rank) {
                return None;
            }
            Some(if rank == 0 { g.stack(values) } else { g.concat(values) })
        })
    }

    /// The sum of values of one shape without a batch; `None` for anything else.
    #[staticmethod]
    fn sum_of(items: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let Some(known) = unbatched(items)? else { return Ok(None) };
        emit(items.py(), &known, |g, values| {
            let shape = values.first()?.shape();
            let equal = values.iter().all(|value| value.shape() == shape);
            equal.then(|| if values.len() == 1 { values[0] } else { g.list(values).sum() })
        })
    }

    /// A row of a table.
    #[staticmethod]
    fn row_of(py: Python<'_>, table: &PyTable, index: i64) -> PyResult<Self> {
        let row = u32::try_from(index).ok().filter(|&row| row < table.rows).ok_or_else(|| {
            PyIndexError::new_err(format!("row {index} of a table with {} rows", table.rows))
        })?;
        let graph = current()?;
        let key = graph.emit(py, |g| Ok(table.table.lookup(g, row).key()))?;
        let key = key.ok_or_else(|| crate::error::EmitError::new_err("the value is poison"))?;
        Ok(Self::made(graph, key, 1))
    }

    /// The results of a cell that takes these expressions; `None` if one has a batch.
    #[staticmethod]
    fn step_of(py: Python<'_>, cell: &PyCell, items: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Self>>> {
        let Some(known) = unbatched(items)? else { return Ok(None) };
        let graph = &known[0].graph;
        let keys = graph.emit(py, |g| {
            let args = known.iter().map(|own| Ok(Arg::Value(own.get(g)?.value)));
            let args = args.collect::<PyResult<SmallVec<[Arg<'_>; 8]>>>()?;
            let results = g.call_any(cell.cell, args).into_iter().map(Value::key);
            Ok(results.collect::<SmallVec<[_; 2]>>())
        })?;
        let made = keys.into_iter().flatten().map(|key| Self::made(Arc::clone(graph), key, 1));
        Ok(Some(made.collect()))
    }
}

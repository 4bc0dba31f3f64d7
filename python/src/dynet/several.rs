//! Functions of several expressions, rows of tables, and steps of recurrent layers.

use super::batched::Batched;
use super::{Known, PyExpression, poison};
use crate::graph::current;
use crate::module::{PyCell, PyTable};
use crate::value::floats;
use autobatch::ir::Graph;
use autobatch::ir::graph::{Arg, Value};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList};
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
    first.emit_some(py, |graph, _| {
        let values = known.iter().map(|own| Ok(own.get(graph)?.value)).collect::<PyResult<_>>()?;
        Ok(f(graph, values).map(|value| Batched::new(value, 1)))
    })
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
        Ok(Self::made(graph, key.ok_or_else(poison)?, 1))
    }

    /// A step of recurrent layers, each a cell of an input and its states: the new states of each layer, the output first. `None` if
    /// an expression has a batch.
    #[staticmethod]
    fn steps_of<'py>(
        py: Python<'py>,
        cells: Vec<PyRef<'py, PyCell>>,
        x: &Bound<'py, Self>,
        states: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let x = Known::of(x)?;
        let known = states.iter().map(unbatched).collect::<PyResult<Option<Vec<_>>>>()?;
        let Some(known) = known.filter(|_| x.b == 1) else { return Ok(None) };
        let steps = x.graph.emit(py, |g| {
            let mut input = x.get(g)?.vector().value;
            let steps = cells.iter().zip(&known).map(|(cell, states)| {
                let mut args = SmallVec::<[Arg<'_>; 4]>::from_iter([Arg::Value(input)]);
                for state in states {
                    args.push(Arg::Value(state.get(g)?.value));
                }
                let results = g.call_any(cell.cell, args);
                input = results.first().copied().unwrap_or(input);
                Ok(results.into_iter().map(Value::key).collect::<SmallVec<[_; 2]>>())
            });
            steps.collect::<PyResult<Vec<_>>>()
        })?;
        let made = steps.into_iter().map(|keys| {
            let made =
                keys.into_iter().map(|key| Ok(Self::made(Arc::clone(&x.graph), key.ok_or_else(poison)?, 1)));
            PyList::new(py, made.collect::<PyResult<Vec<_>>>()?)
        });
        Ok(Some(PyList::new(py, made.collect::<PyResult<Vec<_>>>()?)?))
    }

    /// Numbers as an input, in the native layout.
    #[staticmethod]
    #[pyo3(signature = (numbers, b = 1))]
    fn input_of(numbers: &Bound<'_, PyAny>, b: usize) -> PyResult<Self> {
        let (dims, elements) = if numbers.is_instance_of::<PyFloat>() {
            (Vec::new(), vec![numbers.extract()?])
        } else if let Some(elements) = numbers.cast::<PyList>().ok().and_then(|list| list.extract().ok()) {
            let elements: Vec<f32> = elements;
            (vec![elements.len()], elements)
        } else {
            floats(numbers)?
        };
        let graph = current()?;
        let key = graph.emit(numbers.py(), |g| Ok(g.input_shaped(&dims[..], &elements).key()))?;
        Ok(Self::made(graph, key.ok_or_else(poison)?, b))
    }
}

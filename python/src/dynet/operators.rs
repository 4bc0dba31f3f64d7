//! The operators of expressions.

use super::batched::{Batched, Binary};
use super::products::{product, shape_of};
use super::{Known, PyExpression};
use crate::value::{PyValue, own_value};
use autobatch::ir::Shape;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

/// The second operand of an operator.
pub(super) enum Operand {
    Expression(Known),
    Number(f32),
}

impl Operand {
    pub(super) fn of(any: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(expression) = any.cast::<PyExpression>() {
            return Known::of(expression).map(Self::Expression);
        }
        any.extract()
            .map(Self::Number)
            .map_err(|_| PyTypeError::new_err(format!("expected an expression or a number, found {any:?}")))
    }
}

impl PyExpression {
    /// Emits an op of this expression and an operand.
    pub(super) fn binary(slf: &Bound<'_, Self>, op: Binary, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        let operand = Operand::of(other)?;
        Self::emit(slf, |graph, x| match &operand {
            Operand::Number(number) => x.elementwise(op, Batched::new(graph.fill(Shape::SCALAR, *number), 1)),
            Operand::Expression(y) => x.elementwise(op, y.get(graph)?),
        })
    }

    /// This product and a bias as one node, if the other expression is a parameter of the shape of the product.
    fn with_bias(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let held = slf.borrow();
        let (Some((rows, weight)), Some((graph, key))) = (held.factors, &held.value) else { return Ok(None) };
        let Ok(other) = other.cast::<Self>() else { return Ok(None) };
        let Some(bias) = Self::param(other)? else { return Ok(None) };
        let known = Known { graph: graph.clone(), key: *key, b: held.b };
        drop(held);
        known.emit_some(slf.py(), |graph, x| {
            let extents = x.extents();
            if extents[..] == [1] || shape_of(graph, bias) != Some(extents) {
                return Ok(None);
            }
            Ok(Some(Batched::new(own_value(graph, rows)?.affine(weight, Some(bias)), x.b)))
        })
    }
}

#[pymethods]
impl PyExpression {
    /// The matrix with its axes swapped. A vector becomes a row.
    fn transposed(slf: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        let known = Known::of(slf)?;
        if known.read(|x| Ok(x.extents().is_empty()))? {
            return Ok(slf.clone().unbind());
        }
        let transposed = known.emit(slf.py(), |graph, x| match x.extents()[..] {
            [n] => Ok(x.reshaped(&[n, 1])),
            // A vector of one axis of extent 1 keeps its elements in their order.
            [m, n] if m == 1 || n == 1 => Ok(x.reshaped(&[n, m])),
            [_, _] if x.b == 1 => Ok(Batched::new(x.value.t(), 1)),
            [_, _] => {
                let parts = (0..x.b).map(|number| x.element(number).value.t());
                Ok(Batched::new(graph.stack(parts.collect::<Vec<_>>()), x.b))
            }
            _ => Err(PyValueError::new_err(format!("a transpose takes a matrix, found {}", x.spelled()))),
        })?;
        Py::new(slf.py(), transposed)
    }

    fn __neg__(slf: &Bound<'_, Self>) -> PyResult<Self> {
        Self::apply(slf, |x| -x)
    }

    fn __add__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        match Self::with_bias(slf, other)? {
            Some(joined) => Ok(joined),
            None => Self::binary(slf, Binary::Add, other),
        }
    }

    fn __radd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::binary(slf, Binary::Add, other)
    }

    fn __sub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::binary(slf, Binary::Sub, other)
    }

    fn __rsub__(slf: &Bound<'_, Self>, other: f32) -> PyResult<Self> {
        Self::apply(slf, |x| other - x)
    }

    fn __mul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        match other.cast::<Self>() {
            Ok(other) => product(slf, other),
            Err(_) => Self::binary(slf, Binary::Mul, other),
        }
    }

    fn __rmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::binary(slf, Binary::Mul, other)
    }

    fn __truediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::binary(slf, Binary::Div, other)
    }

    fn __rtruediv__(slf: &Bound<'_, Self>, other: f32) -> PyResult<Self> {
        Self::apply(slf, |x| other / x)
    }

    fn __pow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Self::binary(slf, Binary::Pow, other)
    }

    /// The elements at an index of an axis.
    #[pyo3(signature = (index = 0, dim = 0))]
    fn pick(slf: &Bound<'_, Self>, index: i64, dim: usize) -> PyResult<Py<Self>> {
        let known = Known::of(slf)?;
        let rank = known.read(|x| Ok(x.extents().len()))?;
        if rank == 0 {
            return Ok(slf.clone().unbind());
        }
        let picked = known.emit(slf.py(), |_, x| {
            let extents = x.extents();
            let axis = rank.checked_sub(1 + dim);
            let extent = axis.map_or(1, |axis| extents[axis]);
            let index = u32::try_from(index).ok().filter(|&index| index < extent).ok_or_else(|| {
                let dim = x.spelled();
                PyValueError::new_err(format!(
                    "pick needs an index below {extent}, found {index} for the dimension {dim}"
                ))
            })?;
            let Some(axis) = axis else { return Ok(x) };
            if axis == 0 && x.b == 1 {
                return Ok(Batched::new(x.value.pick(index), 1));
            }
            let mut kept = extents;
            kept.remove(axis);
            if !kept.is_empty() && kept.iter().all(|&extent| extent == 1) {
                kept.clear();
            }
            let (start, outer) = (index as usize, usize::from(x.b > 1));
            Ok(Batched::new(x.value.slice_axis(axis + outer, start..start + 1), x.b).reshaped(&kept))
        })?;
        Py::new(slf.py(), picked)
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let Ok(number) = index.extract::<i64>() else {
            return slf.call_method1(intern!(slf.py(), "at"), (index,));
        };
        let rows = Known::of(slf)?.read(|x| Ok(i64::from(x.dims()[0])))?;
        if !(-rows..rows).contains(&number) {
            return Err(PyIndexError::new_err(format!("row {number} of {rows} rows")));
        }
        Ok(Self::pick(slf, number.rem_euclid(rows), 0)?.into_bound(slf.py()).into_any())
    }

    fn __len__(slf: &Bound<'_, Self>) -> PyResult<usize> {
        Known::of(slf)?.read(|x| Ok(x.dims()[0] as usize))
    }

    /// The native value, repeated for each element of a batch.
    fn repeated(slf: &Bound<'_, Self>, b: usize) -> PyResult<Option<PyValue>> {
        Self::emit(slf, |_, x| Ok(x.repeated(b))).map(|made| made.v())
    }
}

//! Functions of each element, of rows, and losses.

use super::batched::{Batched, Binary};
use super::{Known, PyExpression};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

macro_rules! unary {
    ($($(#[$doc:meta])* $python:ident => $name:ident),* $(,)?) => {
        #[pymethods]
        impl PyExpression {
            $($(#[$doc])* fn $python(slf: &Bound<'_, Self>) -> PyResult<Self> { Self::apply(slf, |x| x.$name()) })*
        }
    };
}

unary! {
    /// `|x|`
    abs => abs,
    /// `e^x`
    exp => exp,
    /// The natural logarithm.
    log => log,
    /// The square root.
    sqrt => sqrt,
    /// `x^2`
    square => square,
    /// The sine.
    sin => sin,
    /// The cosine.
    cos => cos,
    /// The error function.
    erf => erf,
    /// The hyperbolic tangent.
    tanh => tanh,
    /// `1 / (1 + e^-x)`
    logistic => sigmoid,
    /// `max(x, 0)`
    rectify => relu,
    /// The identity with derivative zero.
    nobackprop => stop_gradient,
    /// `e^x / sum e^x` of each column.
    softmax_columns => softmax,
}

macro_rules! binary {
    ($($(#[$doc:meta])* $python:ident => $op:ident),* $(,)?) => {
        #[pymethods]
        impl PyExpression {
            $($(#[$doc])* fn $python(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Self> {
                Self::binary(slf, Binary::$op, other)
            })*
        }
    };
}

binary! {
    /// The elementwise product.
    cmult => Mul,
    /// The elementwise quotient.
    cdiv => Div,
    /// Adds a vector to each column.
    colwise_add => Add,
    /// The smaller of two elements.
    bmin => Min,
    /// The larger of two elements.
    bmax => Max,
}

#[pymethods]
impl PyExpression {
    /// The sum of all elements.
    fn sum_elems(slf: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        Self::of_all_elements(slf, |x| Batched::new(x.value.sum_rows(), x.b))
    }

    /// The mean of all elements.
    fn mean_elems(slf: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        Self::of_all_elements(slf, |x| Batched::new(x.value.mean_rows(), x.b))
    }

    /// `-log_softmax(x)[v]`
    fn pickneglogsoftmax(slf: &Bound<'_, Self>, v: i64) -> PyResult<Self> {
        Self::emit(slf, |graph, x| {
            let (x, label) = (x.vector(), label(x, v)?);
            let loss = match x.b {
                1 => x.value.cross_entropy(label),
                b => x.value.cross_entropy(graph.indices(&vec![label; b])),
            };
            Ok(Batched::new(loss, x.b))
        })
    }
}

impl PyExpression {
    /// Reduces the elements, as one row for each element of the batch. A number stays as it is.
    fn of_all_elements(
        slf: &Bound<'_, Self>,
        f: impl for<'g> FnOnce(Batched<'g>) -> Batched<'g>,
    ) -> PyResult<Py<Self>> {
        let known = Known::of(slf)?;
        if known.read(|x| Ok(x.extents().is_empty()))? {
            return Ok(slf.clone().unbind());
        }
        let made = known.emit(slf.py(), |_, x| Ok(f(x.reshaped(&[x.extents().iter().product()]))))?;
        Py::new(slf.py(), made)
    }
}

/// A label of scores, which must exist.
fn label(x: Batched<'_>, v: i64) -> PyResult<u32> {
    let classes = x.extents().last().copied().unwrap_or(1);
    u32::try_from(v).ok().filter(|&label| label < classes).ok_or_else(|| {
        let dim = x.spelled();
        PyValueError::new_err(format!("a label must be below {classes}, found {v} for the dimension {dim}"))
    })
}

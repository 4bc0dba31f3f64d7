//! Methods of ops without attributes.

use super::PyValue;
use pyo3::prelude::*;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[pymethods]
        impl PyValue {
            $($(#[$doc])* fn $name(&self, py: Python<'_>) -> PyResult<Self> { self.apply(py, |x| x.$name()) })*
        }
    };
}

unary! {
    /// `|x|`
    abs,
    /// `e^x`
    exp,
    /// The natural logarithm.
    log,
    /// The square root.
    sqrt,
    /// `1 / sqrt(x)`
    rsqrt,
    /// `x * x`
    square,
    /// `1 / x`
    recip,
    /// The hyperbolic tangent.
    tanh,
    /// `1 / (1 + e^-x)`
    sigmoid,
    /// `max(x, 0)`
    relu,
    /// The Gaussian error linear unit.
    gelu,
    /// `x * sigmoid(x)`
    silu,
    /// `log(1 + e^x)`
    softplus,
    /// The sine.
    sin,
    /// The cosine.
    cos,
    /// The error function.
    erf,
    /// -1, 0 or 1.
    sign,
    /// `e^x / sum e^x` of each row.
    softmax,
    /// `log(softmax(x))` of each row.
    log_softmax,
    /// `log(sum e^x)` of each row.
    logsumexp,
    /// The Euclidean length of each row.
    norm,
    /// The index of the largest element of each row.
    argmax,
    /// The identity with derivative zero.
    stop_gradient,
    /// The sum of each row.
    sum_rows,
    /// The mean of each row.
    mean_rows,
    /// The largest element of each row.
    max_rows,
    /// The smallest element of each row.
    min_rows,
    /// The smallest element.
    min,
    /// The matrix with its axes swapped.
    t,
    /// The sum of all elements; of a list, the elementwise sum of its values.
    sum,
    /// The mean of all elements; of a list, the elementwise mean of its values.
    mean,
    /// The largest element; of a list, the elementwise maximum of its values.
    max,
    /// Declares that every batch that reads this value reads it in all its rows.
    shared,
    /// Makes the node of this value a batch of its own.
    alone,
}

macro_rules! binary {
    ($($(#[$doc:meta])* $python:ident => $name:ident),* $(,)?) => {
        #[pymethods]
        impl PyValue {
            $($(#[$doc])* fn $python(&self, other: &Bound<'_, PyAny>) -> PyResult<Self> {
                self.with(other, |a, b| a.$name(b), |a, b| a.$name(b))
            })*
        }
    };
}

binary! {
    /// `self ^ other`
    pow => pow,
    /// The smaller of the two, element by element.
    minimum => minimum,
    /// The larger of the two, element by element.
    maximum => maximum,
    /// Whether equal, element by element.
    equal => equal,
    /// Whether different, element by element.
    not_equal => not_equal,
}

//! Methods of ops without attributes.

use super::PyValue;
use autobatch::ir::graph::Value;
use pyo3::exceptions::PyIndexError;
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
    /// The matrix with its axes swapped.
    t,
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

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident, $rows:ident;)*) => {
        #[pymethods]
        impl PyValue {
            $($(#[$doc])*
            #[pyo3(signature = (axis = None))]
            fn $name(&self, py: Python<'_>, axis: Option<i64>) -> PyResult<Self> {
                match axis {
                    None => self.apply(py, |x| x.$name()),
                    Some(axis) => self.along(py, axis, |x| x.$rows()),
                }
            })*
        }
    };
}

reductions! {
    /// The sum of all elements, or along an axis; of a list, the elementwise sum of its values.
    sum, sum_rows;
    /// The mean of all elements, or along an axis; of a list, the elementwise mean of its values.
    mean, mean_rows;
    /// The largest element, or those along an axis; of a list, the elementwise maximum of its values.
    max, max_rows;
    /// The smallest element, or those along an axis.
    min, min_rows;
}

impl PyValue {
    /// Reduces an axis, counted from the end if it is negative.
    fn along(
        &self,
        py: Python<'_>,
        axis: i64,
        rows: impl for<'g> FnOnce(Value<'g>) -> Value<'g>,
    ) -> PyResult<Self> {
        let ty = self.owner().read(|graph| Ok(self.get(graph)?.ty()))?;
        let rank = ty.shape.rank();
        let from_start = if axis < 0 { axis + rank as i64 } else { axis };
        let place = usize::try_from(from_start).ok().filter(|&place| place < rank && !ty.is_list);
        let Some(place) = place else {
            return Err(PyIndexError::new_err(format!("there is no axis {axis}: the value is {ty}")));
        };
        let dims = ty.shape.dims();
        self.apply(py, |x| {
            if place + 1 == rank {
                return rows(x);
            }
            // The axis becomes the innermost one: outer axes are rows of matrices, which are transposed one by one.
            let sizes = |dims: &[u32]| dims.iter().map(|&extent| extent as usize).collect::<Vec<_>>();
            let [outer, extent, inner] = [&dims[..place], &dims[place..=place], &dims[place + 1..]]
                .map(|dims| dims.iter().product::<u32>() as usize);
            let kept = sizes(&[&dims[..place], &dims[place + 1..]].concat());
            let transposed = match outer {
                1 => x.reshape([extent, inner]).t(),
                _ => {
                    let each = x.reshape([outer, extent, inner]);
                    x.graph().stack((0..outer).map(|row| each.pick(row as u32).t()).collect::<Vec<_>>())
                }
            };
            rows(transposed).reshape(&kept[..])
        })
    }
}

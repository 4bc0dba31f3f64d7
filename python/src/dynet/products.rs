//! Matrix products.

use super::batched::{Batched, Binary, Extents, reshape};
use super::{Known, PyExpression};
use autobatch::ir::{Graph, Param};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use smallvec::SmallVec;

/// The first factor of a product: a value, and the parameter that it stands for.
#[derive(Clone, Copy)]
struct Factor<'g> {
    x: Batched<'g>,
    param: Option<Param>,
}

/// The matrix product of two expressions.
pub(super) fn product(x: &Bound<'_, PyExpression>, y: &Bound<'_, PyExpression>) -> PyResult<PyExpression> {
    let known = Known::of(y)?;
    let param = PyExpression::param(x)?;
    let mut factors = None;
    let mut made = match param {
        // The parameter is read in place, so its value may stay out of the graph.
        Some(param) => known.emit_some(x.py(), |g, y| {
            let made = is_plain(g, param, y).then(|| Batched::new(y.value.affine(param, None), y.b));
            factors = made.map(|_| (known.key, param));
            Ok(made)
        })?,
        None => None,
    };
    if let Some(made) = &mut made {
        made.factors = factors;
    }
    match made {
        Some(made) => Ok(made),
        None => {
            let first = Known::of(x)?;
            known.emit(x.py(), |g, y| multiplied(Factor { x: first.get(g)?, param }, y))
        }
    }
}

/// Whether a parameter is a matrix of several rows, and the other factor a vector.
fn is_plain(graph: &Graph, param: Param, y: Batched<'_>) -> bool {
    shape_of(graph, param).is_some_and(|shape| matches!(shape[..], [_, n] if n > 1)) && y.extents().len() == 1
}

/// The shape of a parameter.
pub(super) fn shape_of(graph: &Graph, param: Param) -> Option<Extents> {
    param.id().map(|id| graph.data().module.params[id.index()].ty.shape.dims().into())
}

fn multiplied<'g>(factor: Factor<'g>, y: Batched<'g>) -> PyResult<Batched<'g>> {
    let Factor { x, param } = factor;
    let (one, other) = (x.extents(), y.extents());
    if one.is_empty() || other.is_empty() {
        return x.vector().elementwise(Binary::Mul, y);
    }
    if x.b > 1 {
        if y.b != 1 && y.b != x.b {
            return Err(x.differs(y, "the batch sizes differ"));
        }
        let each = |number| multiplied(Factor { x: x.element(number), param: None }, y.element(number));
        let products = (0..x.b).map(|number| each(number).map(|made| made.value));
        let graph = x.value.graph();
        return Ok(Batched::new(graph.stack(products.collect::<PyResult<Vec<_>>>()?), x.b));
    }
    let (inner, outer) = match one[..] {
        [n] => (1, n),
        [inner, outer] => (inner, outer),
        _ => return Err(x.differs(y, "a product takes matrices")),
    };
    if other.last() != Some(&inner) {
        return Err(x.differs(y, "the dimensions do not fit"));
    }
    let shape = y.value.shape();
    let rows =
        if shape.rank() < 3 { y.value } else { reshape(y.value, &[shape.elements() as u32 / inner, inner]) };
    let result = match param {
        Some(param) if one.len() == 2 => rows.affine(param, None),
        _ => rows.matmul(x.reshaped(&[inner, outer]).value),
    };
    let mut full: Extents = shape.dims()[..shape.rank() - 1].into();
    if outer != 1 || other.len() != 1 {
        full.push(outer);
    }
    let result = if *result.shape().dims() == full[..] { result } else { reshape(result, &full) };
    Ok(Batched::new(result, y.b))
}

/// A weight, the parameter that it stands for, and its operand.
struct Term<'a, 'py> {
    weight: &'a Bound<'py, PyExpression>,
    param: Option<Param>,
    operand: Known,
}

#[pymethods]
impl PyExpression {
    /// `b + W1 x1 + W2 x2 ...`
    #[staticmethod]
    fn affine_transform(exprs: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = exprs.py();
        let exprs = exprs.try_iter()?.map(|expression| Ok(expression?.cast_into::<Self>()?));
        let exprs: SmallVec<[_; 6]> = exprs.collect::<PyResult<_>>()?;
        let Some((bias, pairs)) = exprs.split_first().filter(|(_, pairs)| pairs.len() % 2 == 0) else {
            return Err(PyValueError::new_err(
                "affine_transform takes a bias, then weights and operands by turns",
            ));
        };
        let terms = pairs.chunks_exact(2).map(|pair| {
            Ok(Term { weight: &pair[0], param: Self::param(&pair[0])?, operand: Known::of(&pair[1])? })
        });
        let terms: SmallVec<[Term<'_, '_>; 4]> = terms.collect::<PyResult<_>>()?;
        if let Some(bias) = Self::param(bias)?
            && let Some(sum) = sum_in_place(py, bias, &terms)?
        {
            return Ok(sum);
        }
        let first = Known::of(bias)?;
        let weights = terms.iter().map(|term| Known::of(term.weight)).collect::<PyResult<Vec<_>>>()?;
        first.emit(py, |g, bias| {
            terms.iter().zip(&weights).try_fold(bias.vector(), |sum, (term, weight)| {
                let factor = Factor { x: weight.get(g)?, param: term.param };
                sum.elementwise(Binary::Add, multiplied(factor, term.operand.get(g)?.vector())?)
            })
        })
    }
}

/// The sum of products with parameters and of a bias, all read in place; `None` if a part is no parameter or has to be repeated.
fn sum_in_place(py: Python<'_>, bias: Param, terms: &[Term<'_, '_>]) -> PyResult<Option<PyExpression>> {
    let [first, ..] = terms else { return Ok(None) };
    first.operand.emit_some(py, |g, _| {
        let Some(shape) = shape_of(g, bias).filter(|shape| matches!(shape[..], [n] if n > 1)) else {
            return Ok(None);
        };
        let mut operands = SmallVec::<[_; 4]>::new();
        let mut outer = None;
        for term in terms {
            let x = term.operand.get(g)?.vector();
            let (own, Some(weight)) = (x.value.shape(), term.param) else { return Ok(None) };
            let [rows @ .., width] = own.dims() else { return Ok(None) };
            let rows = (x.b, Extents::from(rows));
            if rows.1.len() > 1
                || shape_of(g, weight).is_none_or(|own| own[..] != [*width, shape[0]])
                || outer.get_or_insert_with(|| rows.clone()) != &rows
            {
                return Ok(None);
            }
            operands.push((x, weight));
        }
        let sum = operands.into_iter().fold(None, |sum: Option<Batched<'_>>, (x, weight)| {
            let value = match sum {
                None => x.value.affine(weight, Some(bias)),
                Some(sum) => sum.value + x.value.affine(weight, None),
            };
            Some(Batched::new(value, x.b))
        });
        Ok(sum)
    })
}

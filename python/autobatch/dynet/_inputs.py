"""Expressions of numbers, parameters and random numbers."""

import numpy as np

import autobatch as ab

from ._elements import nobackprop
from ._engine import ENGINE
from ._expression import Expression
from .config import Defaults


from .config import Defaults


def bind(array, b=1):
    """Numbers in the native layout as an expression."""
    if ENGINE.graph is None:
        ENGINE.open()
    return Expression.input_of(array, b)


def native_shape(dim, batch_size=1):
    """The native shape of DyNet's extents."""
    dims = tuple(dim) if np.ndim(dim) else (int(dim),)
    own = () if dims == (1,) else tuple(int(extent) for extent in reversed(dims))
    return (batch_size, *own) if batch_size > 1 else own


def scalarInput(s, device=""):
    """A number."""
    return bind(float(s))


def inputVector(v, device=""):
    """A vector of numbers."""
    return bind(v if len(v) != 1 else float(v[0]))


def inputMatrix(v, d):
    """Numbers column by column as a matrix."""
    return bind(np.asarray(v, dtype=np.float32).reshape(native_shape(d)))


def inputTensor(arr, batched=False, device="", reusable_expr=False):
    """An array; with `batched`, its last axis is the batch."""
    array = np.asarray(arr, dtype=np.float32)
    b = array.shape[-1] if batched else 1
    dims = array.shape[:-1] if batched else array.shape
    return bind(array.T.reshape(native_shape(dims or (1,), b)), b)


def sparse_inputTensor(idxs, values, shape, batched=False, defval=0, device=""):
    """An array that has one value except at some places."""
    array = np.full(shape, defval, dtype=np.float32)
    array[tuple(np.asarray(idxs))] = values
    return inputTensor(array, batched)


def vecInput(dim, device=""):
    """A vector of zeros, whose numbers `set` replaces."""
    return bind(np.zeros(native_shape(dim)))


def matInput(d1, d2):
    """A matrix of zeros, whose numbers `set` replaces."""
    return bind(np.zeros(native_shape((d1, d2))))


def one_hot(d, idx, device=""):
    """1 at an index, 0 elsewhere."""
    return inputTensor(np.eye(1, d, idx)[0])


def constant(dim, val, batch_size=1):
    """Every element is one number."""
    ENGINE.open()
    return Expression(ab.fill(native_shape(dim, batch_size), float(val)), batch_size)


def zeros(dim, batch_size=1):
    """Zeros."""
    return constant(dim, 0.0, batch_size)


zeroes = zeros


def ones(dim, batch_size=1):
    """Ones."""
    return constant(dim, 1.0, batch_size)


def random_normal(dim, mean=0.0, stddev=1.0, batch_size=1):
    """Normally distributed numbers."""
    return bind(Defaults.random.normal(mean, stddev, native_shape(dim, batch_size)), batch_size)


def random_bernoulli(dim, p, scale=1.0, batch_size=1):
    """`scale` with probability `p`, 0 otherwise."""
    return bind((Defaults.random.random(native_shape(dim, batch_size)) < p) * scale, batch_size)


def random_uniform(dim, left, right, batch_size=1):
    """Uniformly distributed numbers."""
    return bind(Defaults.random.uniform(left, right, native_shape(dim, batch_size)), batch_size)


def random_gumbel(dim, mu=0.0, beta=1.0, batch_size=1):
    """Numbers of Gumbel's distribution."""
    return bind(Defaults.random.gumbel(mu, beta, native_shape(dim, batch_size)), batch_size)


def parameter(*parameters):
    """Returns parameters as expressions."""
    found = [stored.expr() for stored in parameters]
    return found[0] if len(found) == 1 else found


def const_parameter(*parameters):
    """Returns parameters as expressions without gradients."""
    found = [stored.expr(False) for stored in parameters]
    return found[0] if len(found) == 1 else found


def lookup(p, index=0, update=True):
    """A row of a table."""
    return p[index] if update else nobackprop(p[index])


def lookup_batch(p, indices, update=True):
    """Rows of a table as a minibatch."""
    return p.batch(indices) if update else nobackprop(p.batch(indices))

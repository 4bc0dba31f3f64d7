"""Reductions of an axis, of all elements and of the minibatch."""

import math

import numpy as np

import autobatch as ab

from ._elements import abs, bmin, cmult, sqrt, square
from ._expression import Expression, each
from ._inputs import inputTensor
from ._shapes import transpose


def _flat(x):
    """The native value with the elements of each batch element in one row."""
    value, outer = x.v, (x.b,) if x.b > 1 else ()
    size = math.prod(x.extents())
    return value if len(x.extents()) == 1 else value.reshape((*outer, size))


sum_elems = Expression.sum_elems
mean_elems = Expression.mean_elems


def moment_elems(x, r):
    """The mean of the powers of all elements."""
    return mean_elems(x**float(r)) if r > 1 else mean_elems(x)


def std_elems(x):
    """The standard deviation of all elements."""
    return sqrt(mean_elems(square(x - mean_elems(x))))


def sum_batches(x):
    """The sum over the minibatch."""
    if x.b == 1:
        return x
    if not x.extents():
        return Expression(x.v.sum())
    row = ab.fill((x.b,), 1.0).matmul(_flat(x))
    return Expression(row.reshape(x.extents()))


def mean_batches(x):
    """The mean over the minibatch."""
    return sum_batches(x) * (1.0 / x.b)


def moment_batches(x, r):
    """The mean of the powers over the minibatch."""
    return mean_batches(x**float(r)) if r > 1 else mean_batches(x)


def std_batches(x):
    """The standard deviation over the minibatch."""
    return sqrt(mean_batches(square(x - mean_batches(x))))


def _along(x, d, method):
    """Reduces one axis with a native method that reduces rows."""
    extents = x.extents()
    if d >= len(extents):
        return x
    if d == 0:
        return Expression(getattr(x.vector() if extents[0] == 1 else x.v, method)(), x.b)
    if len(extents) == 2:
        return each(lambda x: Expression(getattr(x.v.t(), method)()), x)
    raise NotImplementedError(f"a reduction of axis {d} of {x.dim()}; reshape it to a matrix")


def sum_dim(x, d, b=False, n=0):
    """The sum along axes, and over the minibatch with `b`."""
    for axis in sorted(d, reverse=True):
        x = _along(x, axis, "sum_rows")
    return sum_batches(x) if b else x


def mean_dim(x, d, b=False, n=0):
    """The mean along axes, and over the minibatch with `b`."""
    for axis in sorted(d, reverse=True):
        x = _along(x, axis, "mean_rows")
    return mean_batches(x) if b else x


def moment_dim(x, d, r, b=False, n=0):
    """The mean of the powers along axes."""
    return mean_dim(x**float(r) if r > 1 else x, d, b, n)


def std_dim(x, d, b=False, n=0):
    """The standard deviation along axes."""
    return sqrt(mean_dim(square(x), d, b, n) - square(mean_dim(x, d, b, n)))


def max_dim(x, d=0):
    """The largest elements along an axis."""
    return _along(x, d, "max_rows")


def min_dim(x, d=0):
    """The smallest elements along an axis."""
    return _along(x, d, "min_rows")


def logsumexp_dim(x, d=0):
    """`log(sum e^x)` along an axis."""
    return _along(x, d, "logsumexp")


def cumsum(x, d=0):
    """The sums of all elements up to each."""
    if d == 1:
        return transpose(cumsum(transpose(x)))
    size = x.extents()[-1]
    return inputTensor(np.tril(np.ones((size, size)))) * x


def dot_product(x, y):
    """The inner product."""
    return sum_elems(cmult(x, y))


trace_of_product = dot_product


def squared_norm(x):
    """The sum of the squares."""
    return sum_elems(square(x))


def l2_norm(x):
    """The Euclidean length."""
    return sqrt(squared_norm(x))


def squared_distance(x, y):
    """The sum of the squared differences."""
    return squared_norm(x - y)


def l1_distance(x, y):
    """The sum of the absolute differences."""
    return sum_elems(abs(x - y))


def huber_distance(x, y, c=1.345):
    """The sum of Huber's function of the differences."""
    d = abs(x - y)
    inside = bmin(d, c)
    return sum_elems(cmult(inside, 2.0 * d - inside) * 0.5)

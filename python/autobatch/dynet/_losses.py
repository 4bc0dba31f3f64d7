"""Losses."""

import math

import autobatch as ab

from ._elements import cmult, exp, log, rectify
from ._expression import Expression
from ._shapes import transpose


def _label(x, v):
    """A label of scores, which must exist."""
    v, classes = int(v), x.extents()[-1] if x.extents() else 1
    if not 0 <= v < classes:
        raise ValueError(f"a label must be below {classes}, found {v} for the dimension {x.dim()}")
    return v


def binary_log_loss(x, y):
    """`-(y log x + (1 - y) log(1 - x))`"""
    return sum_elems(-(cmult(y, log(x)) + cmult(1.0 - y, log(1.0 - x))))


def pairwise_rank_loss(x, y, m=1.0):
    """`max(0, m - x + y)`"""
    return rectify(y - x + m)


def poisson_loss(log_lambda, x):
    """The negative logarithm of a Poisson probability."""
    return exp(log_lambda) - log_lambda * float(x) + math.lgamma(x + 1)


sum_elems = Expression.sum_elems
pickneglogsoftmax = Expression.pickneglogsoftmax


def pickneglogsoftmax_batch(x, vs):
    """`pickneglogsoftmax` of a minibatch."""
    vs = [_label(x, v) for v in vs]
    if len(vs) == 1:
        return pickneglogsoftmax(x, vs[0])
    x = Expression(x.vector(), x.b)
    return Expression(x.repeated(len(vs)).cross_entropy(ab.indices(vs)), len(vs))


def hinge(x, v, m=1.0):
    """The margin loss."""
    return Expression(x.vector().hinge(_label(x, v), m)) if x.b == 1 else hinge_batch(x, [v] * x.b, m)


def hinge_batch(x, vs, m=1.0):
    """The margin loss of a minibatch."""
    vs = [_label(x, v) for v in vs]
    if len(vs) == 1:
        return hinge(x, vs[0], m)
    x = Expression(x.vector(), x.b)
    return Expression(x.repeated(len(vs)).hinge(ab.indices(vs), m), len(vs))


def hinge_dim(x, v, d=0, m=1.0):
    """The margin loss along an axis of a matrix."""
    rows = x.v if d == 0 else x.v.t()
    return Expression(rows.hinge(ab.indices([int(label) for label in v]), m))


def softmax(x, d=0):
    """`e^x / sum e^x` along an axis."""
    return x.softmax_columns() if d == 0 else transpose(softmax(transpose(x)))


def log_softmax(x, restrict=None):
    """`log(softmax(x))`; `restrict` lists the legal elements."""
    value = x.v
    if restrict is not None:
        legal = set(int(index) for index in restrict)
        value = value.mask([index in legal for index in range(value.shape[-1])])
    return Expression(value.log_softmax(), x.b)

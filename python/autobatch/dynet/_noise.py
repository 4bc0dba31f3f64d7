"""Dropout and noise."""

import numpy as np

from ._expression import Expression
from ._inputs import bind
from .config import Defaults


def dropout(x, p):
    """Zero with probability `p`, scaled up elsewhere."""
    return x if p == 0 else Expression(x.v.dropout(float(p)), x.b)


def _masked(x, shape, p):
    mask = (Defaults.random.random(shape) < 1 - p) / (1 - p)
    return Expression(x.v * bind(np.broadcast_to(mask, x.v.shape)).v, x.b)


def dropout_batch(x, p):
    """Drops whole elements of a minibatch."""
    return _masked(x, (x.b,) + (1,) * len(x.extents()) if x.b > 1 else (1,) * len(x.v.shape), p)


def dropout_dim(x, d, p):
    """Drops whole slices along an axis."""
    shape = list(x.v.shape)
    shape[len(shape) - 1 - d] = 1
    return _masked(x, tuple(shape), p)


def block_dropout(x, p):
    """Drops the whole expression."""
    return _masked(x, (1,) * len(x.v.shape), p)


def noise(x, stddev):
    """Adds normally distributed noise."""
    return Expression(x.v + bind(Defaults.random.normal(0.0, stddev, x.v.shape)).v, x.b)

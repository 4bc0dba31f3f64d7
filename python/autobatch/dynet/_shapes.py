"""Transposes, slices and concatenations."""

import math

import numpy as np

import autobatch as ab

from ._expression import Expression, each, pick, sliced
from ._inputs import bind, inputTensor, native_shape


def transpose(x, dims=(1, 0)):
    """The matrix with its axes swapped."""
    if tuple(dims) != (1, 0):
        raise NotImplementedError("transpose swaps the axes of a matrix alone")
    return x.transposed()


def reshape(x, d, batch_size=1):
    """The same elements in another shape."""
    if batch_size == 1 and x.b > 1 and math.prod(native_shape(d)) == math.prod(x.extents()):
        batch_size = x.b
    return Expression(x.v.reshape(native_shape(d, batch_size)), batch_size)


def pick_batch(e, indices, dim=0):
    """One element of each element of a minibatch."""
    _check(indices, e.extents()[-1], "pick_batch")
    mask = np.zeros((len(indices), e.extents()[-1]))
    mask[np.arange(len(indices)), [int(index) for index in indices]] = 1
    if len(indices) == 1:
        return pick(e, indices[0], dim)
    return Expression((e.repeated(len(indices)) * bind(mask).v).sum_rows(), len(indices))


def pick_range(x, s, e, d=0):
    """The elements of a range of an axis."""
    return Expression(x.v.slice(int(s), int(e), len(x.v.shape) - 1 - d), x.b)


def pickrange(x, s, e):
    """`pick_range` of the first axis."""
    return pick_range(x, s, e)


def strided_select(x, strides, range_from, range_to):
    """Elements at regular distances along each axis, and of the minibatch."""
    extents = [*x.dim()[0], x.b]
    value = x.v
    for axis in range(max(len(strides), len(range_from), len(range_to))):
        low, high, step = (
            given[axis] if axis < len(given) else default
            for given, default in ((range_from, 0), (range_to, extents[axis]), (strides, 1))
        )
        if (low, high, step) == (0, extents[axis], 1):
            continue
        place = len(value.shape) - 1 - axis if axis < len(extents) - 1 else 0
        value = sliced(value, place, range(low, high, step))
    return Expression(value, value.shape[0] if x.b > 1 else 1)


def pick_batch_elem(x, v):
    """One element of a minibatch."""
    _check([v], x.b, "pick_batch_elem")
    return x if x.b == 1 else Expression(x.v.pick(int(v)))


def pick_batch_elems(x, vs):
    """Some elements of a minibatch."""
    parts = [pick_batch_elem(x, v) for v in vs]
    return concatenate_to_batch(parts)


def concatenate_to_batch(xs):
    """Expressions as the elements of a minibatch."""
    b = sum(x.b for x in xs)
    if b == 1:
        return xs[0]
    if all(x.b == 1 for x in xs):
        return Expression(ab.stack([x.v for x in xs]), b)
    return Expression(ab.concat([x.v if x.b > 1 else x.v.reshape((1, *x.v.shape)) for x in xs], 0), b)


def _check(indices, extent, what):
    """Refuses indices that do not exist."""
    for index in indices:
        if not 0 <= int(index) < extent:
            raise ValueError(f"{what} needs indices below {extent}, found {int(index)}")


def select_rows(x, rs):
    """Some rows of a matrix."""
    _check(rs, x.dim()[0][0], "select_rows")
    if len(x.extents()) == 1:
        return concatenate([pick(x, row) for row in rs])
    return transpose(select_cols(transpose(x), rs))


def select_cols(x, cs):
    """Some columns of a matrix."""
    _check(cs, x.extents()[0] if len(x.extents()) > 1 else 1, "select_cols")
    return each(lambda x: Expression(ab.stack([x.v.pick(int(column)) for column in cs])), x)


def _joined(xs, d):
    """The concatenation along an axis."""
    b = max(x.b for x in xs)
    rank = max(d + 1, max(len(x.extents()) for x in xs))
    values = []
    for x in xs:
        value, extents, outer = x.repeated(b), x.extents(), (b,) if b > 1 else ()
        if len(extents) < rank:
            value = value.reshape((*outer, *(1,) * (rank - len(extents)), *extents))
        values.append(value)
    return Expression(ab.concat(values, rank - 1 - d + (b > 1)), b)


def concatenate(xs, d=0):
    """The concatenation along an axis."""
    if d == 0:
        xs = xs if xs.__class__ is list else list(xs)
        if len(xs) == 1:
            return xs[0]
        joined = Expression.join(xs)
        if joined is not None:
            return joined
        if len(xs[0].extents()) < 2:
            # The first expression is a vector, so columns are joined as vectors.
            xs = [Expression(x.vector(), x.b) for x in xs]
    return _joined(list(xs), d)


def concatenate_cols(xs):
    """Vectors as the columns of a matrix."""
    return _joined(list(xs), 1)


def inputTensorTranspose(arr, batched=False, device=""):
    """The transpose of an array."""
    return transpose(inputTensor(arr, batched))

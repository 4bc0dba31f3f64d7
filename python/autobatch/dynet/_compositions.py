"""Functions that few programs call, composed from ops: rounding, inverse trigonometry, contractions, convolutions, selections."""

import math

import autobatch as ab

from ._elements import cdiv, cmult, log, nobackprop, rectify, sqrt, square
from ._expression import Expression, each
from ._shapes import concatenate, concatenate_cols, pick_range, transpose

WHOLE = 2.0**23
"""From here on every float is whole."""


def _through(x, made, gradient_mode):
    """A value whose gradient is zero, or that of `x`."""
    if gradient_mode == "zero_gradient":
        return made
    if gradient_mode == "straight_through_gradient":
        return x + nobackprop(made - x)
    raise ValueError(f"gradient_mode is zero_gradient or straight_through_gradient, found {gradient_mode!r}")


def _whole(x, gradient_mode, towards):
    value = x.v.stop_gradient()
    inside = value.clamp(-WHOLE, WHOLE)
    cut = inside.cast("i32").cast("f32")
    made = (value.abs() < WHOLE).select(towards(inside, cut), value)
    return _through(x, Expression(made, x.b), gradient_mode)


def floor(x, gradient_mode="zero_gradient"):
    """The largest whole number up to each element."""
    return _whole(x, gradient_mode, lambda x, cut: cut - (x < cut).cast("f32"))


def ceil(x, gradient_mode="zero_gradient"):
    """The smallest whole number from each element on."""
    return _whole(x, gradient_mode, lambda x, cut: cut + (x > cut).cast("f32"))


def round(x, gradient_mode="zero_gradient"):
    """The nearest whole number; halves go away from zero."""
    return _whole(x, gradient_mode, lambda x, cut: cut + ((x - cut).abs() >= 0.5).cast("f32") * x.sign())


def argmax(x, gradient_mode="zero_gradient"):
    """1 at the largest element of a vector, 0 elsewhere."""
    if len(x.extents()) != 1:
        raise ValueError(f"argmax takes vectors, found the dimension {x.dim()}")
    one = lambda x: Expression(ab.one_hot(x.v.stop_gradient().argmax(), x.extents()[0]))
    return _through(x, each(one, x), gradient_mode)


def atan(x):
    """The inverse tangent, within 1e-6. Three halvings of the angle make the series short."""
    for _ in range(3):
        x = cdiv(x, sqrt(square(x) + 1.0) + 1.0)
    power, total, y = x, x, square(x)
    for number in (3, 5, 7, 9, 11):
        power = cmult(power, y)
        total = total + power * ((-1.0) ** (number // 2) / number)
    return total * 8.0


def asin(x):
    """The inverse sine, within 1e-6."""
    return atan(cdiv(x, sqrt(1.0 - square(x)) + 1.0)) * 2.0


def acos(x):
    """The inverse cosine, within 1e-6."""
    return math.pi / 2 - asin(x)


def lgamma(x):
    """The logarithm of the gamma function of positive elements, by Stirling's series."""
    shifted, product = x + 6.0, x
    for number in range(1, 6):
        product = cmult(product, x + float(number))
    inverse = 1.0 / shifted
    series = cmult(inverse, 1 / 12 - cmult(square(inverse), 1 / 360 - square(inverse) * (1 / 1260)))
    return cmult(shifted - 0.5, log(shifted)) - shifted + series + 0.5 * math.log(2 * math.pi) - log(product)


def _contracted(x, y):
    """The sum over the last axis of a tensor times a vector."""
    k, *kept = x.v.shape
    return Expression(y.v.matmul(x.v.reshape((k, math.prod(kept)))).reshape(tuple(kept)))


def contract3d_1d(x, y):
    """The sum over `k` of `x[i, j, k] y[k]`."""
    return each(_contracted, x, y)


def contract3d_1d_bias(x, y, b):
    """`contract3d_1d` plus a bias."""
    return contract3d_1d(x, y) + b


def contract3d_1d_1d(x, y, z):
    """The sum over `j` and `k` of `x[i, j, k] y[k] z[j]`."""
    return each(_contracted, contract3d_1d(x, y), z)


def contract3d_1d_1d_bias(x, y, z, b):
    """`contract3d_1d_1d` plus a bias."""
    return contract3d_1d_1d(x, y, z) + b


def _rolled(v, by):
    """A vector whose last elements moved to its beginning."""
    size = v.extents()[0]
    by %= size
    return v if by == 0 else concatenate([pick_range(v, size - by, size), pick_range(v, 0, size - by)])


def circ_conv(u, v):
    """The circular convolution of two vectors."""
    return concatenate_cols([_rolled(v, by) for by in range(v.extents()[0])]) * u


def circ_corr(u, v):
    """The circular correlation of two vectors."""
    return concatenate_cols([_rolled(v, -by) for by in range(v.extents()[0])]) * u


def filter1d_narrow(x, f):
    """The convolution of the rows of a matrix with those of a filter, as a row; several filters are a third axis."""
    filters = [Expression(f.v.pick(number)) for number in range(f.v.shape[0])] if len(f.extents()) == 3 else [f]
    width = filters[0].extents()[0]
    if x.extents()[0] < width or x.extents()[-1] != filters[0].extents()[-1]:
        raise ValueError(f"the filter does not fit: {x.dim()} and {f.dim()}")

    def one(x):
        windows = [pick_range(x, at, at + width, 1) for at in range(x.extents()[0] - width + 1)]
        rows = [concatenate([_sum(cmult(window, own)) for window in windows]) for own in filters]
        return transpose(concatenate_cols(rows))
    return each(one, x)


def _sum(x):
    return Expression(x.v.sum())


def kmh_ngram(x, n):
    """The sums of `n` columns that follow one another."""
    columns = x.extents()[0] - n + 1
    total = pick_range(x, 0, columns, 1)
    for at in range(1, n):
        total = total + pick_range(x, at, at + columns, 1)
    return total


def fold_rows(x, nrows=2):
    """The sums of `nrows` rows that follow one another."""
    *outer, rows = x.v.shape
    if rows % nrows:
        raise ValueError(f"fold_rows needs a number of rows that {nrows} divides, found the dimension {x.dim()}")
    folded = Expression(x.v.reshape((*outer, rows // nrows, nrows)).sum_rows(), x.b)
    # DyNet makes a column of a vector.
    return transpose(transpose(folded)) if len(x.extents()) == 1 else folded


def kmax_pooling(x, k, d=1):
    """The `k` largest elements along an axis, in their order."""
    def of_rows(x):
        values, indices = x.v.top_k(k)
        places = indices.cast("f32")
        rank = places.shape[:-1]
        before = (places.reshape((*rank, 1, k)).broadcast((*rank, k, k)) < places.reshape((*rank, k, 1)).broadcast((*rank, k, k)))
        at = before.cast("f32").sum_rows().reshape((*rank, 1, k)).broadcast((*rank, k, k))
        target = ab.input([float(number) for number in range(k)]).reshape((*(1,) * len(rank), k, 1)).broadcast((*rank, k, k))
        chosen = at.equal(target).cast("f32") * values.reshape((*rank, 1, k)).broadcast((*rank, k, k))
        return Expression(chosen.sum_rows())
    if d == 0:
        return each(of_rows, x)
    return each(lambda x: transpose(of_rows(transpose(x))), x)


def sparsemax(x):
    """The projection of a vector to the probabilities, which has zeros."""
    def one(x):
        size = x.extents()[0]
        sorted_, _ = x.v.stop_gradient().top_k(size)
        ones = [[1.0 if column <= row else 0.0 for row in range(size)] for column in range(size)]
        sums = sorted_.matmul(ab.input(ones))
        counts = ab.input([float(number + 1) for number in range(size)])
        kept = ((counts * sorted_ + 1.0) > sums).cast("f32")
        count = kept.sum()
        border = ((kept * sorted_).sum() - 1.0) / count
        support = (x.v.stop_gradient() > border).cast("f32")
        threshold = ((support * x.v).sum() - 1.0) / count
        return rectify(Expression(x.v - threshold))
    return each(one, x)


__all__ = [
    "acos", "argmax", "asin", "atan", "ceil", "circ_conv", "circ_corr", "contract3d_1d", "contract3d_1d_1d", "contract3d_1d_1d_bias",
    "contract3d_1d_bias", "filter1d_narrow", "floor", "fold_rows", "kmax_pooling", "kmh_ngram", "lgamma", "round", "sparsemax",
]

"""The functions that make expressions from expressions."""

import math
import operator

import numpy as np

import autobatch as ab

from ._engine import ENGINE
from ._expression import Expression, aligned, each, elementwise, pick, product, sliced, with_batch
from .config import Defaults


def bind(array, b=1):
    """Numbers in the native layout as an expression."""
    if ENGINE.graph is None:
        ENGINE.open()
    return Expression(ab.input(np.array(array, dtype=np.float32, order="C")), b)


def native_shape(dim, batch_size=1):
    """The native shape of DyNet's extents."""
    dims = tuple(dim) if np.ndim(dim) else (int(dim),)
    own = () if dims == (1,) else tuple(int(extent) for extent in reversed(dims))
    return (batch_size, *own) if batch_size > 1 else own


# Inputs


def scalarInput(s, device=""):
    """A number."""
    return bind(np.float32(s))


def inputVector(v, device=""):
    """A vector of numbers."""
    return bind(v if len(v) != 1 else np.float32(v[0]))


def inputMatrix(v, d):
    """Numbers column by column as a matrix."""
    return bind(np.asarray(v, dtype=np.float32).reshape(native_shape(d)))


def inputTensor(arr, batched=False, device="", reusable_expr=False):
    """An array; with `batched`, its last axis is the batch."""
    array = np.asarray(arr, dtype=np.float32)
    b = array.shape[-1] if batched else 1
    dims = array.shape[:-1] if batched else array.shape
    return bind(array.T.reshape(native_shape(dims or (1,), b)), b)


def inputTensorTranspose(arr, batched=False, device=""):
    """The transpose of an array."""
    return transpose(inputTensor(arr, batched))


def sparse_inputTensor(idxs, values, shape, batched=False, defval=0, device=""):
    """An array that has one value except at some places."""
    array = np.full(shape, defval, dtype=np.float32)
    array[tuple(np.asarray(idxs))] = values
    return inputTensor(array, batched)


def vecInput(dim, device=""):
    """A vector of zeros."""
    return zeros(dim)


def matInput(d1, d2):
    """A matrix of zeros."""
    return zeros((d1, d2))


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


# Functions of each element


def unary(name, doc):
    """Makes a function from a native method."""

    def function(x):
        return Expression(getattr(x.v, name)(), x.b)

    function.__doc__ = doc
    return function


abs = unary("abs", "`|x|`")
exp = unary("exp", "`e^x`")
log = unary("log", "The natural logarithm.")
sqrt = unary("sqrt", "The square root.")
square = unary("square", "`x^2`")
sin = unary("sin", "The sine.")
cos = unary("cos", "The cosine.")
erf = unary("erf", "The error function.")
nobackprop = unary("stop_gradient", "The identity with derivative zero.")


def tanh(x):
    """The hyperbolic tangent."""
    return Expression(x.v.tanh(), x.b)


def logistic(x):
    """`1 / (1 + e^-x)`"""
    return Expression(x.v.sigmoid(), x.b)


def rectify(x):
    """`max(x, 0)`"""
    return Expression(x.v.relu(), x.b)


def tan(x):
    """The tangent."""
    return sin(x) / cos(x)


def sinh(x):
    """The hyperbolic sine."""
    return (exp(x) - exp(-x)) * 0.5


def cosh(x):
    """The hyperbolic cosine."""
    return (exp(x) + exp(-x)) * 0.5


def asinh(x):
    """The inverse of `sinh`."""
    return log(x + sqrt(square(x) + 1.0))


def acosh(x):
    """The inverse of `cosh`."""
    return log(x + sqrt(square(x) - 1.0))


def atanh(x):
    """The inverse of `tanh`."""
    return log((1.0 + x) / (1.0 - x)) * 0.5


def cube(x):
    """`x^3`"""
    return elementwise(x, square(x), operator.mul)


def log_sigmoid(x):
    """`log(logistic(x))`"""
    return Expression(-((-x.v).softplus()), x.b)


def softsign(x):
    """`x / (1 + |x|)`"""
    return x / (abs(x) + 1.0)


def silu(x, beta=1.0):
    """`x * logistic(beta * x)`"""
    return cmult(x, logistic(x * beta))


def elu(x, alpha=1.0):
    """`x` where positive, `alpha * (e^x - 1)` elsewhere."""
    return Expression(x.v.elu(alpha), x.b)


def selu(x):
    """The scaled exponential linear unit."""
    return elu(x, 1.6732632423543772) * 1.0507009873554805


def flip_gradient(x):
    """The identity; it negates the gradient."""
    return scale_gradient(x, -1.0)


def scale_gradient(x, lambd=1.0):
    """The identity; it multiplies the gradient."""
    return Expression(x.v.scale_gradient(lambd), x.b)


def cmult(x, y):
    """The elementwise product."""
    if x.b == 1 == y.b:
        try:
            return Expression(x.v * y.v)
        except ab.EmitError:
            pass  # The shapes differ, so the smaller one is repeated.
    return elementwise(x, y, operator.mul)


def cdiv(x, y):
    """The elementwise quotient."""
    return elementwise(x, y, operator.truediv)


def colwise_add(x, y):
    """Adds a vector to each column."""
    return elementwise(x, y, operator.add)


def pow(x, y):
    """`x^y`"""
    return elementwise(x, y, operator.pow)


def bmin(x, y):
    """The smaller of two elements."""
    return elementwise(x, y, lambda x, y: x.minimum(y))


def bmax(x, y):
    """The larger of two elements."""
    return elementwise(x, y, lambda x, y: x.maximum(y))


# Noise


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


# Reductions


def _flat(x):
    """The native value with the elements of each batch element in one row."""
    value, outer = x.v, (x.b,) if x.b > 1 else ()
    size = math.prod(x.extents())
    return value if len(x.extents()) == 1 else value.reshape((*outer, size))


def sum_elems(x):
    """The sum of all elements."""
    return x if not x.extents() else Expression(_flat(x).sum_rows(), x.b)


def mean_elems(x):
    """The mean of all elements."""
    return x if not x.extents() else Expression(_flat(x).mean_rows(), x.b)


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
        return Expression(getattr(x.v, method)(), x.b)
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
    return product(inputTensor(np.tril(np.ones((size, size)))), x)


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


# Losses


def binary_log_loss(x, y):
    """`-(y log x + (1 - y) log(1 - x))`"""
    return sum_elems(-(cmult(y, log(x)) + cmult(1.0 - y, log(1.0 - x))))


def pairwise_rank_loss(x, y, m=1.0):
    """`max(0, m - x + y)`"""
    return rectify(y - x + m)


def poisson_loss(log_lambda, x):
    """The negative logarithm of a Poisson probability."""
    return exp(log_lambda) - log_lambda * float(x) + math.lgamma(x + 1)


def pickneglogsoftmax(x, v):
    """`-log_softmax(x)[v]`"""
    return Expression(x.v.cross_entropy(int(v))) if x.b == 1 else pickneglogsoftmax_batch(x, [v] * x.b)


def pickneglogsoftmax_batch(x, vs):
    """`pickneglogsoftmax` of a minibatch."""
    vs = [int(v) for v in vs]
    if len(vs) == 1:
        return pickneglogsoftmax(x, vs[0])
    return Expression(with_batch(x, len(vs)).cross_entropy(ab.indices(vs)), len(vs))


def hinge(x, v, m=1.0):
    """The margin loss."""
    return Expression(x.v.hinge(int(v), m)) if x.b == 1 else hinge_batch(x, [v] * x.b, m)


def hinge_batch(x, vs, m=1.0):
    """The margin loss of a minibatch."""
    vs = [int(v) for v in vs]
    return hinge(x, vs[0], m) if len(vs) == 1 else Expression(with_batch(x, len(vs)).hinge(ab.indices(vs), m), len(vs))


def hinge_dim(x, v, d=0, m=1.0):
    """The margin loss along an axis of a matrix."""
    rows = x.v if d == 0 else x.v.t()
    return Expression(rows.hinge(ab.indices([int(label) for label in v]), m))


def softmax(x, d=0):
    """`e^x / sum e^x` along an axis."""
    return Expression(x.v.softmax(), x.b) if d == 0 else transpose(softmax(transpose(x)))


def log_softmax(x, restrict=None):
    """`log(softmax(x))`; `restrict` lists the legal elements."""
    value = x.v
    if restrict is not None:
        legal = set(int(index) for index in restrict)
        value = value.mask([index in legal for index in range(value.shape[-1])])
    return Expression(value.log_softmax(), x.b)


# Shapes


def transpose(x, dims=(1, 0)):
    """The matrix with its axes swapped."""
    if tuple(dims) != (1, 0):
        raise NotImplementedError("transpose swaps the axes of a matrix alone")
    extents = x.extents()
    if len(extents) < 2:
        return Expression(x.v.reshape((*x.v.shape, 1)), x.b) if extents else x
    if x.b == 1:
        return Expression(x.v.t())
    return each(transpose, x)


def reshape(x, d, batch_size=1):
    """The same elements in another shape."""
    if batch_size == 1 and x.b > 1 and math.prod(native_shape(d)) == math.prod(x.extents()):
        batch_size = x.b
    return Expression(x.v.reshape(native_shape(d, batch_size)), batch_size)


def pick_batch(e, indices, dim=0):
    """One element of each element of a minibatch."""
    mask = np.zeros((len(indices), e.extents()[-1]))
    mask[np.arange(len(indices)), [int(index) for index in indices]] = 1
    if len(indices) == 1:
        return pick(e, indices[0], dim)
    return Expression((with_batch(e, len(indices)) * bind(mask).v).sum_rows(), len(indices))


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


def select_rows(x, rs):
    """Some rows of a matrix."""
    if len(x.extents()) == 1:
        return concatenate([pick(x, row) for row in rs])
    return transpose(select_cols(transpose(x), rs))


def select_cols(x, cs):
    """Some columns of a matrix."""
    return each(lambda x: Expression(ab.stack([x.v.pick(int(column)) for column in cs])), x)


def _joined(xs, d):
    """The concatenation along an axis."""
    xs = list(xs)
    b = max(x.b for x in xs)
    rank = max(d + 1, max(len(x.extents()) for x in xs))
    values = []
    for x in xs:
        value, extents, outer = with_batch(x, b), x.extents(), (b,) if b > 1 else ()
        if len(extents) < rank:
            value = value.reshape((*outer, *(1,) * (rank - len(extents)), *extents))
        values.append(value)
    return Expression(ab.concat(values, rank - 1 - d + (b > 1)), b)


def concatenate(xs, d=0):
    """The concatenation along an axis."""
    if d == 0:
        try:
            values = [x.v for x in xs]
            if all(x.b == 1 and value.shape == () for x, value in zip(xs, values)):
                return Expression(ab.stack(values)) if len(values) > 1 else xs[0]
            if all(x.b == 1 and len(value.shape) == 1 for x, value in zip(xs, values)):
                return Expression(ab.concat(values)) if len(values) > 1 else xs[0]
        except TypeError:
            xs = list(xs)
    return _joined(xs, d)


def concatenate_cols(xs):
    """Vectors as the columns of a matrix."""
    return _joined(xs, 1)


# Functions of several expressions


def esum(xs):
    """The sum of expressions."""
    xs = list(xs)
    if len(xs) == 1:
        return xs[0]
    b = max(x.b for x in xs)
    values = [with_batch(x, b) for x in xs]
    if all(value.shape == values[0].shape for value in values):
        return Expression(ab.total(values), b)
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def average(xs):
    """The mean of expressions."""
    return esum(xs) * (1.0 / len(xs))


def emax(xs):
    """The elementwise maximum."""
    largest = xs[0]
    for x in xs[1:]:
        largest = bmax(largest, x)
    return largest


def logsumexp(xs):
    """`log(sum e^x)` over expressions, element by element."""
    b = max(x.b for x in xs)
    if b == 1 and not xs[0].extents():
        return Expression(ab.stack([x.v for x in xs]).logsumexp()) if len(xs) > 1 else xs[0]
    largest = nobackprop(emax(xs))
    return log(esum([exp(x - largest) for x in xs])) + largest


def affine_transform(exprs):
    """`b + W1 x1 + W2 x2 ...`"""
    try:
        if len(exprs) == 5:
            bias, one, x, other, y = exprs
            if x.b == y.b and bias.dims != (1,):
                return Expression(ab.affine_sum(bias.handle, one.handle, x.v, other.handle, y.v), x.b)
        elif len(exprs) == 3:
            bias, one, x = exprs
            if bias.dims != (1,):
                return Expression(ab.affine_sum(bias.handle, one.handle, x.v), x.b)
    except (AttributeError, TypeError, ab.EmitError):
        pass  # A weight or the bias is no parameter, or the bias is repeated.
    total = exprs[0]
    for weight, x in zip(exprs[1::2], exprs[2::2]):
        total = total + product(weight, x)
    return total


def layer_norm(x, g, b):
    """Layer normalisation with a gain and a bias."""
    return cmult(Expression(x.v.layer_norm(1e-12), x.b), g) + b


def weight_norm(w, g):
    """A weight of length `g`."""
    return cmult(w, g / l2_norm(w))


def vanilla_lstm_gates_concat(x_t, h_tm1, Wx, Wh, b, weightnoise_std=0.0):
    """The gates of an LSTM, of the concatenation of some inputs."""
    gates = affine_transform([b, Wx, concatenate(x_t), Wh, h_tm1])
    width = h_tm1.extents()[-1]
    i, f, o, g = (pick_range(gates, part * width, (part + 1) * width) for part in range(4))
    return concatenate([logistic(i), logistic(f + 1.0), logistic(o), tanh(g)])


def vanilla_lstm_gates(x_t, h_tm1, Wx, Wh, b, weightnoise_std=0.0):
    """The gates of an LSTM."""
    return vanilla_lstm_gates_concat([x_t], h_tm1, Wx, Wh, b)


def vanilla_lstm_gates_dropout(x_t, h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h, weightnoise_std=0.0):
    """The gates of an LSTM with masks."""
    return vanilla_lstm_gates(cmult(x_t, dropout_mask_x), cmult(h_tm1, dropout_mask_h), Wx, Wh, b)


def vanilla_lstm_gates_dropout_concat(x_t, h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h, weightnoise_std=0.0):
    """The gates of an LSTM with masks, of the concatenation of some inputs."""
    return vanilla_lstm_gates_dropout(concatenate(x_t), h_tm1, Wx, Wh, b, dropout_mask_x, dropout_mask_h)


def vanilla_lstm_c(c_tm1, gates_t):
    """The cell of an LSTM."""
    width = c_tm1.extents()[-1]
    i, f, g = (pick_range(gates_t, part * width, (part + 1) * width) for part in (0, 1, 3))
    return cmult(f, c_tm1) + cmult(i, g)


def vanilla_lstm_h(c_t, gates_t):
    """The output of an LSTM."""
    width = c_t.extents()[-1]
    return cmult(pick_range(gates_t, 2 * width, 3 * width), tanh(c_t))


def to_device(e, device_str):
    """Returns the expression: there is one device."""
    return e

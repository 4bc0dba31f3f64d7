"""`Expression`: a value of the current graph with DyNet's conventions.

DyNet stores the elements of `{d0, d1}` column by column. That is the native layout of `[d1, d0]`, so the native shape
is DyNet's in reverse and no element moves. `{1}` is a native scalar. A minibatch is one native value with the batch as
its outermost axis, so an operation of a minibatch is one node.
"""

import operator

import numpy as np

import autobatch as ab
from autobatch._autobatch import Held

from ._engine import ENGINE


class Expression(Held):
    """A node of the current graph. `v` is the native value, `b` the batch size, `array` holds the elements."""

    __slots__ = ()

    native = None
    """The native parameter, if the expression is a parameter that a product may read in place."""

    def extents(self):
        """The native shape without the batch."""
        shape = self.v.shape
        return shape[1:] if self.b > 1 else shape

    def dim(self):
        """Returns the extents and the batch size."""
        return tuple(reversed(self.extents())) or (1,), self.b

    def npvalue(self, recalculate=False):
        """Returns the elements as an array whose last axis is the batch."""
        array = np.asarray(self.computed(), dtype=np.float32)
        return array.reshape(1) if array.ndim == 0 else array.T.copy()

    def computed(self):
        """Returns the elements in the native layout."""
        if self.array is None:
            ENGINE.compute([self])
        return self.array

    def vector(self):
        """Returns the native value of a vector. A column `{n, 1}` counts as one, as it does in DyNet."""
        value, extents = self.v, self.extents()
        if len(extents) != 2 or extents[0] != 1:
            return value
        return value.reshape((*value.shape[:-2], extents[1]))

    def tensor_value(self, recalculate=False):
        """Returns the elements as a tensor."""
        return Tensor(self)

    def scalar_value(self, recalculate=False):
        """Returns the only element."""
        array = np.asarray(self.computed())
        if array.size != 1:
            raise ValueError(f"scalar_value needs one element, found the dimension {self.dim()}")
        return float(array.reshape(()))

    def vec_value(self, recalculate=False):
        """Returns the elements as a list, column by column."""
        return np.asarray(self.computed()).ravel().tolist()

    def value(self, recalculate=False):
        """Returns a number, a list for a vector, or an array."""
        rank = len(self.extents())
        if rank == 0 and self.b == 1:
            return float(self.computed())
        return self.vec_value() if rank < 2 else self.npvalue()

    def forward(self, recalculate=False):
        """Computes the expression."""
        self.computed()

    def backward(self, full=False):
        """Adds the gradients of this scalar to those of the parameters."""
        if self.v.shape != ():
            raise ValueError(f"backward needs one element, found the dimension {self.dim()}; sum it first")
        ENGINE.backward(self)
        Expression.last_loss = (ENGINE.version, self)

    last_loss = (-1, None)

    def gradient(self):
        """Returns the gradient of the last `backward` with respect to this expression."""
        version, loss = Expression.last_loss
        if version != ENGINE.version or loss is None:
            raise RuntimeError("call backward() on an expression of this graph before gradient()")
        gradient = ENGINE.gradient_of(loss, self)
        if gradient is None:
            return np.zeros(np.asarray(self.computed()).T.shape or (1,), dtype=np.float32)
        return np.asarray(gradient).reshape(1) if np.ndim(gradient) == 0 else np.asarray(gradient).T.copy()

    def __repr__(self):
        return f"<autobatch.dynet.Expression {self.dim()}>"

    def __len__(self):
        return self.dim()[0][0]

    def __iter__(self):
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index):
        if isinstance(index, (int, np.integer)):
            rows = self.dim()[0][0]
            if not -rows <= index < rows:
                raise IndexError(f"row {index} of {rows} rows")
            return pick(self, int(index) % rows)
        slices = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(part, slice) for part in slices):
            raise ValueError("the key of an expression is an int, a slice or a tuple of slices")
        value, b = self.v, self.b
        for axis, part in enumerate(slices):
            place = len(value.shape) - 1 - axis if axis < len(self.dim()[0]) else 0
            start, stop, step = part.indices(value.shape[place] if value.shape else 1)
            value = sliced(value, place, range(start, stop, step)) if value.shape else value
        return Expression(value, value.shape[0] if b > 1 else 1)

    def __neg__(self):
        return Expression(-self.v, self.b)

    def __add__(self, other):
        if self.b == 1 and other.__class__ is Expression and other.b == 1:
            try:
                return Expression(self.v + other.v)
            except ab.EmitError:
                pass  # The shapes differ, so the smaller one is repeated.
        return elementwise(self, other, operator.add)

    def __radd__(self, other):
        return self + other

    def __sub__(self, other):
        return elementwise(self, other, operator.sub)

    def __rsub__(self, other):
        return Expression(other - self.v, self.b)

    def __mul__(self, other):
        if not isinstance(other, Expression):
            return Expression(self.v * float(other), self.b)
        return product(self, other)

    def __rmul__(self, other):
        return Expression(self.v * float(other), self.b)

    def __truediv__(self, other):
        return elementwise(self, other, operator.truediv)

    __div__ = __truediv__

    def __rtruediv__(self, other):
        return Expression(other / self.v, self.b)

    def __pow__(self, other):
        return elementwise(self, other, operator.pow)


class Product(Expression):
    """A parameter times a vector or a minibatch of vectors. A bias that follows joins the product."""

    __slots__ = ("rows", "weight")

    def __new__(cls, v, b, rows, weight):
        made = super().__new__(cls, v, b)
        made.rows, made.weight = rows, weight
        return made

    def __add__(self, other):
        bias = getattr(other, "native", None)
        if bias is not None and other.dims == self.extents() != (1,):
            return Expression(self.rows.affine(self.weight, bias), self.b)
        return elementwise(self, other, operator.add)


class Tensor:
    """The elements of an expression."""

    def __init__(self, expression):
        self.expression = expression

    def as_numpy(self):
        """Returns the elements as an array."""
        return self.expression.npvalue()

    def argmax(self, dim=0, num=1):
        """Returns the indices of the largest elements along an axis."""
        return Array(self.topk(dim, num).as_numpy().squeeze(axis=dim)) if num == 1 else self.topk(dim, num)

    def topk(self, dim=0, num=1):
        """Returns the indices of the largest elements along an axis."""
        order = np.argsort(-self.as_numpy(), axis=dim, kind="stable")
        return Array(np.take(order, range(num), axis=dim))


class Array(Tensor):
    """Numbers that are known, with the methods of a tensor. It also is what `np.asarray` and indices accept."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def as_numpy(self):
        """Returns the elements as an array."""
        return self.array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype=dtype)

    def __index__(self):
        return int(self.array.reshape(()))

    def __eq__(self, other):
        return self.array == other

    def __getitem__(self, index):
        return self.array[index]

    def __len__(self):
        return len(self.array)

    def __repr__(self):
        return repr(self.array)

    __hash__ = None


def sliced(value, axis, indices):
    """The elements of a native value at these indices of an axis."""
    if indices.step == 1:
        return value.slice(indices.start, indices.stop, axis)
    return ab.concat([value.slice(index, index + 1, axis) for index in indices], axis)


def with_batch(x, b):
    """Returns the native value of an expression, repeated for each element of the batch."""
    return x.v if x.b == b else x.v.broadcast((b, *x.v.shape))


def aligned(x, y):
    """Returns two native values of one shape, or scalars, with their batch size."""
    b = max(x.b, y.b)
    if x.b not in (1, b) or y.b not in (1, b):
        raise ValueError(f"the batch sizes differ: {x.dim()} and {y.dim()}")
    one, other = x.extents(), y.extents()
    if b > 1:
        one_v = x.v if x.b == 1 and not one else with_batch(x, b)
        other_v = y.v if y.b == 1 and not other else with_batch(y, b)
    else:
        one_v, other_v = x.v, y.v
    if one == other or (not one and x.b == 1) or (not other and y.b == 1):
        return one_v, other_v, b
    rank = max(len(one), len(other))
    one, other = ((1,) * (rank - len(shape)) + shape for shape in (one, other))
    shape = tuple(max(pair) for pair in zip(one, other))
    if any(extent not in (1, full) for pair in (one, other) for extent, full in zip(pair, shape)):
        raise ValueError(f"the dimensions do not fit together: {x.dim()} and {y.dim()}")
    outer = (b,) if b > 1 else ()
    return fitted(one_v, outer + one, outer + shape), fitted(other_v, outer + other, outer + shape), b


def fitted(value, shape, full):
    """A native value in another shape, repeated along axes of extent 1."""
    value = value if value.shape == shape else value.reshape(shape)
    return value if shape == full else value.broadcast(full)


def elementwise(x, y, f):
    """Applies a function of two native values."""
    if not isinstance(y, Expression):
        return Expression(f(x.v, float(y)), x.b)
    if x.b == y.b and (x.b == 1 or x.v.shape == y.v.shape):
        try:
            return Expression(f(x.v, y.v), x.b)
        except ab.EmitError:
            pass  # The shapes differ, so the smaller one is repeated.
    one, other, b = aligned(x, y)
    return Expression(f(one, other), b)


def each(f, *xs):
    """Applies a function of single expressions to each element of a minibatch."""
    b = max(x.b for x in xs)
    if b == 1:
        return f(*xs)
    parts = [[Expression(x.v.pick(number)) if x.b > 1 else x for x in xs] for number in range(b)]
    return Expression(ab.stack([f(*part).v for part in parts]), b)


def pick(e, index=0, dim=0):
    """The elements at an index of an axis."""
    value, shape = e.v, e.extents()
    if not shape:
        return e
    extent = shape[len(shape) - 1 - dim]
    if not 0 <= index < extent:
        raise ValueError(f"pick needs an index below {extent}, found {index} for the dimension {e.dim()}")
    if dim == len(shape) - 1 and e.b == 1:
        return Expression(value.pick(index))
    axis = len(value.shape) - 1 - dim
    kept = value.shape[:axis] + value.shape[axis + 1:]
    outer = 1 if e.b > 1 else 0
    if set(kept[outer:]) == {1}:
        kept = kept[:outer]
    return Expression(value.slice(index, index + 1, axis).reshape(kept), e.b)


def product(x, y):
    """The matrix product."""
    b = max(x.b, y.b)
    one, other = x.extents(), y.extents()
    if not one or not other:
        return elementwise(Expression(x.vector(), x.b) if one else x, y, operator.mul)
    if x.b > 1:
        return each(product, x, y)
    if len(one) == 1:
        weight, inner = x.v.reshape((1, *one)), 1
        if other[-1] != 1:
            raise ValueError(f"the dimensions do not fit: {x.dim()} times {y.dim()}")
    else:
        weight, inner = x.native or x.v, one[0]
    if x.native is not None and len(other) == 1 and len(one) == 2 and one[-1] > 1:
        return Product(y.v.affine(weight), b, y.v, weight)
    rows = y.v if len(y.v.shape) < 3 else y.v.reshape((-(-_size(y.v.shape) // inner), inner))
    result = rows @ weight if x.native is None or len(one) == 1 else rows.affine(weight)
    shape = y.v.shape[:-1] + one[-1:]
    if one[-1] == 1 and len(other) == 1:
        shape = shape[:-1]
    return Expression(result if result.shape == shape else result.reshape(shape), b)


def _size(shape):
    size = 1
    for extent in shape:
        size *= extent
    return size

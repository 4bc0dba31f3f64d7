"""`Expression`: a value of the current graph with DyNet's conventions.

The class is native and emits. This module adds the methods that read elements.
"""

import numpy as np

import autobatch as ab
from autobatch._autobatch import Expression

from ._engine import ENGINE


class Readable:
    """The methods of an expression that read elements. The native class takes them over."""

    native = None
    """The native parameter, if the expression is a parameter that a product may read in place."""

    def npvalue(self, recalculate=False):
        """Returns the elements as an array whose last axis is the batch."""
        array = np.asarray(self.computed(), dtype=np.float32)
        return array.reshape(1) if array.ndim == 0 else array.T.copy()

    def computed(self):
        """Returns the elements in the native layout."""
        if self.array is None:
            ENGINE.computed.append(self)
            if not self.compute_small(ENGINE.native()):
                ENGINE.execute([self])
        return self.array

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
        array = np.asarray(self.computed())
        if array.ndim == 0:
            return float(array)
        return array.ravel().tolist() if array.ndim - (self.b > 1) < 2 else self.npvalue()

    def forward(self, recalculate=False):
        """Computes the expression."""
        self.computed()

    def set(self, data):
        """Replaces the numbers of an input. The expressions of the graph are computed again when they are read."""
        array, shape = np.asarray(data, dtype=np.float32), self.v.shape
        size = int(np.prod(shape, dtype=int))
        if array.size != size:
            raise ValueError(f"set needs {size} numbers for the dimension {self.dim()}, found {array.size}")
        ENGINE.rebind(self, np.ascontiguousarray(array).reshape(shape))

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

    def __iter__(self):
        return (self[row] for row in range(len(self)))

    def at(self, index):
        """The elements at a slice, or at a slice of each axis."""
        slices = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(part, slice) for part in slices):
            raise ValueError("the key of an expression is an int, a slice or a tuple of slices")
        value, b = self.v, self.b
        for axis, part in enumerate(slices):
            place = len(value.shape) - 1 - axis if axis < len(self.dim()[0]) else 0
            start, stop, step = part.indices(value.shape[place] if value.shape else 1)
            value = sliced(value, place, range(start, stop, step)) if value.shape else value
        return Expression(value, value.shape[0] if b > 1 else 1)


for _name, _member in vars(Readable).items():
    if _name in ("__repr__", "__iter__") or not _name.startswith("__"):
        setattr(Expression, _name, _member)


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


def each(f, *xs):
    """Applies a function of single expressions to each element of a minibatch."""
    b = max(x.b for x in xs)
    if b == 1:
        return f(*xs)
    parts = [[Expression(x.v.pick(number)) if x.b > 1 else x for x in xs] for number in range(b)]
    return Expression(ab.stack([f(*part).v for part in parts]), b)


pick = Expression.pick

"""The layers of recurrent builders. A layer is one cell, so a step of a layer is one node."""

import autobatch as ab

from . import _functions as f
from ._engine import ENGINE
from ._expression import Expression


class Layer:
    """One layer: parameters, and a step from an input and states to new states, the output first."""

    states = 1
    subcollection = "rnn-builder"

    def __init__(self, collection, input_dim, hidden_dim):
        self.input, self.width = input_dim, hidden_dim
        self.parameters = self.declare(collection)
        self.cell = None
        ENGINE.add_cell(self)

    def declare(self, collection):
        """Declares the parameters and returns them in DyNet's order."""
        raise NotImplementedError

    def step(self, affine, x, *states):
        """Computes the new states. `affine(bias, pairs)` is `bias + sum of W x`, `pairs` has the numbers of weights."""
        raise NotImplementedError

    def trace(self, module):
        """Declares the native cell."""
        ports = [ab.f32[self.input], *[ab.f32[self.width]] * self.states]
        name = f"layer_{len(ENGINE.cells)}_{id(self)}"
        self.cell = module.cell(*ports, name=name)(lambda *values: self.step(self.affine, *values))

    def affine(self, bias, *pairs):
        """`bias + sum of W x` on native values."""
        (weight, x), *rest = pairs
        total = ab.affine([x], self.parameters[weight].handle, self.parameters[bias].handle)
        for weight, x in rest:
            total = total + x.affine(self.parameters[weight].handle)
        return total

    def add(self, x, states):
        """Emits the ops of one step and returns the new states."""
        b = max(value.b for value in (x, *states))
        results = self.step(self.affine, *[value.repeated(b) for value in (x, *states)])
        return [Expression(value, b) for value in (results if isinstance(results, tuple) else (results,))]

    def start(self):
        """The states before the first input."""
        return [f.zeros(self.width)] * self.states


def part(value, number, width):
    """One of several blocks of a width."""
    return value.slice(number * width, (number + 1) * width)


class VanillaLSTMLayer(Layer):
    """The LSTM whose gates share one product. The states are `h` and `c`."""

    states = 2
    forget_bias = 1.0

    def declare(self, collection):
        four = 4 * self.width
        return [
            collection.add_parameters((four, self.input)), collection.add_parameters((four, self.width)),
            collection.add_parameters((four,), 0),
        ]

    def step(self, affine, x, h, c):
        gates = affine(2, (0, x), (1, h))
        i, forget, o, g = (part(gates, number, self.width) for number in range(4))
        c = (forget + self.forget_bias).sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c


class CoupledLSTMLayer(Layer):
    """The LSTM whose forget gate is one minus the input gate, with peepholes."""

    states = 2

    def declare(self, collection):
        add, width = collection.add_parameters, self.width
        gate = lambda: [add((width, self.input)), add((width, width)), add((width, width)), add((width,), 0)]
        return [*gate(), *gate(), add((width, self.input)), add((width, width)), add((width,), 0)]

    def step(self, affine, x, h, c):
        i = affine(3, (0, x), (1, h), (2, c)).sigmoid()
        c = (1.0 - i) * c + i * affine(10, (8, x), (9, h)).tanh()
        o = affine(7, (4, x), (5, h), (6, c)).sigmoid()
        return o * c.tanh(), c


class FastLSTMLayer(CoupledLSTMLayer):
    """The LSTM whose forget gate is one minus the input gate. DyNet declares diagonal peepholes for it, and does not use them."""

    def declare(self, collection):
        add, width = collection.add_parameters, self.width
        gate = lambda: [add((width, self.input)), add((width, width)), add((width, 1)), add((width,), 0)]
        return [*gate(), *gate(), add((width, self.input)), add((width, width)), add((width,), 0)]

    def step(self, affine, x, h, c):
        i = affine(3, (0, x), (1, h)).sigmoid()
        c = (1.0 - i) * c + i * affine(10, (8, x), (9, h)).tanh()
        return affine(7, (4, x), (5, h)).sigmoid() * c.tanh(), c


class GRULayer(Layer):
    """The gated recurrent unit."""

    def declare(self, collection):
        add, width = collection.add_parameters, self.width
        gate = lambda: [add((width, self.input)), add((width, width)), add((width,), 0)]
        return [*gate(), *gate(), *gate()]

    def step(self, affine, x, h):
        z = affine(2, (0, x), (1, h)).sigmoid()
        r = affine(5, (3, x), (4, h)).sigmoid()
        return z * affine(8, (6, x), (7, r * h)).tanh() + (1.0 - z) * h


class SimpleRNNLayer(Layer):
    """The simple recurrent layer."""

    def declare(self, collection):
        add, width = collection.add_parameters, self.width
        return [add((width, self.input)), add((width, width)), add((width,), 0)]

    def step(self, affine, x, h):
        return affine(2, (0, x), (1, h)).tanh()

"""Recurrent builders. A layer is one cell, so a step of a layer is one node."""

import autobatch as ab

from . import _functions as f
from ._engine import ENGINE
from ._expression import Expression
from .config import Defaults


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
        """Emits one step and returns the new states."""
        b = max([x.b, *[state.b for state in states]])
        if b == 1:
            if ENGINE.graph is None:
                ENGINE.open()
            results = self.cell(x.v, *[state.v for state in states])
        else:
            values = [f.with_batch(value, b) for value in (x, *states)]
            results = self.step(self.affine, *values)
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


class RNNBuilder:
    """What all builders share."""

    layer = Layer
    path = "rnn-builder"

    def __init__(self, layers, input_dim, hidden_dim, model):
        self.spec = (layers, input_dim, hidden_dim)
        self.build(int(layers), int(input_dim), int(hidden_dim), model)

    def build(self, layers, input_dim, hidden_dim, model):
        """Declares the layers."""
        self.collection = model.add_subcollection(self.path)
        widths = [input_dim] + [hidden_dim] * (layers - 1)
        self.layers = [self.layer(self.collection, width, hidden_dim) for width in widths]
        self.disable_dropout()

    @classmethod
    def from_spec(cls, spec, model):
        """Returns a builder with fresh parameters."""
        *sizes, = spec
        return cls(*sizes[:3], model, *sizes[3:])

    def param_collection(self):
        """Returns the collection of the parameters."""
        return self.collection

    def get_parameters(self):
        """Returns the parameters of each layer."""
        return [list(layer.parameters) for layer in self.layers]

    def get_parameter_expressions(self):
        """Returns the parameters of each layer as expressions."""
        return [[parameter.expr() for parameter in layer.parameters] for layer in self.layers]

    def set_dropout(self, f):
        """Sets the rate of dropout on inputs and states."""
        self.set_dropouts(f, f)

    def set_dropouts(self, d, d_h):
        """Sets the rates of dropout on inputs and on states."""
        self.rates, self.masks = (float(d), float(d_h)), None

    def disable_dropout(self):
        """Turns dropout off."""
        self.set_dropouts(0.0, 0.0)

    def set_dropout_masks(self, batch_size=1):
        """Draws the masks of a sequence."""
        keep = [1.0 - rate for rate in self.rates]
        draw = lambda width, keep: f.random_bernoulli((width,), keep, 1.0 / keep, batch_size)
        self.masks = [(draw(layer.input, keep[0]), draw(layer.width, keep[1])) for layer in self.layers]
        self.masks_of = ENGINE.version

    def initial_state(self, vecs=None, update=True):
        """Returns the state before the first input, with given vectors if there are any: all `c`, then all `h`."""
        ENGINE.open()
        self.masks = None
        if not vecs:
            return RNNState(self, [layer.start() for layer in self.layers], started=False)
        return RNNState(self, self.states_of(list(vecs)))

    def initial_state_from_raw_vectors(self, vecs, update=True):
        """`initial_state` with numbers."""
        return self.initial_state([f.inputVector(vec) for vec in vecs], update)

    def states_of(self, vecs):
        """Orders vectors by layer."""
        depth = len(self.layers)
        states = self.layers[0].states
        if len(vecs) != depth * states:
            raise ValueError(f"the state has {depth * states} vectors, found {len(vecs)}")
        if states == 1:
            return [[vec] for vec in vecs]
        return [[vecs[depth + number], vecs[number]] for number in range(depth)]

    def add(self, states, x):
        """Emits one step of all layers."""
        if any(self.rates):
            if self.masks is None or self.masks_of != ENGINE.version:
                self.set_dropout_masks(x.b)
        after = []
        for number, (layer, before) in enumerate(zip(self.layers, states)):
            if any(self.rates):
                mask_x, mask_h = self.masks[number]
                x = f.cmult(x, mask_x) if self.rates[0] else x
                before = [f.cmult(before[0], mask_h) if self.rates[1] else before[0], *before[1:]]
            new = layer.add(x, before)
            after.append(new)
            x = new[0]
        return after

    def whoami(self):
        """Returns the name of the builder."""
        return type(self).__name__


class VanillaLSTMBuilder(RNNBuilder):
    """The LSTM."""

    layer = VanillaLSTMLayer
    path = "vanilla-lstm-builder"

    def __init__(self, layers, input_dim, hidden_dim, model, ln_lstm=False, forget_bias=1.0):
        if ln_lstm:
            raise NotImplementedError("VanillaLSTMBuilder has no layer normalisation here; build it from layer_norm")
        self.spec = (layers, input_dim, hidden_dim, ln_lstm, forget_bias)
        self.build(int(layers), int(input_dim), int(hidden_dim), model)
        for layer in self.layers:
            layer.forget_bias = float(forget_bias)


LSTMBuilder = VanillaLSTMBuilder


class CompactVanillaLSTMBuilder(RNNBuilder):
    """The LSTM with the parameters of DyNet's compact builder."""

    layer = VanillaLSTMLayer
    path = "compact-vanilla-lstm-builder"


class CoupledLSTMBuilder(RNNBuilder):
    """The LSTM with coupled gates and peepholes."""

    layer = CoupledLSTMLayer
    path = "lstm-builder"


class GRUBuilder(RNNBuilder):
    """The gated recurrent unit."""

    layer = GRULayer
    path = "gru-builder"

    def set_dropouts(self, d, d_h):
        """Sets the rate of dropout on inputs; DyNet drops no states of this builder."""
        self.rates, self.masks = (float(d), 0.0), None


class SimpleRNNBuilder(RNNBuilder):
    """The simple recurrent network."""

    layer = SimpleRNNLayer
    path = "simple-rnn-builder"


class RNNState:
    """The states of all layers after some inputs. It never changes."""

    __slots__ = ("builder", "states", "before", "started")

    def __init__(self, builder, states, before=None, started=True):
        self.builder, self.states, self.before, self.started = builder, states, before, started

    def add_input(self, x):
        """Returns the state after one more input."""
        return RNNState(self.builder, self.builder.add(self.states, x), self)

    def add_inputs(self, xs):
        """Returns the states after each input."""
        states, state = [], self
        for x in xs:
            state = state.add_input(x)
            states.append(state)
        return states

    def transduce(self, xs):
        """Returns the outputs after each input."""
        return [state.output() for state in self.add_inputs(xs)]

    def output(self):
        """Returns the output of the last layer, or None before the first input."""
        return self.states[-1][0] if self.started else None

    def h(self):
        """Returns the output of each layer."""
        return tuple(states[0] for states in self.states)

    def s(self):
        """Returns all vectors of the state: all `c`, then all `h`."""
        if len(self.states[0]) == 1:
            return self.h()
        return tuple(states[1] for states in self.states) + self.h()

    def set_h(self, es=None):
        """Returns the state with other outputs."""
        return RNNState(self.builder, [[h, *states[1:]] for h, states in zip(es, self.states)], self)

    def set_s(self, es=None):
        """Returns the state with other vectors."""
        return RNNState(self.builder, self.builder.states_of(list(es)), self)

    def prev(self):
        """Returns the state before the last input."""
        return self.before

    def b(self):
        """Returns the builder."""
        return self.builder


class StackedRNNState:
    """Several states that feed one another."""

    def __init__(self, states, prev=None):
        self.states, self.before = list(states), prev

    def add_input(self, x):
        """Returns the states after one more input."""
        after = []
        for state in self.states:
            after.append(state.add_input(x))
            x = after[-1].output()
        return StackedRNNState(after, self)

    def add_inputs(self, xs):
        """Returns the states after each input."""
        states, state = [], self
        for x in xs:
            state = state.add_input(x)
            states.append(state)
        return states

    def output(self):
        """Returns the output of the last state."""
        return self.states[-1].output()

    def prev(self):
        """Returns the states before the last input."""
        return self.before

    def h(self):
        """Returns the outputs of each state."""
        return [state.h() for state in self.states]

    def s(self):
        """Returns the vectors of each state."""
        return [state.s() for state in self.states]


class BiRNNBuilder:
    """A builder for each direction, in layers."""

    def __init__(self, num_layers, input_dim, hidden_dim, model, rnn_builder_factory, builder_layers=None):
        self.spec = num_layers, input_dim, hidden_dim, rnn_builder_factory, builder_layers
        if hidden_dim % 2:
            raise ValueError(f"the width of both directions is even, found {hidden_dim}")
        self.model = model.add_subcollection("birnn")
        self.builder_layers = builder_layers or [
            tuple(
                rnn_builder_factory(1, input_dim if number == 0 else hidden_dim, hidden_dim // 2, self.model)
                for _ in range(2)
            )
            for number in range(num_layers)
        ]

    @classmethod
    def from_spec(cls, spec, model):
        """Returns a builder with fresh parameters."""
        num_layers, input_dim, hidden_dim, factory, builder_layers = spec
        return cls(num_layers, input_dim, hidden_dim, model, factory, builder_layers)

    def param_collection(self):
        """Returns the collection of the parameters."""
        return self.model

    def whoami(self):
        """Returns the name of the builder."""
        return "BiRNNBuilder"

    def set_dropout(self, p):
        """Sets the rate of dropout of both directions."""
        for builder in (builder for pair in self.builder_layers for builder in pair):
            builder.set_dropout(p)

    def disable_dropout(self):
        """Turns dropout off."""
        self.set_dropout(0.0)

    def transduce(self, es):
        """Returns for each input the concatenated outputs of both directions."""
        es = list(es)
        for forward, backward in self.builder_layers:
            fs = forward.initial_state().transduce(es)
            bs = backward.initial_state().transduce(reversed(es))
            es = [f.concatenate([one, other]) for one, other in zip(fs, reversed(bs))]
        return es

    def add_inputs(self, es):
        """Returns for each input the states of both directions."""
        es = list(es)
        for forward, backward in self.builder_layers[:-1]:
            fs = forward.initial_state().transduce(es)
            bs = backward.initial_state().transduce(reversed(es))
            es = [f.concatenate([one, other]) for one, other in zip(fs, reversed(bs))]
        forward, backward = self.builder_layers[-1]
        fs = forward.initial_state().add_inputs(es)
        bs = backward.initial_state().add_inputs(reversed(es))
        return list(zip(fs, reversed(bs)))


class StandardSoftmaxBuilder:
    """A linear layer with a softmax."""

    def __init__(self, input_dim, num_classes, pc, bias=True):
        self.collection = pc.add_subcollection("standard-softmax-builder")
        self.weight = self.collection.add_parameters((num_classes, input_dim))
        self.bias = self.collection.add_parameters((num_classes,), 0) if bias else None

    def full_logits(self, x, update=True):
        """Returns the scores of all classes."""
        weight = self.weight.expr(update)
        return weight * x if self.bias is None else f.affine_transform([self.bias.expr(update), weight, x])

    def full_log_distribution(self, x, update=True):
        """Returns the logarithms of the probabilities."""
        return f.log_softmax(self.full_logits(x, update))

    def neg_log_softmax(self, x, c, update=True):
        """Returns the loss of a class."""
        return f.pickneglogsoftmax(self.full_logits(x, update), c)

    def neg_log_softmax_batch(self, x, c, update=True):
        """Returns the losses of a minibatch."""
        return f.pickneglogsoftmax_batch(self.full_logits(x, update), c)

    def sample(self, x):
        """Draws a class."""
        probabilities = f.softmax(self.full_logits(x)).npvalue().astype(float)
        return int(Defaults.random.choice(len(probabilities), p=probabilities / probabilities.sum()))

    def param_collection(self):
        """Returns the collection of the parameters."""
        return self.collection


SoftmaxBuilder = StandardSoftmaxBuilder

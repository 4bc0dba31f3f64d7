"""Recurrent builders."""

from . import _functions as f
from ._engine import ENGINE
from ._layers import CoupledLSTMLayer, FastLSTMLayer, GRULayer, Layer, SimpleRNNLayer, VanillaLSTMLayer
from ._states import RNNState, StackedRNNState
from .config import Defaults


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
        if ENGINE.graph is None:
            ENGINE.open()
        if self.rates == (0.0, 0.0):
            after = f.Expression.steps_of([layer.cell for layer in self.layers], x, states)
            if after is not None:
                return after
        x = f.Expression(x.vector(), x.b) if len(x.extents()) == 2 else x
        dropped = any(self.rates)
        if dropped and (self.masks is None or self.masks_of != ENGINE.version):
            self.set_dropout_masks(x.b)
        after = []
        for number, (layer, before) in enumerate(zip(self.layers, states)):
            if dropped:
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


class FastLSTMBuilder(RNNBuilder):
    """The LSTM with coupled gates, whose peepholes DyNet declares and does not use."""

    layer = FastLSTMLayer
    path = "fast-lstm-builder"


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

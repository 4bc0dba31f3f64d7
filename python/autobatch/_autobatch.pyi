"""The native half of the package. tests/stubs.py writes this file."""

from typing import Any


def Adadelta(lr=Ellipsis, rho=Ellipsis, eps=Ellipsis, **options) -> Any:
    """Adadelta."""

def Adagrad(lr, eps=Ellipsis, eps_under_root=Ellipsis, **options) -> Any:
    """Adagrad."""

def Adam(lr, betas=Ellipsis, eps=Ellipsis, eps_uncorrected=Ellipsis, **options) -> Any:
    """Adam."""

def AdamW(lr, betas=Ellipsis, eps=Ellipsis, **options) -> Any:
    """Adam with decoupled weight decay."""

class AdditiveAttention:
    """Additive attention of a query over keys and values."""
    def __init__(self, module, name, query, key, width) -> Any:
        ...
    def keys(self, keys) -> Any:
        """The projected keys, for any number of queries."""
    def scores(self, query, keys) -> Any:
        """The scores of projected keys, before the softmax."""

def AmsGrad(lr, betas=Ellipsis, eps=Ellipsis, eps_uncorrected=Ellipsis, **options) -> Any:
    """AMSGrad."""

class AutobatchError(Exception):
    """An error of autobatch."""

class Awaited:
    """The iterator of an `await`: it yields itself once, and its result is what the driver of the tasks sends."""
    def __await__(self) -> Any:
        ...
    def __iter__(self) -> Any:
        ...
    def __next__(self) -> Any:
        ...
    def send(self, answer) -> Any:
        ...

class BiGRU:
    """A GRU in each direction."""
    def __init__(self, module, name, input, width) -> Any:
        ...
    def last(self, xs) -> Any:
        """The concatenated last outputs of both directions."""
    def run(self, xs) -> Any:
        """For each input, the concatenated outputs of both directions."""
    def run_pairs(self, xs) -> Any:
        """For each input, the outputs of both directions as a pair."""

class BiLSTM:
    """An LSTM in each direction."""
    def __init__(self, module, name, input, width) -> Any:
        ...
    def last(self, xs) -> Any:
        """The concatenated last outputs of both directions."""
    def run(self, xs) -> Any:
        """For each input, the concatenated outputs of both directions."""
    def run_pairs(self, xs) -> Any:
        """For each input, the outputs of both directions as a pair."""

class BiRNN:
    """A simple recurrent layer in each direction."""
    def __init__(self, module, name, input, width) -> Any:
        ...
    def last(self, xs) -> Any:
        """The concatenated last outputs of both directions."""
    def run(self, xs) -> Any:
        """For each input, the concatenated outputs of both directions."""
    def run_pairs(self, xs) -> Any:
        """For each input, the outputs of both directions as a pair."""

class BusyError(AutobatchError):
    """Another thread uses the object."""

class CRF:
    """A linear-chain conditional random field."""
    def __init__(self, module, name, tags) -> Any:
        ...
    def decode(self, scores) -> Any:
        """The most probable tags, an index for each position."""
    def loss(self, scores, tags) -> Any:
        """The negative logarithm of the probability of the tags, one for each position, given the scores of all tags at each position."""

class Cell:
    """A cell: a function that was traced once. Calling it emits one node."""
    def __call__(self, *args, **kwargs) -> Any:
        ...
    def __repr__(self) -> Any:
        ...
    @property
    def name(self) -> Any:
        """The name of the cell."""

class CellDecorator:
    """Traces the function that it decorates."""
    def __call__(self, *args, **kwargs) -> Any:
        ...

class CheckpointError(AutobatchError):
    """A file could not be written or read."""

class ChildSumTreeLSTM:
    """The child-sum Tree-LSTM, for nodes with any number of children."""
    def __init__(self, module, name, input, width) -> Any:
        ...
    def node(self, x, children) -> Any:
        """The state `(h, c)` of a node with an input over a sequence of children `(h, c)`."""

class ClosedError(AutobatchError):
    """A graph, cell or session is closed."""

class Embedding:
    """A table of vectors, one a row."""
    def __init__(self, module, name, rows, width) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...
    def scores(self, x) -> Any:
        """The inner product of `x` with every row: scores of a tied output layer."""

class EmitError(AutobatchError):
    """A model emitted an invalid op."""

class Engine:
    """An engine, as Python holds it."""
    def __init__(self, params, *, threads=0, device='cpu', like=None) -> Any:
        ...
    @property
    def is_alive(self) -> Any:
        """Whether all its parameters live."""
    def knows(self, param) -> Any:
        """Whether it knows a parameter."""
    @property
    def params(self) -> Any:
        """The living parameters: each with its name, and whether it is a table."""
    @property
    def session(self) -> Any:
        """The session."""
    @property
    def threads(self) -> Any:
        """The number of threads that execute; 0 for all cores."""

class Experts:
    """A mixture of experts: a gate weighs several MLPs."""
    def __init__(self, module, name, widths, count, activation='relu') -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...
    def gates(self, x) -> Any:
        """The probability of each expert."""
    def sparse(self, x, gates, used) -> Any:
        """The mixture of the named experts, each at most once. `gates` are those of `gates(x)`."""

class Expression:
    """A node of the current graph. `v` is the native value, `b` the batch size, and `array` holds the elements once they are computed."""
    def __init__(self, v, b=1) -> Any:
        ...
    def __add__(self, value) -> Any:
        ...
    def __getitem__(self, key) -> Any:
        ...
    def __len__(self) -> Any:
        ...
    def __mul__(self, value) -> Any:
        ...
    def __neg__(self) -> Any:
        ...
    def __pow__(self, value, mod=None) -> Any:
        ...
    def __radd__(self, value) -> Any:
        ...
    def __rmul__(self, value) -> Any:
        ...
    def __rpow__(self, value, mod=None) -> Any:
        ...
    def __rsub__(self, value) -> Any:
        ...
    def __rtruediv__(self, value) -> Any:
        ...
    def __sub__(self, value) -> Any:
        ...
    def __truediv__(self, value) -> Any:
        ...
    def abs(self) -> Any:
        """`|x|`"""
    @staticmethod
    def affine_transform(exprs) -> Any:
        """staticmethod(function) -> method"""
    @property
    def array(self) -> Any:
        """The elements, once they are computed."""
    @property
    def b(self) -> Any:
        """The batch size."""
    def bmax(self, other) -> Any:
        """The larger of two elements."""
    def bmin(self, other) -> Any:
        """The smaller of two elements."""
    def cdiv(self, other) -> Any:
        """The elementwise quotient."""
    def cmult(self, other) -> Any:
        """The elementwise product."""
    def colwise_add(self, other) -> Any:
        """Adds a vector to each column."""
    def compute_small(self, trainer) -> Any:
        """Computes the elements, if that takes a few operations. Returns whether they are known."""
    def cos(self) -> Any:
        """The cosine."""
    def dim(self) -> Any:
        """The extents and the batch size."""
    def erf(self) -> Any:
        """The error function."""
    def exp(self) -> Any:
        """`e^x`"""
    def extents(self) -> Any:
        """The native shape without the batch."""
    @property
    def handle(self) -> Any:
        """The native parameter or table, once it is declared."""
    @staticmethod
    def input_of(numbers, b=1) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def join(items) -> Any:
        """staticmethod(function) -> method"""
    def log(self) -> Any:
        """The natural logarithm."""
    def logistic(self) -> Any:
        """`1 / (1 + e^-x)`"""
    def mean_elems(self) -> Any:
        """The mean of all elements."""
    def nobackprop(self) -> Any:
        """The identity with derivative zero."""
    def pick(self, index=0, dim=0) -> Any:
        """The elements at an index of an axis."""
    def pickneglogsoftmax(self, v) -> Any:
        """`-log_softmax(x)[v]`"""
    def rectify(self) -> Any:
        """`max(x, 0)`"""
    def repeated(self, b) -> Any:
        """The native value, repeated for each element of a batch."""
    @staticmethod
    def row_of(table, index) -> Any:
        """staticmethod(function) -> method"""
    def sin(self) -> Any:
        """The sine."""
    def softmax_columns(self) -> Any:
        """`e^x / sum e^x` of each column."""
    def sqrt(self) -> Any:
        """The square root."""
    def square(self) -> Any:
        """`x^2`"""
    @staticmethod
    def steps_of(cells, x, states) -> Any:
        """staticmethod(function) -> method"""
    def sum_elems(self) -> Any:
        """The sum of all elements."""
    @staticmethod
    def sum_of(items) -> Any:
        """staticmethod(function) -> method"""
    def tanh(self) -> Any:
        """The hyperbolic tangent."""
    def transposed(self) -> Any:
        """The matrix with its axes swapped. A vector becomes a row."""
    @property
    def v(self) -> Any:
        """The native value; `None` in a class that computes it."""
    def vector(self) -> Any:
        """The native value of a vector. A column `{n, 1}` counts as one, as it does in DyNet."""

class GRU:
    """The gated recurrent unit."""
    def __init__(self, module, name, input, width) -> Any:
        ...
    def last(self, xs) -> Any:
        """The hidden value after the last input; zeros without inputs."""
    def run(self, xs) -> Any:
        """The hidden value after each input."""
    def start(self, values=None) -> Any:
        """The state before the first input, or a given state."""

class GRUState:
    """The state of a layer after some inputs. It never changes: `push` returns the next one."""
    @property
    def h(self) -> Any:
        """The hidden value."""
    def push(self, x) -> Any:
        """The state after one more input."""
    @property
    def values(self) -> Any:
        """All values of the state, the hidden one first."""

class GatedGraph:
    """The gated graph network: in each round, every node sums its neighbours and updates its state by a GRU."""
    def __init__(self, module, name, width) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...

class GatedSum:
    """The sum of all nodes of a graph, each times a gate."""
    def __init__(self, module, name, width, outputs) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...

class Graph:
    """A graph that a program builds step by step: `with session.graph() as g: ...`."""
    def __bool__(self) -> Any:
        ...
    def __enter__(self) -> Any:
        ...
    def __exit__(self, *_error) -> Any:
        ...
    def __len__(self) -> Any:
        ...
    def __repr__(self) -> Any:
        ...
    def instance(self, key) -> Any:
        """Begins an instance. The key selects its dropout noise and appears in messages."""
    def output(self, name, value) -> Any:
        """Makes a value an output with a name."""
    @property
    def session(self) -> Any:
        """The session that executes the graph."""
    def text(self) -> Any:
        """The text form of the graph, which `autobatch` reads on the command line."""
    def to_bytes(self) -> Any:
        """The binary form of the graph."""

class GraphAttention:
    """Graph attention: every node attends to its neighbours and to itself, in several heads."""
    def __init__(self, module, name, inputs, width, heads, *, slope=0.2, activation='identity') -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...

class Guards:
    """Everything that the code of a module can read besides its arguments."""
    def __init__(self, guards) -> Any:
        ...
    def __len__(self) -> Any:
        ...

class Init:
    """An initialiser of a parameter, from the module `ab.init`."""
    @staticmethod
    def constant(number) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def glorot(gain=1.0) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def he() -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def normal(deviation) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def saxe(gain=1.0) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def uniform(a) -> Any:
        """staticmethod(function) -> method"""

class LSTM:
    """Long short-term memory."""
    def __init__(self, module, name, input, width) -> Any:
        ...
    def last(self, xs) -> Any:
        """The hidden value after the last input; zeros without inputs."""
    def run(self, xs) -> Any:
        """The hidden value after each input."""
    def start(self, values=None) -> Any:
        """The state before the first input, or a given state."""

class LSTMState:
    """The state of a layer after some inputs. It never changes: `push` returns the next one."""
    @property
    def h(self) -> Any:
        """The hidden value."""
    def push(self, x) -> Any:
        """The state after one more input."""
    @property
    def values(self) -> Any:
        """All values of the state, the hidden one first."""

class LayerNorm:
    """Layer normalisation with a gain and a bias."""
    def __init__(self, module, name, width, eps=1e-05) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...

class Lazy:
    """A tensor that is recorded and not computed yet. It behaves as the tensor: what needs its elements computes them."""
    def __abs__(self) -> Any:
        ...
    def __add__(self, value) -> Any:
        ...
    def __and__(self, value) -> Any:
        ...
    def __array__(self, *args, **kwargs) -> Any:
        ...
    def __bool__(self) -> Any:
        ...
    def __deepcopy__(self, _memo) -> Any:
        ...
    def __delitem__(self, key) -> Any:
        ...
    def __eq__(self, value) -> Any:
        ...
    def __float__(self) -> Any:
        ...
    def __floordiv__(self, value) -> Any:
        ...
    def __format__(self, form) -> Any:
        ...
    def __ge__(self, value) -> Any:
        ...
    def __getattribute__(self, name) -> Any:
        ...
    def __getitem__(self, key) -> Any:
        ...
    def __gt__(self, value) -> Any:
        ...
    def __hash__(self) -> Any:
        ...
    def __iadd__(self, value) -> Any:
        ...
    def __imul__(self, value) -> Any:
        ...
    def __index__(self) -> Any:
        ...
    def __int__(self) -> Any:
        ...
    def __invert__(self) -> Any:
        ...
    def __isub__(self, value) -> Any:
        ...
    def __iter__(self) -> Any:
        ...
    def __itruediv__(self, value) -> Any:
        ...
    def __le__(self, value) -> Any:
        ...
    def __len__(self) -> Any:
        ...
    def __lt__(self, value) -> Any:
        ...
    def __matmul__(self, value) -> Any:
        ...
    def __mod__(self, value) -> Any:
        ...
    def __mul__(self, value) -> Any:
        ...
    def __ne__(self, value) -> Any:
        ...
    def __neg__(self) -> Any:
        ...
    def __or__(self, value) -> Any:
        ...
    def __pow__(self, value, mod=None) -> Any:
        ...
    def __radd__(self, value) -> Any:
        ...
    def __rand__(self, value) -> Any:
        ...
    def __reduce_ex__(self, protocol) -> Any:
        ...
    def __repr__(self) -> Any:
        ...
    def __rfloordiv__(self, value) -> Any:
        ...
    def __rmatmul__(self, value) -> Any:
        ...
    def __rmod__(self, value) -> Any:
        ...
    def __rmul__(self, value) -> Any:
        ...
    def __ror__(self, value) -> Any:
        ...
    def __rpow__(self, value, mod=None) -> Any:
        ...
    def __rsub__(self, value) -> Any:
        ...
    def __rtruediv__(self, value) -> Any:
        ...
    def __rxor__(self, value) -> Any:
        ...
    def __setitem__(self, key, value) -> Any:
        ...
    def __sub__(self, value) -> Any:
        ...
    def __torch_function__(cls, function, _types, args, kwargs=None) -> Any:
        ...
    def __truediv__(self, value) -> Any:
        ...
    def __xor__(self, value) -> Any:
        ...
    def add(self, *args, **kwargs) -> Any:
        ...
    def chunk(self, *args, **kwargs) -> Any:
        ...
    @property
    def device(self) -> Any:
        ...
    def dim(self) -> Any:
        ...
    @property
    def dtype(self) -> Any:
        ...
    def exp(self, *args, **kwargs) -> Any:
        ...
    def is_contiguous(self) -> Any:
        ...
    def is_floating_point(self) -> Any:
        ...
    @property
    def is_nested(self) -> Any:
        ...
    @property
    def is_sparse(self) -> Any:
        ...
    def log(self, *args, **kwargs) -> Any:
        ...
    def matmul(self, *args, **kwargs) -> Any:
        ...
    def mean(self, *args, **kwargs) -> Any:
        ...
    def mul(self, *args, **kwargs) -> Any:
        ...
    @property
    def ndim(self) -> Any:
        ...
    def nelement(self) -> Any:
        ...
    def numel(self) -> Any:
        ...
    def relu(self, *args, **kwargs) -> Any:
        ...
    @property
    def requires_grad(self) -> Any:
        ...
    def reshape(self, *args, **kwargs) -> Any:
        ...
    @property
    def shape(self) -> Any:
        ...
    def sigmoid(self, *args, **kwargs) -> Any:
        ...
    def size(self, dim=None) -> Any:
        ...
    def softmax(self, *args, **kwargs) -> Any:
        ...
    def split(self, *args, **kwargs) -> Any:
        ...
    def squeeze(self, *args, **kwargs) -> Any:
        ...
    def sum(self, *args, **kwargs) -> Any:
        ...
    def t(self, *args, **kwargs) -> Any:
        ...
    def tanh(self, *args, **kwargs) -> Any:
        ...
    def transpose(self, *args, **kwargs) -> Any:
        ...
    def unsqueeze(self, *args, **kwargs) -> Any:
        ...
    def view(self, *args, **kwargs) -> Any:
        ...

class Linear:
    """`y = x · W + b`"""
    def __init__(self, module, name, inputs, outputs, bias=True) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...
    @property
    def weight(self) -> Any:
        """The weight."""

class MLP:
    """Linear layers with an activation between them, as one cell."""
    def __init__(self, module, name, widths, activation='relu', dropout=0.0) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...

class Module:
    """The parameters, tables and cells of a model. The first session or trainer closes it: from then on it declares nothing."""
    def __init__(self, name='model') -> Any:
        ...
    def __repr__(self) -> Any:
        ...
    def cell(self, *ports, name=None) -> Any:
        """Traces a function once, as a cell: `@m.cell(ab.f32[8], ab.f32[8])`. The types are those of its arguments."""
    def param(self, name, shape, init=None, dtype='f32') -> Any:
        """Declares a parameter. Without an initialiser, a matrix gets Glorot's and a vector gets zeros."""
    def params(self) -> Any:
        """The names and shapes of all parameters."""
    def table(self, name, rows, width, init=None, dtype='f32') -> Any:
        """Declares a table of `rows` rows of a width, to look up by index."""

def Momentum(lr, momentum=Ellipsis, **options) -> Any:
    """Gradient descent with momentum."""

class MultiHeadAttention:
    """Attention with several heads."""
    def __init__(self, module, name, width, heads) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...
    def cross(self, queries, keys, values) -> Any:
        """The attention of each query over keys and values of another sequence."""

def Nesterov(lr, momentum=Ellipsis, **options) -> Any:
    """Nesterov's momentum."""

class Optimizer:
    """An optimiser: a rule such as `ab.optim.Adam(1e-3)` with the options of all rules."""
    def __repr__(self) -> Any:
        ...
    def learning_rate(self, update=1) -> Any:
        """The learning rate of an update, from 1."""

class Param:
    """A parameter of a module. In an expression it stands for its value."""
    def __repr__(self) -> Any:
        ...
    @property
    def name(self) -> Any:
        """The name of the parameter."""
    def value(self) -> Any:
        """The parameter as a value of the current graph."""

class Paused:
    """A forward pass. `Session.backward` computes its gradients once."""
    def __repr__(self) -> Any:
        ...

class PlanError(AutobatchError):
    """A graph has no plan."""

class Positions:
    """Vectors that tell positions apart, to add to inputs."""
    def __call__(self, *args, **kwargs) -> Any:
        ...
    def at(self, x, place) -> Any:
        """An input plus the vector of position `place`, counted from 0."""
    @staticmethod
    def learned(module, name, longest, width) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def sinusoidal(width) -> Any:
        """staticmethod(function) -> method"""

class RMSNorm:
    """Normalisation by the root of the mean square."""
    def __init__(self, module, name, width, eps=1e-05) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...

class RNN:
    """The simple recurrent layer."""
    def __init__(self, module, name, input, width) -> Any:
        ...
    def last(self, xs) -> Any:
        """The hidden value after the last input; zeros without inputs."""
    def run(self, xs) -> Any:
        """The hidden value after each input."""
    def start(self, values=None) -> Any:
        """The state before the first input, or a given state."""

class RNNState:
    """The state of a layer after some inputs. It never changes: `push` returns the next one."""
    @property
    def h(self) -> Any:
        """The hidden value."""
    def push(self, x) -> Any:
        """The state after one more input."""
    @property
    def values(self) -> Any:
        """All values of the state, the hidden one first."""

class RecordError(AutobatchError):
    """An op of torch cannot be recorded."""

class Recorder:
    """The function mode of a block."""
    def __init__(self, environment, engine, eager, draws, remedy) -> Any:
        ...
    def __torch_function__(self, function, _types, args, kwargs=None) -> Any:
        ...
    def account(self) -> Any:
        """The flushes, each with its nodes, batches and their bound; the methods; and the calls that torch computed."""
    def call_method(self, module, name, args, run) -> Any:
        """The same of a method of a module, by its interned name, in a run of calls between which no code of the program runs. Ints"""
    def call_module(self, module, args, kwargs) -> Any:
        """Records a call of a module as one node. `NotImplemented` if its code must run, or `Ellipsis` if it must run between"""
    def call_unknown(self, function, args, kwargs) -> Any:
        """Calls a function that no op stands for and that torch does not pass to the block."""
    def close(self, failed) -> Any:
        """Ends the block. With an exception, what is not computed is lost."""
    def counts(self) -> Any:
        """The numbers of recorded ops and of flushes."""
    def enter(self) -> Any:
        """Begins and ends the code of a method whose later calls may be nodes."""
    def flush(self) -> Any:
        """Computes what was recorded so far."""
    def leave(self) -> Any:
        ...
    @staticmethod
    def next_run() -> Any:
        """staticmethod(function) -> method"""
    def pictures(self) -> Any:
        """The pictures of the first flushes, as SVG; `None` where a graph is too large."""
    def set_wait(self, wait) -> Any:
        """Sets the function that a read calls before it computes. Returns the one before."""

def RmsProp(lr, alpha=Ellipsis, eps=Ellipsis, eps_under_root=Ellipsis, **options) -> Any:
    """RMSprop."""

class RunError(AutobatchError):
    """A plan could not be executed."""

class Sample:
    """Classes that the losses of one graph compare theirs with."""

class SampledSoftmax:
    """A softmax over a class and a sample of other classes, for training with many classes in the order of their frequency."""
    def __init__(self, module, name, inputs, classes, samples) -> Any:
        ...
    def full_loss(self, *args: Any, **options: Any) -> Any:
        """The loss of a class among all classes, for evaluation."""
    def loss(self, sample, xs, classes) -> Any:
        """The sum of the losses of a sequence of vectors and their classes against a sample; 0 for an empty sequence."""
    def sample(self, seed) -> Any:
        """The sample of the current graph, which all its losses may share. Equal seeds draw equal classes; a good seed is the number of"""

class Schedule:
    """A schedule of the learning rate: a factor for each update."""
    def __call__(self, *args, **kwargs) -> Any:
        ...
    @staticmethod
    def cosine(updates, low=0.0) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def cyclical(half, low) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def linear(updates, low=0.0) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def step(every, gamma) -> Any:
        """staticmethod(function) -> method"""
    @staticmethod
    def warm_up(updates, then) -> Any:
        """staticmethod(function) -> method"""

class Session:
    """Plans and executes graphs over one module."""
    def __init__(self, module, *, device='cpu', policy=None, threads=0, seed=0, memory_limit=None, work_limit=None) -> Any:
        ...
    def __repr__(self) -> Any:
        ...
    def backward(self, paused, gradients) -> Any:
        """Computes the gradients of a forward pass. `gradients` has an array of the shape of each group, or None for"""
    def batches(self) -> Any:
        """The number of batches of the last plan and the lower bound of that number; `None` before the first run."""
    def cache_stats(self) -> Any:
        """The hits and misses of the plan cache."""
    def follow_weights(self, values) -> Any:
        """Takes over the values of some parameters, given by name as arrays, where they differ from the session's."""
    def forward(self, groups, inputs=Ellipsis) -> Any:
        """Executes the forward part of a plan and pauses. Each group of outputs has one type and becomes one array, one"""
    def graph(self) -> Any:
        """An empty graph, which `with` makes current."""
    def import_pytorch(self, state_dict, names=Ellipsis) -> Any:
        """Reads a state dict of PyTorch: the layers of `nn` with its names and layouts. `names` maps modules of PyTorch to layers"""
    def last_plan(self) -> Any:
        """The text of the plan of the last run; `None` before the first run."""
    def load_weights(self, path) -> Any:
        """Reads all parameters from a safetensors file."""
    def predict(self, items, emit) -> Any:
        """Calls `emit` for every item, executes all values together, and returns their arrays in the order of the items:"""
    def run(self, *values) -> Any:
        """Computes values of one graph together and returns their arrays."""
    def run_groups(self, groups) -> Any:
        """Computes groups of values of one graph. The values of a group have one shape and become one array, one row a value."""
    def save_weights(self, path) -> Any:
        """Writes all parameters to a safetensors file."""
    def set_weights(self, values) -> Any:
        """Replaces the values of some parameters, given by name as arrays."""
    def tasks(self, items, task) -> Any:
        """Runs `task(item)` for every item as a task: an `async` function may await values and branch on them. Returns the"""
    @property
    def weights(self) -> Any:
        """The values of all parameters by name, as a dict of arrays."""

class SetAside:
    """An optimiser with its states that a trainer does not use now."""

def Sgd(lr, **options) -> Any:
    """Stochastic gradient descent."""

class Step:
    """The report of a step."""
    def __repr__(self) -> Any:
        ...
    @property
    def batches(self) -> Any:
        """The batches of the forward part of the plan, and their lower bound."""
    @property
    def gradient_norm(self) -> Any:
        """The norm of all gradients before clipping; None in a skipped step."""
    @property
    def instances(self) -> Any:
        """The number of items."""
    @property
    def loss(self) -> Any:
        """The mean loss of the items."""
    @property
    def losses(self) -> Any:
        """The loss of each item."""
    @property
    def number(self) -> Any:
        """The number of the step, from 0."""
    def output(self, name) -> Any:
        """The elements of a named output."""
    @property
    def seconds(self) -> Any:
        """The seconds of planning, executing and updating. Emitting is the caller's."""
    @property
    def skipped(self) -> Any:
        """Whether the update was skipped, because a loss or a gradient had a NaN or an infinity."""
    @property
    def weight(self) -> Any:
        """The sum of the weights of the items, by which the sum of their losses is divided."""

class Table:
    """A table of a module: `words[3]` is its row at an index, bound or computed."""
    def __getitem__(self, key) -> Any:
        ...
    def __len__(self) -> Any:
        ...
    def __repr__(self) -> Any:
        ...
    def as_param(self) -> Any:
        """The whole table as a parameter, for a tied output layer."""

class TrainError(AutobatchError):
    """A training step failed."""

class Trainer:
    """A session with an optimiser. Steps change its weights."""
    def __init__(self, module, optimizer, *, device='cpu', policy=None, threads=0, seed=0, memory_limit=None, work_limit=None, skip_non_finite=False, update_unused=False) -> Any:
        ...
    def __repr__(self) -> Any:
        ...
    def averages(self) -> Any:
        """The moving averages of the parameters as a dict of arrays, if the optimiser keeps them. They are often better to evaluate."""
    def backward(self, loss, values=Ellipsis) -> Any:
        """Executes a graph forward and in reverse, and adds the gradients of a scalar to the ones waiting for `update`."""
    def discard_gradients(self) -> Any:
        """Discards the waiting gradients."""
    def evaluate(self, values, ahead=False) -> Any:
        """Computes values of a graph and returns their arrays. Values that an earlier call computed are not computed again."""
    def exchange(self, other) -> Any:
        """Exchanges the optimiser with its states for another one."""
    def freeze(self, name) -> Any:
        """Freezes a parameter, or all parameters of a layer, by name: they keep their values and cost no gradient. The optimiser starts"""
    def gradient(self, name) -> Any:
        """The waiting gradient of a parameter."""
    def gradients(self, items, loss) -> Any:
        """The gradients of the mean of the losses that `loss` returns, for each parameter, as a dict of arrays. It draws no noise, and"""
    def graph(self) -> Any:
        """An empty graph for `evaluate` and `backward`. Its nodes name no lines."""
    def import_pytorch(self, state_dict, names=Ellipsis) -> Any:
        """Reads a state dict of PyTorch: the layers of `nn` with its names and layouts. `names` maps modules of PyTorch to layers"""
    @property
    def learning_rate(self) -> Any:
        """The learning rate of the next step."""
    def load(self, path) -> Any:
        """Continues from a checkpoint of the same model and optimiser."""
    def note(self, name) -> Any:
        """A text of the checkpoint that `load` read, or of `set_note`."""
    def predict(self, items, emit) -> Any:
        """Calls `emit` for every item, computes all values with the current weights and without dropout, and returns their"""
    def rebind(self, value, elements) -> Any:
        """Replaces the numbers of an input of a graph. `evaluate` computes all values of the graph again."""
    def save(self, path) -> Any:
        """Writes a checkpoint, from which `load` continues with equal bits."""
    def session(self) -> Any:
        """A session with a copy of the current weights."""
    def set_aside(self, optimizer, names) -> Any:
        """An optimiser for some parameters, with fresh states, for `exchange`."""
    def set_note(self, name, text) -> Any:
        """Writes a text into the next checkpoints, such as the vocabulary of a model."""
    def set_schedule(self, schedule) -> Any:
        """Replaces the schedule of the learning rate."""
    def set_watch(self, watch) -> Any:
        """Looks for the first NaN or infinity of each step: a step that makes one is an error that names the op. It reads every result"""
    def set_weights(self, values) -> Any:
        """Replaces the values of some parameters, given by name as arrays."""
    @property
    def skipped(self) -> Any:
        """The number of steps that were skipped; see `skip_non_finite`."""
    def step(self, items, loss, *, weights=None, together=None) -> Any:
        """Makes one step: calls `loss` for every item, and trains on the mean of the returned losses. With `weights`, a number for each"""
    def step_graph(self, loss) -> Any:
        """Makes one step on a loss that `loss()` emits as a whole."""
    def step_tasks(self, items, loss) -> Any:
        """Makes one step over items whose course depends on computed values: `loss` is an `async` function that may await values, and"""
    @property
    def steps(self) -> Any:
        """The number of steps."""
    def train_only(self, chosen) -> Any:
        """Trains the parameters whose names `chosen` accepts, and freezes all others. The optimiser starts anew."""
    def unfreeze(self, name) -> Any:
        """Trains a frozen parameter or layer again. The optimiser starts anew."""
    def update(self) -> Any:
        """Updates the parameters with the waiting gradients."""
    def weight(self, name) -> Any:
        """The value of a parameter."""
    @property
    def weights(self) -> Any:
        """The values of all parameters by name, as a dict of arrays."""

class TransformerDecoder:
    """A stack of decoder layers, with a final norm if norms come first. A position attends to itself, to earlier positions, and to an"""
    def __init__(self, module, name, width, heads, layers, *, feed_forward=None, activation='relu', norm_first=False, dropout=0.0, bias=True) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...
    def start(self, encoded) -> Any:
        """The state before the first position, for positions that arrive one by one. The outputs equal those of a call bit for bit."""

class TransformerEncoder:
    """A stack of encoder layers, with a final norm if norms come first. Sequences of any lengths share its batches, without padding."""
    def __init__(self, module, name, width, heads, layers, *, feed_forward=None, activation='relu', norm_first=False, dropout=0.0, bias=True) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...
    def start(self) -> Any:
        """The state before the first position, for positions that arrive one by one. The outputs equal those of a causal call bit"""

class TransformerEncoderLayer:
    """A layer of a transformer encoder. Sequences of any lengths share its batches, without padding."""
    def __init__(self, module, name, width, heads, *, feed_forward=None, activation='relu', norm_first=False, dropout=0.0, bias=True) -> Any:
        ...
    def __call__(self, *args, **kwargs) -> Any:
        ...

class TransformerState:
    """The state of an encoder or a decoder after some positions. It never changes: `push` returns the next one, so a search"""
    def __len__(self) -> Any:
        ...
    @property
    def output(self) -> Any:
        """The output at the last position."""
    def push(self, x) -> Any:
        """The state after one more position."""

class TreeGRU:
    """The binary gated recurrent tree layer."""
    def __init__(self, module, name, width) -> Any:
        ...
    def node(self, left, right) -> Any:
        """The value of a node over two children."""

class TreeLSTM:
    """The binary Tree-LSTM."""
    def __init__(self, module, name, width) -> Any:
        ...
    def leaf(self, x) -> Any:
        """A leaf with a given vector: `(x, 0)`."""
    def node(self, left, right) -> Any:
        """The state `(h, c)` of a node over two children `(h, c)`."""

class TreeRNN:
    """The binary recursive layer."""
    def __init__(self, module, name, width) -> Any:
        ...
    def node(self, left, right) -> Any:
        """The value of a node over two children."""

class Type:
    """A type of values: `f32[8]`, `f32[2, 3]`, `f32` (one number), `index`, `list_of(f32[8])`."""
    def __eq__(self, value) -> Any:
        ...
    def __ge__(self, value) -> Any:
        ...
    def __getitem__(self, key) -> Any:
        ...
    def __gt__(self, value) -> Any:
        ...
    def __hash__(self) -> Any:
        ...
    def __le__(self, value) -> Any:
        ...
    def __lt__(self, value) -> Any:
        ...
    def __ne__(self, value) -> Any:
        ...
    def __repr__(self) -> Any:
        ...
    @property
    def dtype(self) -> Any:
        """The name of the element type."""
    @property
    def is_list(self) -> Any:
        """Whether this is the type of lists of values."""
    @property
    def shape(self) -> Any:
        """The extents of one value."""

class Value:
    """A value of a graph. Operators and methods emit; nothing is computed before the session runs."""
    def __add__(self, value) -> Any:
        ...
    def __array__(self, *_args, **_kwargs) -> Any:
        ...
    def __await__(self) -> Any:
        ...
    def __bool__(self) -> Any:
        ...
    def __eq__(self, value) -> Any:
        ...
    def __ge__(self, value) -> Any:
        ...
    def __getitem__(self, key) -> Any:
        ...
    def __gt__(self, value) -> Any:
        ...
    def __hash__(self) -> Any:
        ...
    def __iter__(self) -> Any:
        ...
    def __le__(self, value) -> Any:
        ...
    def __len__(self) -> Any:
        ...
    def __lt__(self, value) -> Any:
        ...
    def __matmul__(self, value) -> Any:
        ...
    def __mul__(self, value) -> Any:
        ...
    def __ne__(self, value) -> Any:
        ...
    def __neg__(self) -> Any:
        ...
    def __pow__(self, value, mod=None) -> Any:
        ...
    def __radd__(self, value) -> Any:
        ...
    def __repr__(self) -> Any:
        ...
    def __rmatmul__(self, value) -> Any:
        ...
    def __rmul__(self, value) -> Any:
        ...
    def __rpow__(self, value, mod=None) -> Any:
        ...
    def __rsub__(self, value) -> Any:
        ...
    def __rtruediv__(self, value) -> Any:
        ...
    def __sub__(self, value) -> Any:
        ...
    def __truediv__(self, value) -> Any:
        ...
    def abs(self) -> Any:
        """`|x|`"""
    def affine(self, weight, bias=None) -> Any:
        """`x · W (+ b)`. A matrix `x` gives one product per row."""
    def affine_transposed(self, weight, bias=None) -> Any:
        """`x · Wᵀ (+ b)`, for a weight stored as `[outputs, inputs]`."""
    def alone(self) -> Any:
        """Makes the node of this value a batch of its own."""
    def argmax(self) -> Any:
        """The index of the largest element of each row."""
    def bce(self, target) -> Any:
        """The mean binary cross-entropy of these logits against targets in `0..=1`."""
    def broadcast(self, dims) -> Any:
        """Repetition along axes of extent 1 and new outer axes."""
    def cast(self, to) -> Any:
        """Conversion to another element type, by its name."""
    def clamp(self, low, high) -> Any:
        """`x` limited to `low..=high`."""
    def cos(self) -> Any:
        """The cosine."""
    def cross_entropy(self, label) -> Any:
        """`-log_softmax(self)[label]` of each row."""
    def cross_entropy_with(self, target) -> Any:
        """`-sum target * log_softmax(self)`."""
    def dot(self, other) -> Any:
        """The inner product of two vectors."""
    def dropout(self, rate) -> Any:
        """In training, zero with probability `rate` and scaled up elsewhere; the identity otherwise."""
    def elu(self, alpha=1.0) -> Any:
        """`x` where positive, `alpha * (e^x - 1)` elsewhere."""
    def equal(self, other) -> Any:
        """Whether equal, element by element."""
    def erf(self) -> Any:
        """The error function."""
    def exp(self) -> Any:
        """`e^x`"""
    def gelu(self) -> Any:
        """The Gaussian error linear unit."""
    def hinge(self, label, margin=1.0) -> Any:
        """The margin loss of each row."""
    def kl_div(self, target) -> Any:
        """`sum target * (log target - self)`, where `self` holds log-probabilities."""
    def label_loss(self, rows, label) -> Any:
        """`-log_softmax(rows · self)[label]` of 10^4 labels and more: `rows` has a row for each, and no score is kept."""
    def layer_norm(self, eps=1e-05) -> Any:
        """Each row minus its mean, divided by its deviation."""
    def leaky_relu(self, slope) -> Any:
        """`x` where positive, `slope * x` elsewhere."""
    def log(self) -> Any:
        """The natural logarithm."""
    def log_softmax(self) -> Any:
        """`log(softmax(x))` of each row."""
    def logsumexp(self) -> Any:
        """`log(sum e^x)` of each row."""
    def mask(self, legal) -> Any:
        """Replaces elements by minus infinity where `legal` is false."""
    def matmul(self, other) -> Any:
        """The matrix product of two values."""
    def max(self) -> Any:
        """The largest element; of a list, the elementwise maximum of its values."""
    def max_rows(self) -> Any:
        """The largest element of each row."""
    def maximum(self, other) -> Any:
        """The larger of the two, element by element."""
    def mean(self) -> Any:
        """The mean of all elements; of a list, the elementwise mean of its values."""
    def mean_rows(self) -> Any:
        """The mean of each row."""
    def min(self) -> Any:
        """The smallest element."""
    def min_rows(self) -> Any:
        """The smallest element of each row."""
    def minimum(self, other) -> Any:
        """The smaller of the two, element by element."""
    def mse(self, target) -> Any:
        """The mean of the squared differences."""
    def norm(self) -> Any:
        """The Euclidean length of each row."""
    def not_equal(self, other) -> Any:
        """Whether different, element by element."""
    def numpy(self) -> Any:
        """Computes the value with the session of its graph and returns its elements."""
    def outer(self, other) -> Any:
        """The outer product of two vectors."""
    def pick(self, index) -> Any:
        """The element, or row of a matrix, at an index; of a list, the value there. An index of a value that is known is checked"""
    def pow(self, other) -> Any:
        """`self ^ other`"""
    def recip(self) -> Any:
        """`1 / x`"""
    def relu(self) -> Any:
        """`max(x, 0)`"""
    def reshape(self, dims) -> Any:
        """The same elements in another shape."""
    def rsqrt(self) -> Any:
        """`1 / sqrt(x)`"""
    def scale_gradient(self, by) -> Any:
        """The identity; it multiplies the gradient by `by`."""
    def select(self, a, b) -> Any:
        """Elementwise choice: `a` where this condition is true, `b` elsewhere."""
    @property
    def shape(self) -> Any:
        """The extents of the value."""
    def shared(self) -> Any:
        """Declares that every batch that reads this value reads it in all its rows."""
    def sigmoid(self) -> Any:
        """`1 / (1 + e^-x)`"""
    def sign(self) -> Any:
        """-1, 0 or 1."""
    def silu(self) -> Any:
        """`x * sigmoid(x)`"""
    def sin(self) -> Any:
        """The sine."""
    def slice(self, start, stop, axis=None) -> Any:
        """A range of an axis; without an axis, of the innermost one."""
    def softmax(self) -> Any:
        """`e^x / sum e^x` of each row."""
    def softplus(self) -> Any:
        """`log(1 + e^x)`"""
    def split(self, parts, axis=None) -> Any:
        """Equal parts along an axis; without an axis, along the innermost one."""
    def sqrt(self) -> Any:
        """The square root."""
    def square(self) -> Any:
        """`x * x`"""
    def stop_gradient(self) -> Any:
        """The identity with derivative zero."""
    def sum(self) -> Any:
        """The sum of all elements; of a list, the elementwise sum of its values."""
    def sum_rows(self) -> Any:
        """The sum of each row."""
    def t(self) -> Any:
        """The matrix with its axes swapped."""
    def tanh(self) -> Any:
        """The hyperbolic tangent."""
    def top_k(self, k) -> Any:
        """The `k` largest elements of each row, descending, and their indices."""
    @property
    def type(self) -> Any:
        """The type of the value."""

class WeightsError(AutobatchError):
    """Values do not fit the parameters."""

__version__: str

def affine(parts, weight, bias=None) -> Any:
    """`x · W (+ b)`, where `x` is the concatenation of the parts."""

def affine_sum(bias, *pairs) -> Any:
    """`b + x1 · W1 + x2 · W2 + ...`: a bias, then weights and values by turns."""

def append(values, item) -> Any:
    """A new list: `values` with one further item at its end. `values` itself stays as it is."""

def attend(query, keys, values, scale=1.0) -> Any:
    """Dot-product attention of a query over lists of keys and values."""

def batches_of(sizes, batch_size, seed=None) -> Any:
    """Minibatches of positions: the items `0..len(sizes)`, sorted by their sizes so that those of a minibatch are similar, in random order"""

bool_: Type

def computed(any) -> Any:
    """An argument with its recorded tensors computed."""

def concat(values, axis=None) -> Any:
    """The concatenation of values along an axis; without one, along the innermost."""

def devices() -> Any:
    """The devices of this machine: dictionaries whose entry `device` is a name for `Session(module, device=...)`. Without"""

f32: Type

def fill(dims, number) -> Any:
    """A constant of any shape."""

def gather(*values) -> Any:
    """Awaits several values in one round: `a, b = await ab.gather(x, y)`."""

def graph_attend(query, keys, values, slope=0.2) -> Any:
    """Attention of a node over its neighbours: the sum of `softmax(leaky_relu(query + key)) * value` over lists of keys and values. The"""

i32: Type

index: Type

def indices(indices) -> Any:
    """A bound index as a value, or a vector of them."""

def input(array) -> Any:
    """Bound floats of any shape: a number, a sequence or an array."""

def list(values, element=None) -> Any:
    """A list of any number of values of one type. An empty list needs the type of its elements."""

def list_of(element) -> Any:
    """The type of lists of values of a type."""

def log_softmax_of(values) -> Any:
    """The logarithm of the softmax over values of one type, element by element: each minus the `logsumexp` of all."""

def one_hot(index, width) -> Any:
    """1 at an index, 0 elsewhere."""

def op_codes() -> Any:
    """The name and code of every op, by which Python finds torch's functions."""

def softmax_sum(scores, values) -> Any:
    """`weighted_sum` with the softmax of the scores over the list as weights."""

def stack(values) -> Any:
    """Values of one type stacked along a new outermost axis."""

def total(values) -> Any:
    """The sum of values, in their order."""

u32: Type

def waits(any) -> Any:
    """Whether an argument has a tensor that waits to be computed."""

def weighted_sum(scores, values) -> Any:
    """`sum of score_i * value_i` over two lists of equal length."""

def zeros(dims) -> Any:
    """Zeros of any shape."""

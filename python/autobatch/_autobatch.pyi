"""The native half of the package. tests/stubs.py writes this file."""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, List, Protocol, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Unpack

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Array: TypeAlias = NDArray[Any]
Path: TypeAlias = str | PathLike[str]
Shape: TypeAlias = int | Sequence[int]
Operand: TypeAlias = "Value | Param | ArrayLike"
Index: TypeAlias = "int | Value"
Emitted: TypeAlias = "Value | Sequence[Value]"


class Communicator(Protocol):
    """The processes of a group. The communicators of mpi4py have these methods."""
    def Get_rank(self) -> int: ...
    def Get_size(self) -> int: ...
    def allgather(self, message: bytes, /) -> Sequence[bytes]: ...
    def alltoall(self, messages: Sequence[bytes], /) -> Sequence[bytes]: ...


class Options(TypedDict, total=False):
    """The keyword arguments of every optimiser."""
    clip_norm: float
    clip_value: float
    weight_decay: float
    decoupled_weight_decay: float
    average: float
    sparse_rows: bool
    schedule: "Schedule | Callable[[int], float]"


def Adadelta(lr: float = 1.0, rho: float = 0.9, eps: float = 1e-06, **options: Unpack[Options]) -> Optimizer:
    """Adadelta."""

def Adagrad(lr: float, eps: float = 1e-10, eps_under_root: bool = False, **options: Unpack[Options]) -> Optimizer:
    """Adagrad."""

def Adam(lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-08, eps_uncorrected: bool = False, **options: Unpack[Options]) -> Optimizer:
    """Adam."""

def AdamW(lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-08, **options: Unpack[Options]) -> Optimizer:
    """Adam with decoupled weight decay."""

class AdaptiveSoftmax:
    """A softmax over many classes in the order of their frequency: rare ones lie in clusters of narrow layers."""
    def __init__(self, module: Module, name: str, inputs: int, cutoffs: Sequence[int], reduction: int = 4) -> None:
        ...
    def log_probabilities(self, x: Value) -> Value:
        """The log-probabilities of all classes."""
    def loss(self, x: Value, class_: int) -> Value:
        """The negative log-probability of a class."""

class AdditiveAttention:
    """Additive attention of a query over keys and values."""
    def __init__(self, module: Module, name: str, query: int, key: int, width: int) -> None:
        ...
    def keys(self, keys: Sequence[Value]) -> List[Value]:
        """The projected keys, for any number of queries."""
    def read(self, query: Value, keys: Sequence[Value], values: Sequence[Value]) -> Value:
        """The attention of the query over values, one for each projected key and at least one."""
    def scores(self, query: Value, keys: Value) -> Value:
        """The scores of projected keys, before the softmax."""

def AmsGrad(lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-08, eps_uncorrected: bool = False, **options: Unpack[Options]) -> Optimizer:
    """AMSGrad."""

class AutobatchError(Exception):
    """An error of autobatch. `file` and `line` name the line of the model and `help` the remedy, where the error is about one; otherwise they are None."""
    file: str | None
    line: int | None
    help: str | None

class Awaited:
    """The iterator of an `await`: it yields itself once, and its result is what the driver of the tasks sends."""
    def __await__(self) -> Generator[Any, Any, Any]:
        ...
    def __iter__(self) -> Iterator[Any]:
        ...
    def __next__(self) -> Any:
        ...
    def send(self, answer: Any) -> Value:
        ...

class BiGRU:
    """The layer in both directions."""
    def __init__(self, module: Module, name: str, input: int, width: int, *, layers: int = 1, dropout: float = 0.0, layer_norm: bool = False, input_dropout: float = 0.0, hidden_dropout: float = 0.0, hoist: bool = False, init: Init | ArrayLike | None = None) -> None:
        ...
    def last(self, xs: Sequence[Value]) -> Value:
        """The concatenated last outputs of both directions."""
    def run(self, xs: Sequence[Value]) -> List[Value]:
        """For each input, the concatenated outputs of both directions."""
    def run_pairs(self, xs: Sequence[Value]) -> List[tuple[Value, Value]]:
        """For each input, the outputs of both directions as a pair."""

class BiLSTM:
    """The layer in both directions."""
    def __init__(self, module: Module, name: str, input: int, width: int, *, layers: int = 1, dropout: float = 0.0, peepholes: bool = False, projection: int | None = None, forget_bias: float = 0.0, layer_norm: bool = False, input_dropout: float = 0.0, hidden_dropout: float = 0.0, hoist: bool = False, init: Init | ArrayLike | None = None) -> None:
        ...
    def last(self, xs: Sequence[Value]) -> Value:
        """The concatenated last outputs of both directions."""
    def run(self, xs: Sequence[Value]) -> List[Value]:
        """For each input, the concatenated outputs of both directions."""
    def run_pairs(self, xs: Sequence[Value]) -> List[tuple[Value, Value]]:
        """For each input, the outputs of both directions as a pair."""

class BiRNN:
    """The layer in both directions."""
    def __init__(self, module: Module, name: str, input: int, width: int, *, layers: int = 1, dropout: float = 0.0, activation: str = 'tanh', layer_norm: bool = False, input_dropout: float = 0.0, hidden_dropout: float = 0.0, hoist: bool = False, init: Init | ArrayLike | None = None) -> None:
        ...
    def last(self, xs: Sequence[Value]) -> Value:
        """The concatenated last outputs of both directions."""
    def run(self, xs: Sequence[Value]) -> List[Value]:
        """For each input, the concatenated outputs of both directions."""
    def run_pairs(self, xs: Sequence[Value]) -> List[tuple[Value, Value]]:
        """For each input, the outputs of both directions as a pair."""

class Bilinear:
    """Each output is a bilinear form of two vectors, plus a bias."""
    def __init__(self, module: Module, name: str, lefts: int, rights: int, outputs: int) -> None:
        ...
    def __call__(self, left: Value, right: Value) -> Value:
        ...

class BusyError(AutobatchError):
    """Another thread uses the object."""

class CRF:
    """A linear-chain conditional random field."""
    def __init__(self, module: Module, name: str, tags: int) -> None:
        ...
    def decode(self, scores: Sequence[Value]) -> List[Value]:
        """The most probable tags, an index for each position."""
    def loss(self, scores: Sequence[Value], tags: Sequence[int]) -> Value:
        """The negative logarithm of the probability of the tags, one for each position, given the scores of all tags at each position."""

class Cell:
    """A cell: a function that was traced once. Calling it emits one node."""
    def __call__(self, *args: Index) -> Any:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def name(self) -> str:
        """The name of the cell."""

class CellDecorator:
    """Traces the function that it decorates."""
    def __call__(self, body: Callable[..., Any]) -> Cell:
        ...

class CharCNN:
    """A convolution over characters with the maximum over positions: a vector of a word of any length."""
    def __init__(self, module: Module, name: str, input: int, window: int, filters: int, activation: str = 'relu') -> None:
        ...
    def __call__(self, chars: Sequence[Value]) -> Value:
        ...

class CheckpointError(AutobatchError):
    """A file could not be written or read."""

class ChildSumTreeLSTM:
    """The child-sum Tree-LSTM, for nodes with any number of children."""
    def __init__(self, module: Module, name: str, input: int, width: int, *, hoist: bool = False, init: Init | ArrayLike | None = None) -> None:
        ...
    def node(self, x: Value, children: Sequence[tuple[Value, Value]]) -> tuple[Value, Value]:
        """The state `(h, c)` of a node with an input over a sequence of children `(h, c)`."""

class ClosedError(AutobatchError):
    """A graph, cell or session is closed."""

class DotAttention:
    """Scaled dot-product attention, which has no parameters."""
    def __init__(self, width: int, scale: float | None = None) -> None:
        ...
    def read(self, query: Value, keys: Sequence[Value], values: Sequence[Value]) -> Value:
        """The attention of the query over values, one for each key and at least one."""

class Embedding:
    """A table of vectors, one a row."""
    def __init__(self, module: Module, name: str, rows: int, width: int, *, init: Init | ArrayLike | None = None, padding: int | None = None) -> None:
        ...
    def __call__(self, index: Index) -> Value:
        ...
    def label_loss(self, x: Value, label: Index) -> Value:
        """The loss of a row under the scores of all rows, without a score in memory: for a tied output layer of many rows."""
    def scores(self, x: Value) -> Value:
        """The inner product of `x` with every row: scores of a tied output layer."""

class EmitError(AutobatchError):
    """A model emitted an invalid op."""

class Engine:
    """An engine, as Python holds it."""
    def __init__(self, params: Any, *, threads: int = 0, device: str = 'cpu', like: Any = None) -> None:
        ...
    @property
    def is_alive(self) -> Any:
        """Whether all its parameters live."""
    def knows(self, param: Any) -> Any:
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
    def __init__(self, module: Module, name: str, widths: Sequence[int], count: int, activation: str = 'relu') -> None:
        ...
    def __call__(self, x: Value) -> Value:
        ...
    def gates(self, x: Value) -> Value:
        """The probability of each expert."""
    def sparse(self, x: Value, gates: Value, used: Sequence[int]) -> Value:
        """The mixture of the named experts, each at most once. `gates` are those of `gates(x)`."""

class Expression:
    """A node of the current graph. `v` is the native value, `b` the batch size, and `array` holds the elements once they are computed."""
    def __init__(self, v: Any, b: int = 1) -> None:
        ...
    def __add__(self, value: Operand) -> Any:
        ...
    def __getitem__(self, key: int) -> Any:
        ...
    def __len__(self) -> int:
        ...
    def __mul__(self, value: Operand) -> Any:
        ...
    def __neg__(self) -> Any:
        ...
    def __pow__(self, value: Operand, mod: None = None) -> Any:
        ...
    def __radd__(self, value: Operand) -> Any:
        ...
    def __rmul__(self, value: Operand) -> Any:
        ...
    def __rpow__(self, value: Operand, mod: None = None) -> Any:
        ...
    def __rsub__(self, value: Operand) -> Any:
        ...
    def __rtruediv__(self, value: Operand) -> Any:
        ...
    def __sub__(self, value: Operand) -> Any:
        ...
    def __truediv__(self, value: Operand) -> Any:
        ...
    def abs(self) -> Any:
        """`|x|`"""
    @staticmethod
    def affine_transform(exprs: Any) -> Any:
        """`b + W1 x1 + W2 x2 ...`"""
    @property
    def array(self) -> Any:
        """The elements, once they are computed."""
    @property
    def b(self) -> Any:
        """The batch size."""
    def bmax(self, other: Operand) -> Any:
        """The larger of two elements."""
    def bmin(self, other: Operand) -> Any:
        """The smaller of two elements."""
    def cdiv(self, other: Operand) -> Any:
        """The elementwise quotient."""
    def cmult(self, other: Operand) -> Any:
        """The elementwise product."""
    def colwise_add(self, other: Operand) -> Any:
        """Adds a vector to each column."""
    def compute_small(self, trainer: Any) -> Any:
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
    def input_of(numbers: Any, b: int = 1) -> Any:
        """Numbers as an input, in the native layout."""
    @staticmethod
    def join(items: Iterable[Item]) -> Any:
        """The concatenation of vectors, or the vector of scalars, without a batch; `None` for anything else."""
    def log(self) -> Any:
        """The natural logarithm."""
    def logistic(self) -> Any:
        """`1 / (1 + e^-x)`"""
    def mean_elems(self) -> Any:
        """The mean of all elements."""
    def nobackprop(self) -> Any:
        """The identity with derivative zero."""
    def pick(self, index: Index = 0, dim: Any = 0) -> Any:
        """The elements at an index of an axis."""
    def pickneglogsoftmax(self, v: Any) -> Any:
        """`-log_softmax(x)[v]`"""
    def rectify(self) -> Any:
        """`max(x, 0)`"""
    def repeated(self, b: int) -> Any:
        """The native value, repeated for each element of a batch."""
    @staticmethod
    def row_of(table: Any, index: Index) -> Any:
        """A row of a table."""
    def sin(self) -> Any:
        """The sine."""
    def softmax_columns(self) -> Any:
        """`e^x / sum e^x` of each column."""
    def sqrt(self) -> Any:
        """The square root."""
    def square(self) -> Any:
        """`x^2`"""
    @staticmethod
    def steps_of(cells: Any, x: Value, states: Any) -> Any:
        """A step of recurrent layers, each a cell of an input and its states: the new states of each layer, the output first. `None` if"""
    def sum_elems(self) -> Any:
        """The sum of all elements."""
    @staticmethod
    def sum_of(items: Iterable[Item]) -> Any:
        """The sum of values of one shape without a batch; `None` for anything else."""
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
    def __init__(self, module: Module, name: str, input: int, width: int, *, layers: int = 1, dropout: float = 0.0, layer_norm: bool = False, input_dropout: float = 0.0, hidden_dropout: float = 0.0, hoist: bool = False, init: Init | ArrayLike | None = None) -> None:
        ...
    def last(self, xs: Sequence[Value]) -> Value:
        """The hidden value after the last input; zeros without inputs."""
    def run(self, xs: Sequence[Value]) -> List[Value]:
        """The hidden value after each input."""
    def start(self, values: Iterable[Value | Param] | None = None) -> GRUState:
        """The state before the first input, or a given state: the values of all layers, lowest first."""

class GRUState:
    """The state of a layer after some inputs. It never changes: `push` returns the next one."""
    @property
    def h(self) -> Value:
        """The hidden value of the top layer."""
    def push(self, x: Value) -> GRUState:
        """The state after one more input."""
    @property
    def values(self) -> tuple[Value, ...]:
        """All values of the state: for each layer from the lowest on, the hidden value first."""

class GatedGraph:
    """The gated graph network: in each round, every node sums its neighbours and updates its state by a GRU."""
    def __init__(self, module: Module, name: str, width: int) -> None:
        ...
    def __call__(self, states: Sequence[Value], neighbours: Sequence[Sequence[int]], rounds: int) -> List[Value]:
        ...

class GatedSum:
    """The sum of all nodes of a graph, each times a gate."""
    def __init__(self, module: Module, name: str, width: int, outputs: int) -> None:
        ...
    def __call__(self, states: Sequence[Value], inputs: Sequence[Value]) -> Value:
        ...

class Graph:
    """A graph that a program builds step by step: `with session.graph() as g: ...`."""
    def __bool__(self) -> bool:
        ...
    def __enter__(self) -> Graph:
        ...
    def __exit__(self, *_error: Any) -> None:
        ...
    def __len__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...
    def _repr_html_(self) -> str:
        """The plan of the graph with a picture, for notebooks."""
    def instance(self, key: int) -> None:
        """Begins an instance. The key selects its dropout noise and appears in messages."""
    def output(self, name: str, value: Value) -> None:
        """Makes a value an output with a name."""
    def plan(self, *values: Value, policy: str | None = None) -> Plan:
        """The plan of values of this graph; without any, of those that no node reads. Nothing is executed."""
    @property
    def session(self) -> Session | None:
        """The session that executes the graph."""
    def text(self) -> str:
        """The text form of the graph, which `autobatch` reads on the command line."""
    def to_bytes(self) -> bytes:
        """The binary form of the graph."""

class GraphAttention:
    """Graph attention: every node attends to its neighbours and to itself, in several heads."""
    def __init__(self, module: Module, name: str, inputs: int, width: int, heads: int, *, slope: float = 0.2, activation: str = 'identity') -> None:
        ...
    def __call__(self, nodes: Sequence[Value], neighbours: Sequence[Sequence[int]]) -> List[Value]:
        ...

class GroupNorm:
    """Normalisation over groups of channels."""
    def __init__(self, module: Module, name: str, groups: int, channels: int) -> None:
        ...
    def __call__(self, x: Value) -> Value:
        ...

class Guards:
    """Everything that the code of a module can read besides its arguments."""
    def __init__(self, guards: Any) -> None:
        ...
    def __len__(self) -> int:
        ...

class Init:
    """An initialiser of a parameter, from the module `ab.init`."""
    @staticmethod
    def constant(number: float) -> Init:
        """Every element is this number."""
    @staticmethod
    def glorot(gain: float = 1.0) -> Init:
        """Glorot's uniform distribution."""
    @staticmethod
    def he() -> Init:
        """He's normal distribution."""
    @staticmethod
    def normal(deviation: float) -> Init:
        """Normal with this standard deviation."""
    @staticmethod
    def saxe(gain: float = 1.0) -> Init:
        """A random orthogonal matrix, times a gain."""
    @staticmethod
    def uniform(a: float) -> Init:
        """Uniform in `-a..a`."""

class LSTM:
    """Long short-term memory."""
    def __init__(self, module: Module, name: str, input: int, width: int, *, layers: int = 1, dropout: float = 0.0, peepholes: bool = False, projection: int | None = None, forget_bias: float = 0.0, layer_norm: bool = False, input_dropout: float = 0.0, hidden_dropout: float = 0.0, hoist: bool = False, init: Init | ArrayLike | None = None) -> None:
        ...
    def last(self, xs: Sequence[Value]) -> Value:
        """The hidden value after the last input; zeros without inputs."""
    def run(self, xs: Sequence[Value]) -> List[Value]:
        """The hidden value after each input."""
    def start(self, values: Iterable[Value | Param] | None = None) -> LSTMState:
        """The state before the first input, or a given state: the values of all layers, lowest first."""

class LSTMState:
    """The state of a layer after some inputs. It never changes: `push` returns the next one."""
    @property
    def h(self) -> Value:
        """The hidden value of the top layer."""
    def push(self, x: Value) -> LSTMState:
        """The state after one more input."""
    @property
    def values(self) -> tuple[Value, ...]:
        """All values of the state: for each layer from the lowest on, the hidden value first."""

class LatticeLSTM:
    """The lattice LSTM: a character also reads the words that end at it."""
    def __init__(self, module: Module, name: str, chars: int, words: int, width: int, *, init: Init | ArrayLike | None = None) -> None:
        ...
    def run(self, chars: Sequence[Value], words: Sequence[tuple[int, int, Value]]) -> List[tuple[Value, Value]]:
        """The states `(h, c)` after each character. `words` are triples `(first, last, vector)`: the positions of the first and the"""

class LayerNorm:
    """Layer normalisation with a gain and a bias."""
    def __init__(self, module: Module, name: str, width: int, eps: float = 1e-05) -> None:
        ...
    def __call__(self, x: Value) -> Value:
        ...

class Lazy:
    """A tensor that is recorded and not computed yet. It behaves as the tensor: what needs its elements computes them."""
    def __abs__(self) -> Any:
        ...
    def __add__(self, value: Operand) -> Any:
        ...
    def __and__(self, value: Operand) -> Any:
        ...
    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def __bool__(self) -> bool:
        ...
    def __deepcopy__(self, _memo: Any) -> Any:
        ...
    def __delitem__(self, key: int) -> Any:
        ...
    def __eq__(self, other: object) -> bool:
        ...
    def __float__(self) -> Any:
        ...
    def __floordiv__(self, value: Operand) -> Any:
        ...
    def __format__(self, form: Any) -> Any:
        ...
    def __ge__(self, value: Operand) -> Any:
        ...
    def __getattribute__(self, name: str) -> Any:
        ...
    def __getitem__(self, key: int) -> Any:
        ...
    def __gt__(self, value: Operand) -> Any:
        ...
    def __hash__(self) -> int:
        ...
    def __iadd__(self, value: Operand) -> Any:
        ...
    def __imul__(self, value: Operand) -> Any:
        ...
    def __index__(self) -> Any:
        ...
    def __int__(self) -> Any:
        ...
    def __invert__(self) -> Any:
        ...
    def __isub__(self, value: Operand) -> Any:
        ...
    def __iter__(self) -> Any:
        ...
    def __itruediv__(self, value: Operand) -> Any:
        ...
    def __le__(self, value: Operand) -> Any:
        ...
    def __len__(self) -> int:
        ...
    def __lt__(self, value: Operand) -> Any:
        ...
    def __matmul__(self, value: Operand) -> Any:
        ...
    def __mod__(self, value: Operand) -> Any:
        ...
    def __mul__(self, value: Operand) -> Any:
        ...
    def __ne__(self, other: object) -> bool:
        ...
    def __neg__(self) -> Any:
        ...
    def __or__(self, value: Operand) -> Any:
        ...
    def __pow__(self, value: Operand, mod: None = None) -> Any:
        ...
    def __radd__(self, value: Operand) -> Any:
        ...
    def __rand__(self, value: Operand) -> Any:
        ...
    def __reduce_ex__(self, protocol: Any) -> Any:
        ...
    def __repr__(self) -> str:
        ...
    def __rfloordiv__(self, value: Operand) -> Any:
        ...
    def __rmatmul__(self, value: Operand) -> Any:
        ...
    def __rmod__(self, value: Operand) -> Any:
        ...
    def __rmul__(self, value: Operand) -> Any:
        ...
    def __ror__(self, value: Operand) -> Any:
        ...
    def __rpow__(self, value: Operand, mod: None = None) -> Any:
        ...
    def __rsub__(self, value: Operand) -> Any:
        ...
    def __rtruediv__(self, value: Operand) -> Any:
        ...
    def __rxor__(self, value: Operand) -> Any:
        ...
    def __setitem__(self, key: int, value: Operand) -> Any:
        ...
    def __sub__(self, value: Operand) -> Any:
        ...
    @classmethod
    def __torch_function__(cls, function: Any, _types: Any, args: Any, kwargs: Any = None) -> Any:
        ...
    def __truediv__(self, value: Operand) -> Any:
        ...
    def __xor__(self, value: Operand) -> Any:
        ...
    def add(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def chunk(self, *args: Any, **kwargs: Any) -> Any:
        ...
    @property
    def device(self) -> Any:
        ...
    def dim(self) -> Any:
        ...
    @property
    def dtype(self) -> Any:
        ...
    def exp(self, *args: Any, **kwargs: Any) -> Any:
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
    def log(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def matmul(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def mean(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def mul(self, *args: Any, **kwargs: Any) -> Any:
        ...
    @property
    def ndim(self) -> Any:
        ...
    def nelement(self) -> Any:
        ...
    def numel(self) -> Any:
        ...
    def relu(self, *args: Any, **kwargs: Any) -> Any:
        ...
    @property
    def requires_grad(self) -> Any:
        ...
    def reshape(self, *args: Any, **kwargs: Any) -> Any:
        ...
    @property
    def shape(self) -> Any:
        ...
    def sigmoid(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def size(self, dim: Any = None) -> Any:
        ...
    def softmax(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def split(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def squeeze(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def sum(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def t(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def tanh(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def transpose(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def unsqueeze(self, *args: Any, **kwargs: Any) -> Any:
        ...
    def view(self, *args: Any, **kwargs: Any) -> Any:
        ...

class Linear:
    """`y = x · W + b`"""
    def __init__(self, module: Module, name: str, inputs: int, outputs: int, bias: bool = True, *, init: Init | ArrayLike | None = None) -> None:
        ...
    def __call__(self, *parts: Value) -> Value:
        ...
    @property
    def weight(self) -> Param:
        """The weight."""

class MLP:
    """Linear layers with an activation between them, as one cell."""
    def __init__(self, module: Module, name: str, widths: Sequence[int], activation: str = 'relu', dropout: float = 0.0) -> None:
        ...
    def __call__(self, x: Value) -> Value:
        ...

class MVRNN:
    """The matrix-vector recursive layer: every node has a vector and a matrix."""
    def __init__(self, module: Module, name: str, width: int, *, init: Init | ArrayLike | None = None) -> None:
        ...
    def leaf(self, vector: Value, matrix: Value) -> tuple[Value, Value]:
        """A leaf with a vector, and a matrix given as one row of `width * width` elements, transposed."""
    def node(self, left: tuple[Value, Value], right: tuple[Value, Value]) -> tuple[Value, Value]:
        """The vector and the transposed matrix of a node over two such pairs."""

class Module:
    """The parameters, tables and cells of a model. The first session or trainer closes it: from then on it declares nothing."""
    def __init__(self, name: str = 'model') -> None:
        ...
    def __repr__(self) -> str:
        ...
    def cell(self, *ports: Type, name: str | None = None) -> CellDecorator:
        """Traces a function once, as a cell: `@m.cell(ab.f32[8], ab.f32[8])`. The types are those of its arguments."""
    def param(self, name: str, shape: Shape, init: Init | ArrayLike | None = None, dtype: str = 'f32') -> Param:
        """Declares a parameter. Without an initialiser, a matrix gets Glorot's and a vector gets zeros."""
    def params(self) -> dict[str, tuple[int, ...]]:
        """The names and shapes of all parameters."""
    def table(self, name: str, rows: int, width: int, init: Init | ArrayLike | None = None, dtype: str = 'f32') -> Table:
        """Declares a table of `rows` rows of a width, to look up by index."""

def Momentum(lr: float, momentum: float = 0.9, **options: Unpack[Options]) -> Optimizer:
    """Gradient descent with momentum."""

class MultiHeadAttention:
    """Attention with several heads."""
    def __init__(self, module: Module, name: str, width: int, heads: int, *, bias: bool = True, key: int | None = None, value: int | None = None, init: Init | ArrayLike | None = None) -> None:
        ...
    def __call__(self, xs: Sequence[Value], causal: bool = False) -> List[Value]:
        ...
    def cross(self, queries: Sequence[Value], keys: Sequence[Value], values: Sequence[Value]) -> List[Value]:
        """The attention of each query over keys and values of another sequence."""

def Nesterov(lr: float, momentum: float = 0.9, **options: Unpack[Options]) -> Optimizer:
    """Nesterov's momentum."""

class Optimizer:
    """An optimiser: a rule such as `ab.optim.Adam(1e-3)` with the options of all rules."""
    def __reduce__(self) -> tuple[Any, ...]:
        ...
    def __repr__(self) -> str:
        ...
    def learning_rate(self, update: int = 1) -> float:
        """The learning rate of an update, from 1."""

class PReLU:
    """`relu` with a learned slope below zero."""
    def __init__(self, module: Module, name: str, slopes: int = 1) -> None:
        ...
    def __call__(self, x: Value) -> Value:
        ...

class Param:
    """A parameter of a module. In an expression it stands for its value."""
    def __repr__(self) -> str:
        ...
    @property
    def name(self) -> str:
        """The name of the parameter."""
    def value(self) -> Value:
        """The parameter as a value of the current graph."""

class Paused:
    """A forward pass. `Session.backward` computes its gradients once."""
    def __repr__(self) -> str:
        ...

class Plan:
    """The plan of a graph, as the model emitted it: batches, and the rows that they read and write."""
    def __repr__(self) -> str:
        ...
    def _repr_html_(self) -> str:
        """The summary with a picture, for notebooks."""
    @property
    def batches(self) -> int:
        """The number of batches."""
    @property
    def bound(self) -> int:
        """A lower bound: no schedule of the graph has fewer batches."""
    def explain(self, a: Value | str, b: Value | str) -> str:
        """Why two values share a batch, or why they do not. A value is one of the graph, or its name such as `"%12"`."""
    def inspect(self, path: Path = ...) -> PathLike[str]:
        """Writes a page that shows the plan step by step in any browser, without a network. Returns its path."""
    @property
    def nodes(self) -> int:
        """The number of nodes of the graph."""
    def policies(self) -> dict[str, int]:
        """The number of batches that each policy makes of the same graph, as a dict."""
    @property
    def policy(self) -> str:
        """The policy that chose the batches."""
    def save(self, path: Path) -> None:
        """Writes the plan for the command line: `autobatch explain PATH`."""
    def save_graph(self, path: Path) -> None:
        """Writes the graph for the command line: `autobatch plan PATH`."""
    def text(self) -> str:
        """The plan in words, a line for each step."""

class PlanError(AutobatchError):
    """A graph has no plan."""

class Positions:
    """Vectors that tell positions apart, to add to inputs."""
    def __call__(self, xs: Sequence[Value]) -> List[Value]:
        ...
    def at(self, x: Value, place: int) -> Positions:
        """An input plus the vector of position `place`, counted from 0."""
    @staticmethod
    def learned(module: Module, name: str, longest: int, width: int) -> Positions:
        """A learned table."""
    @staticmethod
    def sinusoidal(width: int) -> Positions:
        """Sines and cosines."""

class RMSNorm:
    """Normalisation by the root of the mean square."""
    def __init__(self, module: Module, name: str, width: int, eps: float = 1e-05) -> None:
        ...
    def __call__(self, x: Value) -> Value:
        ...

class RNN:
    """The simple recurrent layer."""
    def __init__(self, module: Module, name: str, input: int, width: int, *, layers: int = 1, dropout: float = 0.0, activation: str = 'tanh', layer_norm: bool = False, input_dropout: float = 0.0, hidden_dropout: float = 0.0, hoist: bool = False, init: Init | ArrayLike | None = None) -> None:
        ...
    def last(self, xs: Sequence[Value]) -> Value:
        """The hidden value after the last input; zeros without inputs."""
    def run(self, xs: Sequence[Value]) -> List[Value]:
        """The hidden value after each input."""
    def start(self, values: Iterable[Value | Param] | None = None) -> RNNState:
        """The state before the first input, or a given state: the values of all layers, lowest first."""

class RNNState:
    """The state of a layer after some inputs. It never changes: `push` returns the next one."""
    @property
    def h(self) -> Value:
        """The hidden value of the top layer."""
    def push(self, x: Value) -> RNNState:
        """The state after one more input."""
    @property
    def values(self) -> tuple[Value, ...]:
        """All values of the state: for each layer from the lowest on, the hidden value first."""

class RecordError(AutobatchError):
    """An op of torch cannot be recorded."""

class Recorder:
    """The function mode of a block."""
    def __init__(self, environment: Any, engine: Any, eager: Any, draws: Any, remedy: Any) -> None:
        ...
    def __torch_function__(self, function: Any, _types: Any, args: Any, kwargs: Any = None) -> Any:
        ...
    def account(self) -> Any:
        """The flushes, each with its nodes, batches and their bound; the methods; and the calls that torch computed."""
    def call_method(self, module: Module, name: str, args: Any, run: Any) -> Any:
        """The same of a method of a module, by its interned name, in a run of calls between which no code of the program runs. Ints"""
    def call_module(self, module: Module, args: Any, kwargs: Any) -> Any:
        """Records a call of a module as one node. `NotImplemented` if its code must run, or `Ellipsis` if it must run between"""
    def call_unknown(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Calls a function that no op stands for and that torch does not pass to the block."""
    def close(self, failed: Any) -> Any:
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
        """The number of a run of calls."""
    def pictures(self) -> Any:
        """The pictures of the first flushes, as SVG; `None` where a graph is too large."""
    def set_wait(self, wait: Any) -> Any:
        """Sets the function that a read calls before it computes. Returns the one before."""

def RmsProp(lr: float, alpha: float = 0.99, eps: float = 1e-08, eps_under_root: bool = False, **options: Unpack[Options]) -> Optimizer:
    """RMSprop."""

class RunError(AutobatchError):
    """A plan could not be executed."""

class Sample:
    """Classes that the losses of one graph compare theirs with."""

class SampledSoftmax:
    """A softmax over a class and a sample of other classes, for training with many classes in the order of their frequency."""
    def __init__(self, module: Module, name: str, inputs: int, classes: int, samples: int) -> None:
        ...
    def full_loss(self, x: Value, class_: int) -> Value:
        """The loss of a class among all classes, for evaluation."""
    def loss(self, sample: Sample, xs: Sequence[Value], classes: Sequence[int]) -> Value:
        """The sum of the losses of a sequence of vectors and their classes against a sample; 0 for an empty sequence."""
    def sample(self, seed: int) -> Sample:
        """The sample of the current graph, which all its losses may share. Equal seeds draw equal classes; a good seed is the number of"""

class Schedule:
    """A schedule of the learning rate: a factor for each update."""
    def __call__(self, update: int) -> float:
        ...
    def __reduce__(self) -> tuple[Any, ...]:
        ...
    def __repr__(self) -> str:
        ...
    @staticmethod
    def cosine(updates: int, low: float = 0.0) -> Schedule:
        """Half a cosine from 1 to `low`, then constant."""
    @staticmethod
    def cyclical(half: int, low: float) -> Schedule:
        """Straight lines from `low` up to 1 and back, repeated."""
    @staticmethod
    def linear(updates: int, low: float = 0.0) -> Schedule:
        """A straight line from 1 to `low`, then constant."""
    @staticmethod
    def step(every: int, gamma: float) -> Schedule:
        """`gamma^floor(t / every)`"""
    @staticmethod
    def warm_up(updates: int, then: Schedule) -> Schedule:
        """A warm-up of this many updates, then another schedule."""

class Session:
    """Plans and executes graphs over one module."""
    def __init__(self, module: Module, *, device: str = 'cpu', policy: str | None = None, threads: int = 0, seed: int = 0, memory_limit: int | None = None, work_limit: float | None = None) -> None:
        ...
    def __reduce__(self) -> tuple[Any, ...]:
        ...
    def __repr__(self) -> str:
        ...
    def backward(self, paused: Paused, gradients: Sequence[Array | None]) -> Any:
        """Computes the gradients of a forward pass. `gradients` has an array of the shape of each group, or None for"""
    def batches(self) -> tuple[int, int] | None:
        """The number of batches of the last plan and the lower bound of that number; `None` before the first run."""
    def cache_stats(self) -> tuple[int, int]:
        """The hits and misses of the plan cache."""
    def follow_weights(self, values: Mapping[str, ArrayLike]) -> None:
        """Takes over the values of some parameters, given by name as arrays, where they differ from the session's."""
    def forward(self, groups: Sequence[Sequence[Value]], inputs: Sequence[Value] = ...) -> Any:
        """Executes the forward part of a plan and pauses. Each group of outputs has one type and becomes one array, one"""
    def graph(self) -> Graph:
        """An empty graph, which `with` makes current."""
    def import_pytorch(self, state_dict: Mapping[str, Any], names: Mapping[str, str] = ...) -> dict[str, List[str]]:
        """Reads a state dict of PyTorch: the layers of `nn` with its names and layouts. `names` maps modules of PyTorch to layers"""
    def last_plan(self) -> str | None:
        """The text of the plan of the last run; `None` before the first run."""
    def load_weights(self, path: Path) -> None:
        """Reads all parameters from a safetensors file."""
    def plan(self, items: Iterable[Item], emit: Callable[[Item], Emitted], *, policy: str | None = None) -> Plan:
        """Calls `emit` for every item, and returns the plan that executes all values together. Nothing is executed."""
    def predict(self, items: Iterable[Item], emit: Callable[[Item], Emitted]) -> List[Any]:
        """Calls `emit` for every item, executes all values together, and returns their arrays in the order of the items:"""
    def run(self, *values: Value) -> List[Array]:
        """Computes values of one graph together and returns their arrays."""
    def run_groups(self, groups: Sequence[Sequence[Value]]) -> Any:
        """Computes groups of values of one graph. The values of a group have one shape and become one array, one row a value."""
    def save_weights(self, path: Path) -> None:
        """Writes all parameters to a safetensors file."""
    def set_weights(self, values: Mapping[str, ArrayLike]) -> None:
        """Replaces the values of some parameters, given by name as arrays."""
    def tasks(self, items: Iterable[Item], task: Callable[[Item], Coroutine[Any, Any, Answer]]) -> List[Answer]:
        """Runs `task(item)` for every item as a task: an `async` function may await values and branch on them. Returns the"""
    @property
    def weights(self) -> dict[str, Array]:
        """The values of all parameters by name, as a dict of arrays."""

class SetAside:
    """An optimiser with its states that a trainer does not use now."""

def Sgd(lr: float, **options: Unpack[Options]) -> Optimizer:
    """Stochastic gradient descent."""

class Step:
    """The report of a step."""
    def __reduce__(self) -> tuple[Any, ...]:
        ...
    def __repr__(self) -> str:
        ...
    def _repr_html_(self) -> str:
        ...
    @property
    def batches(self) -> tuple[int, int]:
        """The batches of the forward part of the plan, and their lower bound."""
    @property
    def gradient_norm(self) -> float | None:
        """The norm of all gradients before clipping; None in a skipped step."""
    @property
    def instances(self) -> int:
        """The number of items."""
    @property
    def loss(self) -> float:
        """The mean loss of the items."""
    @property
    def losses(self) -> List[float]:
        """The loss of each item."""
    def metrics(self) -> dict[str, float]:
        """The report as a dict of numbers, as logs of training take it: without the losses of single items and the outputs."""
    @property
    def number(self) -> int:
        """The number of the step, from 0."""
    def output(self, name: str) -> List[float] | None:
        """The elements of a named output."""
    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of planning, executing and updating, and in a group of waiting. Emitting is the caller's."""
    @property
    def skipped(self) -> bool:
        """Whether the update was skipped, because a loss or a gradient had a NaN or an infinity."""
    @property
    def weight(self) -> float:
        """The sum of the weights of the items, by which the sum of their losses is divided."""

class Table:
    """A table of a module: `words[3]` is its row at an index, bound or computed."""
    def __getitem__(self, key: Index) -> Value:
        ...
    def __len__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...
    def as_param(self) -> Param:
        """The whole table as a parameter, for a tied output layer."""

class TrainError(AutobatchError):
    """A training step failed."""

class Trainer:
    """A session with an optimiser. Steps change its weights."""
    def __init__(self, module: Module, optimizer: Optimizer, *, device: str = 'cpu', policy: str | None = None, threads: int = 0, seed: int = 0, memory_limit: int | None = None, work_limit: float | None = None, skip_non_finite: bool = False, update_unused: bool = False, shards: int | None = None, group: Communicator | None = None, divide_states: Any = False) -> None:
        ...
    def __reduce__(self) -> tuple[Any, ...]:
        ...
    def __repr__(self) -> str:
        ...
    def agree(self, subject: str, fact: str) -> None:
        """Compares a fact between all processes of the group, such as a hash of the data. An error, on all of them, if one differs."""
    def averages(self) -> dict[str, Array] | None:
        """The moving averages of the parameters as a dict of arrays, if the optimiser keeps them. They are often better to evaluate."""
    def backward(self, loss: Value, values: Sequence[Value] = ...) -> tuple[float, List[Array | None]]:
        """Executes a graph forward and in reverse, and adds the gradients of a scalar to the ones waiting for `update`."""
    def discard_gradients(self) -> None:
        """Discards the waiting gradients."""
    def evaluate(self, values: Sequence[Value], ahead: bool = False) -> List[Array]:
        """Computes values of a graph and returns their arrays. Values that an earlier call computed are not computed again."""
    def exchange(self, other: SetAside) -> None:
        """Exchanges the optimiser with its states for another one."""
    def freeze(self, name: str) -> None:
        """Freezes a parameter, or all parameters of a layer, by name: they keep their values and cost no gradient. The optimiser starts"""
    def gradient(self, name: str) -> Array:
        """The waiting gradient of a parameter."""
    def gradients(self, items: Iterable[Item], loss: Callable[[Item], Value]) -> dict[str, Array]:
        """The gradients of the mean of the losses that `loss` returns, for each parameter, as a dict of arrays. It draws no noise, and"""
    def graph(self) -> Graph:
        """An empty graph for `evaluate` and `backward`. Its nodes name no lines."""
    def import_pytorch(self, state_dict: Mapping[str, Any], names: Mapping[str, str] = ...) -> dict[str, List[str]]:
        """Reads a state dict of PyTorch: the layers of `nn` with its names and layouts. `names` maps modules of PyTorch to layers"""
    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
    def load(self, path: Path) -> None:
        """Continues from a checkpoint of the same model and optimiser. All processes of a group call it."""
    def note(self, name: str) -> str | None:
        """A text of the checkpoint that `load` read, or of `set_note`."""
    def predict(self, items: Iterable[Item], emit: Callable[[Item], Emitted]) -> List[Any]:
        """Calls `emit` for every item, computes all values with the current weights and without dropout, and returns their"""
    @property
    def rank(self) -> int:
        """The number of this process in the group, from 0."""
    @property
    def ranks(self) -> int:
        """The number of processes in the group, 1 without one."""
    def rebind(self, value: Value, elements: ArrayLike) -> None:
        """Replaces the numbers of an input of a graph. `evaluate` computes all values of the graph again."""
    def save(self, path: Path) -> None:
        """Writes a checkpoint, from which `load` continues with equal bits. All processes of a group call it, and the first one writes."""
    def session(self) -> Session:
        """A session with a copy of the current weights."""
    def set_aside(self, optimizer: Optimizer, names: set[str]) -> SetAside:
        """An optimiser for some parameters, with fresh states, for `exchange`."""
    def set_note(self, name: str, text: str) -> None:
        """Writes a text into the next checkpoints, such as the vocabulary of a model."""
    def set_schedule(self, schedule: Schedule | Callable[[int], float]) -> None:
        """Replaces the schedule of the learning rate."""
    def set_watch(self, watch: bool) -> None:
        """Looks for the first NaN or infinity of each step: a step that makes one is an error that names the op. It reads every result"""
    def set_weights(self, values: Mapping[str, ArrayLike]) -> None:
        """Replaces the values of some parameters, given by name as arrays."""
    @property
    def skipped(self) -> int:
        """The number of steps that were skipped; see `skip_non_finite`."""
    def step(self, items: Iterable[Item], loss: Callable[[Item], Value], *, weights: Sequence[float] | Callable[[Item], float] | None = None, together: int | None = None) -> Step:
        """Makes one step: calls `loss` for every item, and trains on the mean of the returned losses. With `weights`, a number for each"""
    def step_graph(self, loss: Callable[[], Emitted]) -> Step:
        """Makes one step on a loss that `loss()` emits as a whole."""
    def step_tasks(self, items: Iterable[Item], loss: Callable[[Item], Coroutine[Any, Any, Value]]) -> Step:
        """Makes one step over items whose course depends on computed values: `loss` is an `async` function that may await values, and"""
    @property
    def steps(self) -> int:
        """The number of steps."""
    def train_only(self, chosen: Callable[[str], object]) -> None:
        """Trains the parameters whose names `chosen` accepts, and freezes all others. The optimiser starts anew."""
    def unfreeze(self, name: str) -> None:
        """Trains a frozen parameter or layer again. The optimiser starts anew."""
    def update(self) -> None:
        """Updates the parameters with the waiting gradients."""
    def weight(self, name: str) -> Array:
        """The value of a parameter."""
    @property
    def weights(self) -> dict[str, Array]:
        """The values of all parameters by name, as a dict of arrays."""

class TransformerDecoder:
    """A stack of decoder layers, with a final norm if norms come first. A position attends to itself, to earlier positions, and to an"""
    def __init__(self, module: Module, name: str, width: int, heads: int, layers: int, *, feed_forward: int | None = None, activation: str = 'relu', norm_first: bool = False, dropout: float = 0.0, bias: bool = True) -> None:
        ...
    def __call__(self, xs: Sequence[Value], encoded: Sequence[Value]) -> List[Value]:
        ...
    def start(self, encoded: Sequence[Value]) -> TransformerState:
        """The state before the first position, for positions that arrive one by one. The outputs equal those of a call bit for bit."""

class TransformerEncoder:
    """A stack of encoder layers, with a final norm if norms come first. Sequences of any lengths share its batches, without padding."""
    def __init__(self, module: Module, name: str, width: int, heads: int, layers: int, *, feed_forward: int | None = None, activation: str = 'relu', norm_first: bool = False, dropout: float = 0.0, bias: bool = True) -> None:
        ...
    def __call__(self, xs: Sequence[Value], causal: bool = False) -> List[Value]:
        ...
    def start(self) -> TransformerState:
        """The state before the first position, for positions that arrive one by one. The outputs equal those of a causal call bit"""

class TransformerEncoderLayer:
    """A layer of a transformer encoder. Sequences of any lengths share its batches, without padding."""
    def __init__(self, module: Module, name: str, width: int, heads: int, *, feed_forward: int | None = None, activation: str = 'relu', norm_first: bool = False, dropout: float = 0.0, bias: bool = True) -> None:
        ...
    def __call__(self, xs: Sequence[Value], causal: bool = False) -> List[Value]:
        ...

class TransformerState:
    """The state of an encoder or a decoder after some positions. It never changes: `push` returns the next one, so a search"""
    def __len__(self) -> int:
        ...
    @property
    def output(self) -> Value:
        """The output at the last position."""
    def push(self, x: Value) -> TransformerState:
        """The state after one more position."""

class TreeGRU:
    """The binary gated recurrent tree layer."""
    def __init__(self, module: Module, name: str, width: int, *, input: int | None = None, init: Init | ArrayLike | None = None) -> None:
        ...
    def node(self, left: Value, right: Value, x: Value | None = None) -> Value:
        """The value of a node over two children, with the input of the node if the layer was declared with one."""

class TreeLSTM:
    """The binary Tree-LSTM."""
    def __init__(self, module: Module, name: str, width: int, *, input: int | None = None, forget_bias: float = 0.0, init: Init | ArrayLike | None = None) -> None:
        ...
    def leaf(self, x: Value) -> tuple[Value, Value]:
        """A leaf with a given vector: `(x, 0)`."""
    def node(self, left: tuple[Value, Value], right: tuple[Value, Value], x: Value | None = None) -> tuple[Value, Value]:
        """The state `(h, c)` of a node over two children `(h, c)`, with the input of the node if the layer was declared with one."""

class TreeRNN:
    """The binary recursive layer."""
    def __init__(self, module: Module, name: str, width: int, *, input: int | None = None, bias: bool = False, activation: str = 'tanh', init: Init | ArrayLike | None = None) -> None:
        ...
    def node(self, left: Value, right: Value, x: Value | None = None) -> Value:
        """The value of a node over two children, with the input of the node if the layer was declared with one."""

class Type:
    """A type of values: `f32[8]`, `f32[2, 3]`, `f32` (one number), `index`, `list_of(f32[8])`."""
    def __init__(self, spelling: str) -> None:
        ...
    def __eq__(self, other: object) -> bool:
        ...
    def __getitem__(self, key: Shape) -> Type:
        ...
    def __getnewargs__(self) -> tuple[str]:
        ...
    def __hash__(self) -> int:
        ...
    def __ne__(self, other: object) -> bool:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def dtype(self) -> str:
        """The name of the element type."""
    @property
    def is_list(self) -> bool:
        """Whether this is the type of lists of values."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of one value."""

class Value:
    """A value of a graph. Operators and methods emit; nothing is computed before the session runs."""
    def __add__(self, value: Operand) -> Value:
        ...
    def __array__(self, *_args: Any, **_kwargs: Any) -> Array:
        ...
    def __await__(self) -> Generator[Any, Any, Array]:
        ...
    def __bool__(self) -> bool:
        ...
    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        ...
    def __ge__(self, value: Operand) -> Value:
        ...
    def __getitem__(self, key: Index | slice) -> Value:
        ...
    def __gt__(self, value: Operand) -> Value:
        ...
    def __hash__(self) -> int:
        ...
    def __iter__(self) -> Iterator[Value]:
        ...
    def __le__(self, value: Operand) -> Value:
        ...
    def __len__(self) -> int:
        ...
    def __lt__(self, value: Operand) -> Value:
        ...
    def __matmul__(self, value: Operand) -> Value:
        ...
    def __mul__(self, value: Operand) -> Value:
        ...
    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        ...
    def __neg__(self) -> Value:
        ...
    def __pow__(self, value: Operand, mod: None = None) -> Value:
        ...
    def __radd__(self, value: Operand) -> Value:
        ...
    def __repr__(self) -> str:
        ...
    def __rmatmul__(self, value: Operand) -> Value:
        ...
    def __rmul__(self, value: Operand) -> Value:
        ...
    def __rpow__(self, value: Operand, mod: None = None) -> Value:
        ...
    def __rsub__(self, value: Operand) -> Value:
        ...
    def __rtruediv__(self, value: Operand) -> Value:
        ...
    def __sub__(self, value: Operand) -> Value:
        ...
    def __truediv__(self, value: Operand) -> Value:
        ...
    def abs(self) -> Value:
        """`|x|`"""
    def affine(self, weight: Param, bias: Param | None = None) -> Value:
        """`x · W (+ b)`. A matrix `x` gives one product per row."""
    def affine_transposed(self, weight: Param, bias: Param | None = None) -> Value:
        """`x · Wᵀ (+ b)`, for a weight stored as `[outputs, inputs]`."""
    def alone(self) -> Value:
        """Makes the node of this value a batch of its own."""
    def argmax(self) -> Value:
        """The index of the largest element of each row."""
    def bce(self, target: Operand) -> Value:
        """The mean binary cross-entropy of these logits against targets in `0..=1`."""
    def broadcast(self, dims: Shape) -> Value:
        """Repetition along axes of extent 1 and new outer axes."""
    def cast(self, to: str) -> Value:
        """Conversion to another element type, by its name."""
    def clamp(self, low: float, high: float) -> Value:
        """`x` limited to `low..=high`."""
    def cos(self) -> Value:
        """The cosine."""
    def cross_entropy(self, label: Index) -> Value:
        """`-log_softmax(self)[label]` of each row."""
    def cross_entropy_with(self, target: Value) -> Value:
        """`-sum target * log_softmax(self)`."""
    def dot(self, other: Operand) -> Value:
        """The inner product of two vectors."""
    def dropout(self, rate: float) -> Value:
        """In training, zero with probability `rate` and scaled up elsewhere; the identity otherwise."""
    def elu(self, alpha: float = 1.0) -> Value:
        """`x` where positive, `alpha * (e^x - 1)` elsewhere."""
    def equal(self, other: Operand) -> Value:
        """Whether equal, element by element."""
    def erf(self) -> Value:
        """The error function."""
    def exp(self) -> Value:
        """`e^x`"""
    def gelu(self) -> Value:
        """The Gaussian error linear unit."""
    def hinge(self, label: Index, margin: float = 1.0) -> Value:
        """The margin loss of each row."""
    def kl_div(self, target: Operand) -> Value:
        """`sum target * (log target - self)`, where `self` holds log-probabilities."""
    def label_loss(self, rows: Param, label: Index) -> Value:
        """`-log_softmax(rows · self)[label]` of 10^4 labels and more: `rows` has a row for each, and no score is kept."""
    def layer_norm(self, eps: float = 1e-05) -> Value:
        """Each row minus its mean, divided by its deviation."""
    def leaky_relu(self, slope: float) -> Value:
        """`x` where positive, `slope * x` elsewhere."""
    def log(self) -> Value:
        """The natural logarithm."""
    def log_softmax(self) -> Value:
        """`log(softmax(x))` of each row."""
    def logsumexp(self) -> Value:
        """`log(sum e^x)` of each row."""
    def mask(self, legal: Sequence[bool]) -> Value:
        """Replaces elements by minus infinity where `legal` is false."""
    def matmul(self, other: Operand) -> Value:
        """The matrix product of two values."""
    def max(self, axis: int | None = None) -> Value:
        """The largest element, or those along an axis; of a list, the elementwise maximum of its values."""
    def max_rows(self) -> Value:
        """The largest element of each row."""
    def maximum(self, other: Operand) -> Value:
        """The larger of the two, element by element."""
    def mean(self, axis: int | None = None) -> Value:
        """The mean of all elements, or along an axis; of a list, the elementwise mean of its values."""
    def mean_rows(self) -> Value:
        """The mean of each row."""
    def min(self, axis: int | None = None) -> Value:
        """The smallest element, or those along an axis."""
    def min_rows(self) -> Value:
        """The smallest element of each row."""
    def minimum(self, other: Operand) -> Value:
        """The smaller of the two, element by element."""
    def mse(self, target: Operand) -> Value:
        """The mean of the squared differences."""
    def norm(self) -> Value:
        """The Euclidean length of each row."""
    def not_equal(self, other: Operand) -> Value:
        """Whether different, element by element."""
    def numpy(self) -> Array:
        """Computes the value with the session of its graph and returns its elements."""
    def outer(self, other: Operand) -> Value:
        """The outer product of two vectors."""
    def pick(self, index: Index) -> Value:
        """The element, or row of a matrix, at an index; of a list, the value there. An index of a value that is known is checked"""
    def pow(self, other: Operand) -> Value:
        """`self ^ other`"""
    def recip(self) -> Value:
        """`1 / x`"""
    def relu(self) -> Value:
        """`max(x, 0)`"""
    def reshape(self, dims: Shape) -> Value:
        """The same elements in another shape."""
    def rsqrt(self) -> Value:
        """`1 / sqrt(x)`"""
    def scale_gradient(self, by: float) -> Value:
        """The identity; it multiplies the gradient by `by`."""
    def select(self, a: Value, b: Value) -> Value:
        """Elementwise choice: `a` where this condition is true, `b` elsewhere."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the value."""
    def shared(self) -> Value:
        """Declares that every batch that reads this value reads it in all its rows."""
    def sigmoid(self) -> Value:
        """`1 / (1 + e^-x)`"""
    def sign(self) -> Value:
        """-1, 0 or 1."""
    def silu(self) -> Value:
        """`x * sigmoid(x)`"""
    def sin(self) -> Value:
        """The sine."""
    def slice(self, start: int, stop: int, axis: int | None = None) -> Value:
        """A range of an axis; without an axis, of the innermost one."""
    def softmax(self) -> Value:
        """`e^x / sum e^x` of each row."""
    def softplus(self) -> Value:
        """`log(1 + e^x)`"""
    def split(self, parts: Iterable[Value | Param], axis: int | None = None) -> tuple[Value, ...]:
        """Equal parts along an axis; without an axis, along the innermost one."""
    def sqrt(self) -> Value:
        """The square root."""
    def square(self) -> Value:
        """`x * x`"""
    def stop_gradient(self) -> Value:
        """The identity with derivative zero."""
    def sum(self, axis: int | None = None) -> Value:
        """The sum of all elements, or along an axis; of a list, the elementwise sum of its values."""
    def sum_rows(self) -> Value:
        """The sum of each row."""
    def t(self) -> Value:
        """The matrix with its axes swapped."""
    def tanh(self) -> Value:
        """The hyperbolic tangent."""
    def top_k(self, k: int) -> tuple[Value, Value]:
        """The `k` largest elements of each row, descending, and their indices."""
    @property
    def type(self) -> Type:
        """The type of the value."""

class WeightsError(AutobatchError):
    """Values do not fit the parameters."""

__version__: str

def affine(parts: Iterable[Value | Param], weight: Param, bias: Param | None = None) -> Value:
    """`x · W (+ b)`, where `x` is the concatenation of the parts."""

def affine_sum(bias: Param, *pairs: Param | Value) -> Value:
    """`b + x1 · W1 + x2 · W2 + ...`: a bias, then weights and values by turns."""

def append(values: Value, item: Value) -> Value:
    """A new list: `values` with one further item at its end. `values` itself stays as it is."""

def attend(query: Value, keys: Value, values: Value, scale: float = 1.0) -> Value:
    """Dot-product attention of a query over lists of keys and values."""

def balanced_order(costs: Sequence[int], shards: int) -> List[int]:
    """The positions of costs in an order such that consecutive shards of them have nearly equal sums."""

def batches_of(sizes: Sequence[int], batch_size: int, seed: int | None = None) -> List[List[int]]:
    """Minibatches of positions: the items `0..len(sizes)`, sorted by their sizes so that those of a minibatch are similar, in random order"""

bool_: Type

def computed(any: Any) -> Any:
    """An argument with its recorded tensors computed."""

def concat(values: Iterable[Value | Param], axis: int | None = None) -> Value:
    """The concatenation of values along an axis; without one, along the innermost."""

def devices() -> List[str]:
    """The devices of this machine: dictionaries whose entry `device` is a name for `Session(module, device=...)`. Without"""

f32: Type

def fill(dims: Shape, number: float) -> Value:
    """A constant of any shape."""

def gather(*values: Value) -> Awaited:
    """Awaits several values in one round: `a, b = await ab.gather(x, y)`."""

def graph_attend(query: Value, keys: Value, values: Value, slope: float = 0.2) -> Value:
    """Attention of a node over its neighbours: the sum of `softmax(leaky_relu(query + key)) * value` over lists of keys and values. The"""

i32: Type

index: Type

def indices(indices: Sequence[int]) -> Value:
    """A bound index as a value, or a vector of them."""

def input(array: ArrayLike) -> Value:
    """Bound floats of any shape: a number, a sequence or an array."""

def list(values: Iterable[Value | Param], element: Type | None = None) -> Value:
    """A list of any number of values of one type. An empty list needs the type of its elements."""

def list_of(element: Type) -> Type:
    """The type of lists of values of a type."""

def log_softmax_of(values: Iterable[Value | Param]) -> List[Value]:
    """The logarithm of the softmax over values of one type, element by element: each minus the `logsumexp` of all."""

def one_hot(index: Index, width: int) -> Value:
    """1 at an index, 0 elsewhere."""

def op_codes() -> dict[str, int]:
    """The name and code of every op, by which Python finds torch's functions."""

def softmax_sum(scores: Value, values: Value) -> Value:
    """`weighted_sum` with the softmax of the scores over the list as weights."""

def stack(values: Iterable[Value | Param]) -> Value:
    """Values of one type stacked along a new outermost axis."""

def total(values: Iterable[Value | Param]) -> Value:
    """The sum of values, in their order."""

u32: Type

def waits(any: Any) -> Any:
    """Whether an argument has a tensor that waits to be computed."""

def weighted_sum(scores: Value, values: Value) -> Value:
    """`sum of score_i * value_i` over two lists of equal length."""

def zeros(dims: Shape) -> Value:
    """Zeros of any shape."""

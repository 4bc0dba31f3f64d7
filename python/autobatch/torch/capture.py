"""Captures a method of a `torch.nn.Module` as a cell of the engine.

`torch.fx` traces the method once, on a batch of unknown size. Axis 0 of a batched tensor is the batch, which a cell does not
see: axis `d` of torch is axis `d - 1` of the cell.
"""

import contextlib
import operator
import threading

import torch
import torch.fx
import torch.nn.functional as F

import autobatch as ab

from .place import line_of_user


class CaptureError(ab.AutobatchError):
    """A method has an op that the engine cannot capture. `fallback=True` runs such methods by torch."""


class _Tracer(torch.fx.Tracer):
    """Traces one method. Modules of torch stay whole, so that each is one op."""

    def __init__(self, method):
        super().__init__()
        self.traced_func_name = method

    def create_node(self, *args, **kwargs):
        node = super().create_node(*args, **kwargs)
        node.meta["line"] = line_of_user()
        return node


#: torch's functions that make tensors of a size. They do not accept the sizes of traced tensors.
_FACTORIES = {name: getattr(torch, name) for name in ("zeros", "ones")}
#: In-place operators. Without them `x += y` on a traced tensor would be recorded as `x = x + y`.
_IN_PLACE = {
    operator.iadd: operator.add,
    operator.isub: operator.sub,
    operator.imul: operator.mul,
    operator.itruediv: operator.truediv,
    operator.ipow: operator.pow,
    operator.imatmul: operator.matmul,
}
_PATCHING = threading.RLock()


def _traced_in_place(function):
    return lambda self, other: self.tracer.create_proxy("call_function", function, (self, other), {})


@contextlib.contextmanager
def _traced_python():
    """Records in-place operators, and calls of factories whose sizes come from a traced tensor."""

    def traced(original):
        def make(*sizes, **options):
            parts = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
            proxies = [part for part in parts if isinstance(part, torch.fx.Proxy)]
            if not proxies:
                return original(*sizes, **options)
            return proxies[0].tracer.create_proxy("call_function", original, tuple(sizes), options)

        return make

    with _PATCHING:
        for name, original in _FACTORIES.items():
            setattr(torch, name, traced(original))
        for function in _IN_PLACE:
            setattr(torch.fx.Proxy, f"__{function.__name__}__", _traced_in_place(function))
        try:
            yield
        finally:
            for name, original in _FACTORIES.items():
                setattr(torch, name, original)
            for function in _IN_PLACE:
                delattr(torch.fx.Proxy, f"__{function.__name__}__")


def trace(module, method):
    """The graph of a method."""
    if not callable(getattr(module, method, None)):
        raise CaptureError(f"{type(module).__name__} has no method {method!r}; name a method of the module")
    generator = torch.get_rng_state()
    try:
        with _traced_python():
            graph = _Tracer(method).trace(module)
        if not torch.equal(generator, torch.get_rng_state()):
            raise CaptureError(
                f"{type(module).__name__}.{method} draws random numbers of torch, which would be drawn once and kept; draw "
                "them outside and pass them as an argument, or pass fallback=True"
            )
        check_in_place(module, method, graph)
        return graph
    except CaptureError:
        raise
    except Exception as error:
        raise CaptureError(
            f"{type(module).__name__}.{method} cannot be traced: {error}; write it without branches on values, or pass "
            "fallback=True"
        ) from error


def _line(node):
    """The Python line of a node: the innermost one that is not torch's."""
    return node.meta["line"]


#: Ops whose result may share memory with their first operand.
_VIEWS = {
    "view", "reshape", "t", "chunk", "split", "squeeze", "unsqueeze", "contiguous", "transpose", "permute", "expand",
    "flatten", "detach", "narrow", "select", "unbind", "getitem", "getattr", "dropout", "to", "float", "clone_", "type_as",
}


def _name(node):
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def _works_in_place(module, node):
    if node.op == "call_module":
        return bool(getattr(module.get_submodule(node.target), "inplace", False))
    if node.op not in ("call_function", "call_method"):
        return False
    name = _name(node)
    flagged = node.kwargs.get("inplace", False) or node.op == "call_function" and node.target in _INPLACE_PLACES and (
        len(node.args) > _INPLACE_PLACES[node.target] and bool(node.args[_INPLACE_PLACES[node.target]])
    )
    return bool(flagged) or node.target in _IN_PLACE or (name.endswith("_") and not name.endswith("__"))


def _is_view(module, node):
    if node.op == "call_module":
        return isinstance(module.get_submodule(node.target), (torch.nn.Identity, torch.nn.Dropout, torch.nn.Flatten))
    return node.op in ("call_function", "call_method") and _name(node) in _VIEWS


def check_in_place(module, method, graph):
    """Refuses an in-place op whose old value a later op reads, because a cell computes new values only.

    `F.relu(linear(x), inplace=True)` is fine: only its result is read. A value is old if it may share memory with the
    operand and was made before the op.
    """
    nodes, family = list(graph.nodes), {}
    for at, node in enumerate(nodes):
        works = _works_in_place(module, node)
        if works or _is_view(module, node):
            of = next(iter(node.all_input_nodes), None)
            family[node] = family.setdefault(of, [of]) if of is not None else [node]
            if works and of is not None:
                old = list(family[of])
                named = {node.name for node in old}
                outside = any(member.op in ("placeholder", "get_attr") for member in old)
                read = any(reader.name in named for later in nodes[at + 1 :] for reader in later.all_input_nodes)
                if outside or read:
                    what = "an argument or parameter" if outside else "a value that is read later"
                    raise CaptureError(
                        f"{type(module).__name__}.{method}: {_name(node)} at {_line(node)} changes {what} in place, which "
                        "cannot be captured; use the form that returns a new tensor, or pass fallback=True"
                    )
            family[node].append(node)


class _Size:
    """The size of the batch. It has no number in a cell; constants whose first extent it is are captured."""


class _Shape(tuple):
    """The size of a batched tensor."""


class Lowering:
    """Emits the graph of a method into the body of a cell."""

    def __init__(self, module, method, graph, params, tables):
        self.module, self.method, self.graph = module, method, graph
        self.params, self.tables = params, tables

    def __call__(self, *args):
        env, given = {}, iter(args)
        for node in self.graph.nodes:
            if node.op == "placeholder":
                if node.target.startswith("*"):
                    raise self._refuse(node, f"it takes any number of arguments, {node.target}")
                env[node] = next(given, MISSING)
                if env[node] is MISSING:
                    if not node.args:
                        raise self._refuse(node, f"it takes {node.target!r}, and the call has {len(args)} arguments")
                    env[node] = node.args[0]
                continue
            get = lambda arg: torch.fx.node.map_arg(arg, lambda n: env[n])  # noqa: E731
            operands, options = get(node.args), get(node.kwargs)
            if node.op == "output":
                if next(given, MISSING) is not MISSING:
                    takes = sum(node.op == "placeholder" for node in self.graph.nodes)
                    raise self._refuse(node, f"it takes {takes} arguments, and the call has {len(args)}")
                return self._results(node, operands[0])
            env[node] = self._emit(node, operands, options)
        return None

    def _results(self, node, results):
        """Checks that a method returns tensors with a batch."""
        for result in results if isinstance(results, (tuple, list)) else (results,):
            if not isinstance(result, ab.Value):
                what = "a parameter or constant" if isinstance(result, _Free) else f"{type(result).__name__}"
                raise self._refuse(node, f"it returns {what}, and a fold needs tensors that depend on the batch")
        return results

    def _refuse(self, node, why):
        what = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
        if node.op == "call_module":
            what = f"{type(self.module.get_submodule(node.target)).__name__} ({node.target})"
        return CaptureError(
            f"{type(self.module).__name__}.{self.method}: {what} at {_line(node)} cannot be captured: {why}; "
            "rewrite it, or pass fallback=True to run the method by torch"
        )

    def _emit(self, node, args, kwargs):
        try:
            if node.op == "get_attr":
                return self._parameter(node.target)
            if node.op == "call_module":
                child = self.module.get_submodule(node.target)
                emit = MODULES.get(type(child))
                if emit is None:
                    raise NotImplementedError("the engine has no counterpart of this module")
                _check_batched(args)
                return emit(_Child(self, node.target, child), *args, **kwargs)
            target = _IN_PLACE.get(node.target, node.target)
            if node.op == "call_function" and all(isinstance(arg, (int, float)) for arg in args):
                return target(*args, **kwargs)
            emit = FUNCTIONS.get(target) if node.op == "call_function" else METHODS.get(target)
            if emit is None:
                raise NotImplementedError("the engine has no counterpart of this op")
            if emit not in _TAKES_FREE:
                _check_batched(args)
            return emit(*args, **kwargs)
        except CaptureError:
            raise
        except Exception as error:
            raise self._refuse(node, error) from error

    def _parameter(self, name):
        if name in self.params:
            return _Parameter(*self.params[name])
        raise NotImplementedError(f"{name} is no parameter; register it as torch.nn.Parameter")


MISSING = object()


class _Free:
    """A tensor without a batch axis: an expression of parameters and numbers. `value` has torch's whole shape."""

    def __init__(self, value):
        self._value = value

    def value(self):
        return self._value


class _Parameter(_Free):
    """A parameter in an expression. `shape` is torch's, and `transposed` stands for the transpose."""

    def __init__(self, param, shape, transposed=False):
        self.param, self.shape, self.transposed = param, shape, transposed

    def t(self):
        return _Parameter(self.param, self.shape[::-1], not self.transposed)

    def value(self):
        value = self.param.value()
        value = value.t() if self.transposed else value
        return value if value.shape == self.shape else value.reshape(self.shape)


def _check_batched(args):
    """Refuses expressions of parameters as operands of ops that count axes from the batch."""
    for arg in args:
        if isinstance(arg, (tuple, list)):
            _check_batched(arg)
        elif isinstance(arg, _Free):
            raise NotImplementedError("an operand has no batch; apply the op to a tensor that depends on an argument")


def _beside(x, free):
    """The value of an expression without a batch, as an operand beside a batched one."""
    value, rank = free.value(), len(x.shape) + 1
    if len(value.shape) < rank:
        return value
    if len(value.shape) > rank or value.shape[0] != 1:
        raise NotImplementedError(
            f"a parameter of shape {tuple(value.shape)} beside a tensor of rank {rank} would join the batch"
        )
    return value.reshape(value.shape[1:])


class _Child:
    """A module inside of the captured one, with its parameters."""

    def __init__(self, lowering, name, module):
        self.lowering, self.name, self.module = lowering, name, module

    def param(self, name):
        if getattr(self.module, name) is None:
            return None
        found = self.lowering.params.get(f"{self.name}.{name}")
        if found is None:
            raise NotImplementedError(f"{self.name}.{name} is no parameter")
        return found[0]

    def table(self):
        return self.lowering.tables[f"{self.name}.weight"]


def _axis(x, dim):
    """The axis of a cell for an axis of torch."""
    rank = len(x.shape) + 1
    axis = dim + rank if dim < 0 else dim
    if not 0 < axis < rank:
        raise NotImplementedError(f"axis {dim} is the batch, or does not exist in a tensor of rank {rank}")
    return axis - 1


def _last(x, dim):
    """Refuses every axis but the last one."""
    if dim is None or _axis(x, dim) != len(x.shape) - 1:
        raise NotImplementedError(f"only the last axis can be normalised or reduced, found {dim}")
    return x


#: The ops that accept expressions without a batch.
_TAKES_FREE = set()


def _takes_free(emit):
    _TAKES_FREE.add(emit)
    return emit


def _binary(f):
    @_takes_free
    def emit(a, b, *, alpha=1):
        a_free, b_free = isinstance(a, _Free), isinstance(b, _Free)
        numbers = [isinstance(x, (int, float)) for x in (a, b)]
        free = (a_free or numbers[0]) and (b_free or numbers[1])
        if a_free:
            a = a.value() if free else _beside(b, a)
        if b_free:
            b = b.value() if free else _beside(a, b)
        if not free and not any(numbers) and len(a.shape) != len(b.shape) and not (a_free or b_free):
            raise NotImplementedError(
                f"tensors of the ranks {len(a.shape) + 1} and {len(b.shape) + 1}, whose batches torch would not align"
            )
        made = f(a, b if alpha == 1 else b * alpha)
        return _Free(made) if free and isinstance(made, ab.Value) else made

    return emit


def _unary(name):
    @_takes_free
    def emit(x, inplace=False):
        return _Free(getattr(x.value(), name)()) if isinstance(x, _Free) else getattr(x, name)()

    return emit


@_takes_free
def _matmul(a, b):
    if isinstance(b, _Parameter) and not isinstance(a, _Free):
        if len(b.shape) != 2:
            raise NotImplementedError("the parameter of a product must be a matrix")
        return a.affine_transposed(b.param) if b.transposed else a.affine(b.param)
    if isinstance(a, _Free) or isinstance(b, _Free):
        raise NotImplementedError("a product with parameters has the batch on the left and one parameter on the right")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise NotImplementedError("two batched factors must be matrices: use torch.bmm on rank 3")
    return a.matmul(b)


@_takes_free
def _addmm(bias, a, b, *, beta=1, alpha=1):
    product = _matmul(a, b)
    return ADD(bias if beta == 1 else MUL(bias, beta), product if alpha == 1 else product * alpha)


@_takes_free
def _linear_of(x, weight, bias=None):
    if isinstance(x, _Free) or not isinstance(weight, _Parameter) or weight.transposed or len(weight.shape) != 2:
        raise NotImplementedError("the weight must be a parameter, and the input must have a batch")
    y = x.affine_transposed(weight.param)
    return y if bias is None else ADD(y, bias)


def _cat(tensors, dim=0, axis=None):
    return ab.concat(tensors, _axis(tensors[0], dim if axis is None else axis))


def _chunk(x, chunks, dim=0):
    axis = _axis(x, dim)
    if x.shape[axis] % chunks:
        raise NotImplementedError(f"{x.shape[axis]} elements have no {chunks} equal parts")
    return tuple(x.split(chunks, axis))


def _split(x, size, dim=0):
    axis = _axis(x, dim)
    whole = x.shape[axis]
    sizes = [min(size, whole - at) for at in range(0, whole, size)] if isinstance(size, int) else list(size)
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return tuple(x.slice(end - own, end, axis) for own, end in zip(sizes, ends))


def _getitem(x, index):
    if isinstance(x, (tuple, list)):
        return x[index]
    index = index if isinstance(index, tuple) else (index,)
    if index[0] is not Ellipsis and index[0] != slice(None):
        raise NotImplementedError("an index of the batch; begin the index with ':'")
    rest = index[1:]
    first = 0 if index[0] is not Ellipsis else len(x.shape) - len(rest)
    dropped = []
    for axis, part in enumerate(rest, first):
        if isinstance(part, int):
            extent = x.shape[axis]
            at = part + extent if part < 0 else part
            x = x.slice(at, at + 1, axis)
            dropped.append(axis)
        elif isinstance(part, slice) and part.step in (None, 1):
            start, stop, _ = part.indices(x.shape[axis])
            if (start, stop) != (0, x.shape[axis]):
                x = x.slice(start, stop, axis)
        else:
            raise NotImplementedError(f"the index {part!r}")
    if dropped:
        x = x.reshape([extent for axis, extent in enumerate(x.shape) if axis not in dropped])
    return x


def _size(x, dim=None):
    shape = _Shape((_Size(), *x.shape))
    return shape if dim is None else shape[dim]


def _extents(sizes):
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if not sizes or not (isinstance(sizes[0], _Size) or sizes[0] == -1):
        raise NotImplementedError("the first extent must be the batch: x.size(0)")
    if not all(isinstance(extent, int) for extent in sizes[1:]):
        raise NotImplementedError("extents behind the first must be numbers")
    return list(sizes[1:])


def _reshape(x, *sizes):
    dims = _extents(sizes)
    if -1 in dims:
        whole, known = 1, 1
        for extent in x.shape:
            whole *= extent
        for extent in dims:
            known *= extent if extent != -1 else 1
        dims[dims.index(-1)] = whole // known
    return x.reshape(dims)


def _new(number):
    return lambda *sizes, **_: ab.fill(_extents(sizes), number)


def _softmax(name):
    return lambda x, dim=None, dtype=None, _stacklevel=3: getattr(_last(x, dim), name)()


def _reduce(name):
    def emit(x, dim=None, keepdim=False):
        if isinstance(dim, (tuple, list)) and len(dim) == 1:
            (dim,) = dim
        dims = list(x.shape[:-1])
        return getattr(_last(x, dim), name)().reshape(dims + [1] if keepdim else dims)

    return emit


def _unsqueeze(x, dim):
    rank = len(x.shape) + 2
    axis = (dim + rank if dim < 0 else dim) - 1
    if axis < 0:
        raise NotImplementedError("a new axis before the batch")
    return x.reshape([*x.shape[:axis], 1, *x.shape[axis:]])


def _squeeze(x, dim):
    axis = _axis(x, dim)
    dims = list(x.shape)
    return x.reshape(dims[:axis] + dims[axis + 1 :]) if dims[axis] == 1 else x


def _dropout(x, p=0.5, training=True, inplace=False):
    if training and p:
        raise NotImplementedError("dropout draws torch's noise; call model.eval(), or set its rate to 0")
    return x


def _lstm_cell(child, x, state=None):
    m = child.module
    h, c = state if state is not None else (ab.zeros(m.hidden_size), ab.zeros(m.hidden_size))
    gates = x.affine_transposed(child.param("weight_ih"), child.param("bias_ih")) + h.affine_transposed(
        child.param("weight_hh"), child.param("bias_hh")
    )
    i, f, g, o = gates.split(4)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru_cell(child, x, h=None):
    h = ab.zeros(child.module.hidden_size) if h is None else h
    of_x = x.affine_transposed(child.param("weight_ih"), child.param("bias_ih")).split(3)
    of_h = h.affine_transposed(child.param("weight_hh"), child.param("bias_hh")).split(3)
    r, z = (of_x[0] + of_h[0]).sigmoid(), (of_x[1] + of_h[1]).sigmoid()
    n = (of_x[2] + r * of_h[2]).tanh()
    return n + z * (h - n)


def _layer_norm(child, x):
    m = child.module
    if len(m.normalized_shape) != 1 or x.shape[-1:] != tuple(m.normalized_shape):
        raise NotImplementedError("only the last axis can be normalised")
    y = x.layer_norm(m.eps)
    weight, bias = child.param("weight"), child.param("bias")
    y = y if weight is None else y * weight.value()
    return y if bias is None else y + bias.value()


def _embedding(child, index):
    m = child.module
    if m.max_norm is not None:
        raise NotImplementedError("max_norm changes the table while it is read")
    if m.scale_grad_by_freq or m.sparse:
        raise NotImplementedError("gradients that are sparse or scaled by frequency")
    row = child.table()[index]
    if m.padding_idx is None:
        return row
    # The row of the padding gets no gradient.
    still = row.scale_gradient(0.0)
    if isinstance(index, int):
        return still if index == m.padding_idx else row
    return (index < m.padding_idx).select(row, (index > m.padding_idx).select(row, still))


def _softplus(x, beta=1.0, threshold=20.0):
    if isinstance(x, _Free):
        raise NotImplementedError("an operand has no batch")
    scaled = x if beta == 1 else x * beta
    soft = scaled.softplus() if beta == 1 else scaled.softplus() / beta
    # Beyond 20 both forms have the same float32.
    return soft if threshold >= 20 else (scaled > threshold).select(x, soft)


UNARY = {
    name: _unary(name)
    for name in ("tanh", "sigmoid", "relu", "exp", "log", "sqrt", "rsqrt", "abs", "sin", "cos", "erf", "square", "sign")
}
ADD, SUB = _binary(lambda a, b: a + b), _binary(lambda a, b: a - b)
MUL, DIV = _binary(lambda a, b: a * b), _binary(lambda a, b: a / b)

METHODS = {
    **UNARY,
    "silu": _unary("silu"),
    "neg": _takes_free(lambda x: _Free(-x.value()) if isinstance(x, _Free) else -x),
    "add": ADD,
    "sub": SUB,
    "mul": MUL,
    "div": DIV,
    "matmul": _matmul,
    "mm": _matmul,
    "bmm": lambda a, b: a.matmul(b),
    "t": _takes_free(lambda x: x.t() if isinstance(x, (ab.Value, _Parameter)) else _no_transpose()),
    "chunk": _chunk,
    "split": _split,
    "size": _size,
    "view": _reshape,
    "reshape": _reshape,
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "sum": _reduce("sum_rows"),
    "mean": _reduce("mean_rows"),
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "clamp": lambda x, min, max: x.clamp(min, max),
    "contiguous": lambda x: x,
    "pow": lambda x, by: x.pow(by),
}

FUNCTIONS = {
    **{getattr(torch, name): emit for name, emit in METHODS.items() if hasattr(torch, name)},
    F.relu: UNARY["relu"],
    F.tanh: UNARY["tanh"],
    F.sigmoid: UNARY["sigmoid"],
    F.silu: _unary("silu"),
    F.softplus: _softplus,
    F.gelu: lambda x, approximate="none": x.gelu() if approximate == "none" else _no_approximation(),
    F.leaky_relu: lambda x, negative_slope=0.01, inplace=False: x.leaky_relu(negative_slope),
    F.elu: lambda x, alpha=1.0, inplace=False: x.elu(alpha),
    F.softmax: _softmax("softmax"),
    F.log_softmax: _softmax("log_softmax"),
    F.dropout: _dropout,
    F.linear: _linear_of,
    torch.cat: _cat,
    torch.concat: _cat,
    torch.addmm: _addmm,
    torch.zeros: _new(0.0),
    torch.ones: _new(1.0),
    torch.zeros_like: lambda x, **_: ab.zeros(x.shape),
    torch.ones_like: lambda x, **_: ab.fill(x.shape, 1.0),
    torch.maximum: lambda a, b: a.maximum(b),
    torch.minimum: lambda a, b: a.minimum(b),
    operator.add: ADD,
    operator.sub: SUB,
    operator.mul: MUL,
    operator.truediv: DIV,
    operator.neg: METHODS["neg"],
    operator.pow: lambda x, by: x.pow(by),
    operator.matmul: _matmul,
    operator.getitem: _getitem,
    getattr: _takes_free(lambda x, name: _attribute(x, name)),
}

#: Where a function of torch takes `inplace` as a positional argument.
_INPLACE_PLACES = {F.relu: 1, F.silu: 1, F.leaky_relu: 2, F.elu: 2, F.dropout: 3}


def _no_transpose():
    raise NotImplementedError("the transpose of an expression of parameters")


def _no_approximation():
    raise NotImplementedError("the approximation of gelu; use approximate='none'")


def _attribute(x, name):
    if name == "shape":
        if isinstance(x, _Free):
            return tuple(x.value().shape)
        return _size(x)
    if name in ("T", "mT"):
        return x.t()
    raise NotImplementedError(f"the attribute {name!r} of a tensor")


MODULES = {
    torch.nn.Linear: lambda child, x: x.affine_transposed(child.param("weight"), child.param("bias")),
    torch.nn.Embedding: _embedding,
    torch.nn.LSTMCell: _lstm_cell,
    torch.nn.GRUCell: _gru_cell,
    torch.nn.LayerNorm: _layer_norm,
    torch.nn.Dropout: lambda child, x: _dropout(x, child.module.p, child.module.training),
    torch.nn.Identity: lambda child, x: x,
    torch.nn.Tanh: lambda child, x: x.tanh(),
    torch.nn.Sigmoid: lambda child, x: x.sigmoid(),
    torch.nn.ReLU: lambda child, x: x.relu(),
    torch.nn.SiLU: lambda child, x: x.silu(),
    torch.nn.GELU: lambda child, x: x.gelu() if child.module.approximate == "none" else _no_approximation(),
    torch.nn.LeakyReLU: lambda child, x: x.leaky_relu(child.module.negative_slope),
    torch.nn.ELU: lambda child, x: x.elu(child.module.alpha),
    torch.nn.Softplus: lambda child, x: _softplus(x, child.module.beta, child.module.threshold),
    torch.nn.Softmax: lambda child, x: _last(x, child.module.dim).softmax(),
    torch.nn.LogSoftmax: lambda child, x: _last(x, child.module.dim).log_softmax(),
}

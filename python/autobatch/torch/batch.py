"""`batch`: ordinary PyTorch code for one instance, recorded and executed together with all others."""

import functools
import html
import sys
import threading

import numpy as np
import torch
import torch._functorch.eager_transforms
import torch._functorch.vmap

from .. import _autobatch as native
from .guards import trace_call
from .place import line_of_user

#: torch's functions by the code of their op.
_SPACES = (torch, torch.Tensor, torch.nn.functional, torch._C._nn, torch._C._VariableFunctions, torch._C._linalg)
_OPS = {}
for _name, _code in native.op_codes():
    for _space in _SPACES:
        _function = getattr(_space, _name, None)
        if callable(_function):
            _OPS[_function] = _code
#: Attributes that are ops: torch passes their getters.
for _name in ("T", "mT"):
    _OPS[getattr(torch.Tensor, _name).__get__] = dict(native.op_codes())[_name]

#: Engines that a thread keeps, the latest first: each for the parameters of one or several modules.
MAX_ENGINES = 4


class _Own(threading.local):
    """What a thread has for itself, because an engine executes one graph at a time."""

    def __init__(self):
        self.recorders, self.engines, self.without_parameters = [], [], {}


_own = _Own()


def _keep(engine):
    _own.engines = [engine, *(one for one in _own.engines if one is not engine and one.is_alive)][:MAX_ENGINES]
    return engine


def _without_parameters(threads):
    """The engine of every block before its first parameter."""
    if threads not in _own.without_parameters:
        _own.without_parameters[threads] = native.Engine([], threads=threads)
    return _own.without_parameters[threads]


def _modules_on_stack():
    """The modules that the functions on the stack have as local variables, the outermost first."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_OWN):
            here = [value for value in frame.f_locals.values() if isinstance(value, torch.nn.Module)]
            found = [*here, *found]
        frame = frame.f_back
    return found


_OWN = __file__.rsplit("/", 1)[0]


def _engine_with(engine, param, table):
    """An engine that knows a parameter besides those of `engine`, and everything else that the module around it has."""
    if not table and not engine.params:
        for known in _own.engines:
            if known.threads == engine.threads and known.knows(param):
                return _keep(known)
    params = {id(one): (name, one, is_table) for name, one, is_table in engine.params}
    around = next((module for module in _modules_on_stack() if any(one is param for one in module.parameters())), None)
    if around is not None:
        tables = {id(child.weight) for child in around.modules() if isinstance(child, torch.nn.Embedding)}
        for name, one in around.named_parameters():
            if one.dtype == torch.float32:
                params.setdefault(id(one), (name, one, id(one) in tables))
    name = params.get(id(param), ("parameter",))[0]
    params[id(param)] = (name, param, table or params.get(id(param), (None, None, False))[2])
    names, named = set(), []
    for name, one, is_table in params.values():
        name = name if name[0].isalpha() else f"p{name}"
        unique = next(text for text in (name, *(f"{name}_{k}" for k in range(2, len(params) + 3))) if text not in names)
        names.add(unique)
        named.append((unique, one, is_table))
    return _keep(native.Engine(named, threads=engine.threads, like=engine))


def _engine_of(engine, module):
    """An engine that knows a module, or None if it has no parameter that the engine takes."""
    param = next((param for param in module.parameters() if param.dtype == torch.float32), None)
    return None if param is None else _engine_with(engine, param, False)


def _replace_engine(engine, by):
    """Keeps an engine in the place of another one, which knows less."""
    _own.engines = [one for one in _own.engines if one.session is not engine.session]
    _keep(by)


_call_of_torch = torch.nn.Module.__call__


def _call_recorded(self, *args, **kwargs):
    """`Module.__call__` while a block is open: a module that was traced records one node."""
    recorder = innermost()
    if recorder is not None:
        made = recorder.call_module(self, args, kwargs)
        if made is ...:
            recorder.enter()
            try:
                return _call_of_torch(self, *args, **kwargs)
            finally:
                recorder.leave()
        if made is not NotImplemented:
            return made
    return _call_of_torch(self, *args, **kwargs)


_apply_of_torch = torch.autograd.Function.__dict__["apply"]


def _apply_recorded(cls, *args, **kwargs):
    """`Function.apply` while a block is open. Torch's native code would compute with what stands in for a recorded tensor."""
    recorder, own = innermost(), _apply_of_torch.__get__(None, cls)
    if recorder is None or issubclass(cls, _Apply):
        return own(*args, **kwargs)

    def function(*args, **kwargs):
        return own(*args, **kwargs)

    function.__name__ = cls.__name__
    return recorder.call_unknown(function, args, kwargs)


def _on_tensors(function):
    """An entry of `torch.vmap` or `torch.func`, which must not get what stands in for a recorded tensor."""

    def checked(tensor, *args):
        if native.waits(tensor):
            raise native.RecordError(
                f"torch.vmap and torch.func at {line_of_user()} cannot transform a recorded tensor; compute it before: "
                "with batch() as block: ...; block.flush()"
            )
        return function(native.computed(tensor), *args)

    return checked


class _Patched:
    """Counts the open blocks of all threads. While there are any, what torch does not pass to a function mode is replaced."""

    lock, open = threading.Lock(), 0
    #: The owner, the name, torch's own object and what replaces it.
    places = [
        (torch.nn.Module, "__call__", _call_of_torch, _call_recorded),
        (torch.autograd.Function, "apply", _apply_of_torch, classmethod(_apply_recorded)),
        # The entries of `torch.vmap` and of `torch.func`.
        *(
            (owner, name, getattr(owner, name), _on_tensors(getattr(owner, name)))
            for owner, name in ((torch._functorch.vmap, "_add_batch_dim"), (torch._functorch.eager_transforms, "_wrap_for_grad"))
            if hasattr(owner, name)
        ),
    ]

    @classmethod
    def add(cls, blocks):
        with cls.lock:
            before, cls.open = cls.open, cls.open + blocks
            if not before or not cls.open:
                for owner, name, own, recorded in cls.places:
                    setattr(owner, name, recorded if cls.open else own)


def _once(gradients):
    """Gradients that raise an error if someone differentiates them, as `create_graph=True` allows. They depend on parameters
    and inputs in a way that torch does not know."""
    message = b"a batch() computes no second derivatives: compute this part of the model outside of the block"
    fail = torch._C._functions.DelayedError(message, len(gradients))
    return fail(*(None if gradient is None else gradient.detach().requires_grad_() for gradient in gradients))


class _Apply(torch.autograd.Function):
    """What was recorded between two flushes, as one op of torch."""

    @staticmethod
    def forward(ctx, run, *tensors):
        ctx.run = run
        ctx.shapes = [tensor.shape for tensor in tensors]
        ctx.set_materialize_grads(False)
        made = tuple(run.forward())
        ctx.mark_non_differentiable(*(tensor for tensor, grad in zip(made, run.grads) if not grad))
        return made

    @staticmethod
    def backward(ctx, *gradients):
        is_differentiable = torch.is_grad_enabled()
        with torch.no_grad():
            found = ctx.run.backward(gradients)
            shaped = [
                None if array is None else torch.from_numpy(array).reshape(shape) for array, shape in zip(found, ctx.shapes)
            ]
        return (None, *(_once(shaped) if is_differentiable else shaped))


class _Run:
    """One execution of what was recorded, and its reverse."""

    def __init__(self, engine, groups, shapes, inputs):
        self.session, self.groups, self.inputs = engine.session, groups, inputs
        self.shapes, self.grads = [shape for shape, _ in shapes], [grad for _, grad in shapes]
        self.params = engine.params
        self.paused, self.used = None, False

    def follow(self):
        """Takes over what changed in the parameters. Contents are compared, because torch counts no version for fused
        optimisers, `.data` and arrays that share memory."""
        arrays = {}
        for name, param, _ in self.params:
            array = param.detach().cpu().contiguous().numpy()
            # The engine's shapes: see `Engine`.
            arrays[name] = array.reshape({0: (1,), 3: (len(array) if array.ndim else 1, -1)}.get(array.ndim, array.shape))
        self.session.follow_weights(arrays)

    def tensors(self, arrays):
        return [
            torch.from_numpy(np.asarray(array)).reshape(len(group), *shape)
            for array, group, shape in zip(arrays, self.groups, self.shapes)
        ]

    def values(self):
        self.follow()
        return self.tensors(self.session.run_groups(self.groups))

    def forward(self):
        self.follow()
        self.paused, arrays = self.session.forward(self.groups, self.inputs)
        return self.tensors(arrays)

    def backward(self, gradients):
        if self.used:
            # The reverse overwrites the rows of the forward pass, so a further one executes it again.
            self.paused, _ = self.session.forward(self.groups, self.inputs)
        self.used = True
        arrays = [
            None if gradient is None else gradient.detach().contiguous().numpy().reshape(len(group), *self._core(shape))
            for gradient, group, shape in zip(gradients, self.groups, self.shapes)
        ]
        params, inputs = self.session.backward(self.paused, arrays)
        return [*(params[name] for name, _, _ in self.params), *inputs]

    @staticmethod
    def _core(shape):
        """The extents that a value of the engine has."""
        shape = list(shape)
        while shape and shape[0] == 1:
            shape.pop(0)
        return shape


def _execute(engine, groups, shapes, inputs, tensors):
    """Computes groups of values. Returns the tensors of each group."""
    with torch._C.DisableTorchFunction():
        run = _Run(engine, groups, shapes, inputs)
        if not any(run.grads):
            stacked = run.values()
        else:
            with torch.enable_grad():
                stacked = _Apply.apply(run, *(param for _, param, _ in run.params), *tensors)
        return [one.unbind(0) for one in stacked]


_ENVIRONMENT = {
    "tensor": torch.Tensor,
    "make": torch.tensor,
    "base": torch._C.TensorBase,
    "stand_in": torch.empty(2, 2, device="meta", requires_grad=True),
    "parameter": torch.nn.Parameter,
    "float32": torch.float32,
    "int64": torch.int64,
    "bool": torch.bool,
    "size": torch.Size,
    "is_grad_enabled": torch.is_grad_enabled,
    "disable": torch._C.DisableTorchFunction,
    "ops": _OPS,
    "execute": _execute,
    "engine_with": _engine_with,
    "place": line_of_user,
    "engine_of": _engine_of,
    "replace_engine": _replace_engine,
    "trace_call": functools.partial(trace_call, _call_of_torch),
}


def innermost():
    """The recorder of the innermost open block of this thread, or None."""
    return _own.recorders[-1] if _own.recorders else None


class batch:
    """Records the calls of torch's functions in a block, and computes what they return in a short plan of large kernels.

        with autobatch.torch.batch():
            losses = [F.cross_entropy(model(tree), label) for tree, label in minibatch]
            loss = torch.stack(losses).mean()
        loss.backward()

    The model is any `torch.nn.Module`, written for one instance. Everything that can run together runs when the block ends.
    What needs a number (`.item()`, `bool`, `print`) computes what was recorded so far. The results are tensors of torch with
    gradients to parameters and inputs. `with batch() as block` gives the block, whose `explain()` says what was batched.

    `unknown="eager"` lets torch compute what the engine has no counterpart of, one instance at a time. `explain=True` draws the
    batches for notebooks. `threads` is the number of threads that execute; 0 takes all cores.
    """

    def __init__(self, unknown="error", explain=False, threads=0):
        if unknown not in ("error", "eager"):
            raise ValueError(f'unknown is "error" or "eager", found {unknown!r}')
        self._eager, self._draws, self._threads = unknown == "eager", explain, threads
        self._recorder, self._account, self._pictures = None, None, []
        #: The end of the error of a call that cannot be recorded.
        self.remedy = 'pass unknown="eager" to batch() so that torch computes it'

    def __enter__(self):
        if self._recorder is not None:
            raise RuntimeError("this block is open; make another batch()")
        self._recorder = native.Recorder(_ENVIRONMENT, _without_parameters(self._threads), self._eager, self._draws, self.remedy)
        torch._C._push_on_torch_function_stack(self._recorder)
        _own.recorders.append(self._recorder)
        _Patched.add(1)
        return self

    def __exit__(self, kind, error, trace):
        torch._C._pop_torch_function_stack()
        _own.recorders.pop()
        _Patched.add(-1)
        recorder, self._recorder = self._recorder, None
        recorder.close(kind is not None)
        self.ops, self.flushes = recorder.counts()
        self._account, self._pictures = recorder.account(), recorder.pictures()

    def flush(self):
        """Computes what was recorded so far."""
        self._recorder.flush()

    def explain(self):
        """What the block did so far, as text: the batches of each flush, the modules that are one node or why they are not, and
        the calls that torch computed."""
        account = self._account if self._recorder is None else self._recorder.account()
        if account is None:
            return "the block was not opened"
        flushes, modules, eager = account
        # A loop that reads numbers flushes very often. The first ones show why.
        lines = [
            f"flush {number}: {nodes:,} nodes, {batches:,} batches, of which {bound:,} cannot be saved"
            for number, (nodes, batches, bound) in enumerate(flushes[:10], 1)
        ]
        if len(flushes) > 10:
            lines.append(f"{len(flushes) - 10:,} more flushes; every read of a number is one: see autobatch.torch.each")
        for name, cells, why in modules:
            as_node = f"one node ({cells} {'cell' if cells == 1 else 'cells'})"
            lines.append(f"{name}: {as_node if why is None else f'op by op, because {why}'}")
        for name, place, why, calls in eager:
            lines.append(f"torch computed {name} at {place}, {calls:,} {'time' if calls == 1 else 'times'}: {why}")
        return "\n".join(lines) or "nothing was computed"

    def _repr_html_(self):
        pictures = self._pictures if self._recorder is None else self._recorder.pictures()
        drawn = [picture or "<p>A graph with more than 3,000 nodes is not drawn.</p>" for picture in pictures]
        return "".join([f"<pre>{html.escape(self.explain())}</pre>", *drawn])

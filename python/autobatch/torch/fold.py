"""`Fold`: records calls of the methods of a module, and executes all of them together."""

import numpy as np
import torch

import autobatch as ab

from . import levels
from .capture import CaptureError, Lowering, trace
from .watch import Watch


class Node:
    """A call of a method. `split` names its results, `no_batch` makes it one value that a whole batch shares."""

    __slots__ = ("args", "batched", "number", "op", "parts", "result")

    def __init__(self, op, args, number, result=None):
        # No node refers to itself, so folds are freed without the collector of cycles.
        self.op, self.args, self.number, self.result = op, args, number, result
        self.batched, self.parts = True, ()

    def split(self, count):
        """The results of a method that returns a tuple of `count` tensors."""
        if len(self.parts) != count:
            own = self.op, self.args, self.number
            self.parts = tuple([Node(*own, result) for result in range(count)])
        return self.parts

    def no_batch(self):
        """Marks a value that every call of a batch reads. All calls must read the same one."""
        self.batched = False
        return self

    #: The spelling of TorchFold.
    nobatch = no_batch

    def __repr__(self):
        return f"<{self.op}[{self.number}]>" if self.result is None else f"<{self.op}[{self.number}].{self.result}>"


class Fold:
    """Records calls for any number of instances. `fallback=True` runs a fold by torch, level by level, if a method of it
    cannot be captured.

    A module keeps what was captured of it. Every `apply` compares the values of the parameters, and everything else that
    the methods can read: submodules and their types, attributes, training flags, hooks, globals. It captures the methods
    again if something differs, and raises a `CaptureError` where it could not notice a change.
    """

    def __init__(self, fallback=False, threads=0):
        self.fallback, self.threads = fallback, threads
        self.nodes, self._known = [], {}

    def add(self, op, *args):
        """Records a call of a method. Arguments are nodes, ints and tensors whose first extent is 1. Equal calls are one."""
        # Nodes and tensors are equal to themselves only.
        key = (op, args)
        try:
            known = self._known.get(key)
        except TypeError:
            known = None
        if known is not None:
            return known
        for place, arg in enumerate(args):
            kind = type(arg)
            if kind is not Node and kind is not int:
                _check(op, place, arg)
        node = Node(op, args, len(self.nodes))
        self.nodes.append(node)
        self._known[key] = node
        return node

    def apply(self, module, groups):
        """Computes groups of nodes. Each group becomes a tensor with one row a node."""
        groups = [list(group) for group in groups]
        for group in groups:
            for node in group:
                if not isinstance(node, Node):
                    raise TypeError(f"apply computes nodes, found {node!r}; pass what add or split returned")
                if node.number >= len(self.nodes) or self.nodes[node.number].args is not node.args:
                    raise ValueError(f"{node!r} belongs to another fold; add the call to this one")
        try:
            return _compiled(module, self.threads).apply(self, module, groups)
        except CaptureError:
            if not self.fallback:
                raise
            return levels.apply(self, module, groups)


def _check(op, place, arg):
    """Refuses what is no tensor of one instance."""
    if not isinstance(arg, torch.Tensor):
        raise TypeError(f"argument {place} of {op} is {arg!r}; pass a node, an int or a tensor")
    if arg.dim() == 0 or arg.shape[0] != 1:
        raise ValueError(
            f"argument {place} of {op} has the shape {tuple(arg.shape)}; its first extent must be 1, for one instance"
        )


#: Captures that a module keeps: one for training and one for evaluation.
MAX_CAPTURES = 2


def _compiled(module, threads):
    """What was captured of a module in its present form."""
    known = module.__dict__.get("_autobatch")
    if known is None:
        known = module.__dict__["_autobatch"] = Captures()
    found = next((captured for captured in known.all if captured.fits(module, threads)), None)
    if found is None:
        found = Captured(module, threads)
    known.all = [found, *(captured for captured in known.all if captured is not found)][:MAX_CAPTURES]
    return found


class Captures:
    """The captures of a module, the latest first."""

    def __init__(self):
        self.all = []

    def __deepcopy__(self, memo):
        """A copy of the module captures its methods again."""
        return Captures()

    def __reduce__(self):
        """A pickled module captures its methods again."""
        return (Captures, ())


class Captured:
    """The cells of a module and the session that executes them."""

    def __init__(self, module, threads):
        self.threads, self.watch = threads, Watch(module)
        self.names = [name for name, _ in module.named_parameters()]
        self.graphs, self.signatures, self.cells, self.refused = {}, {}, {}, {}
        self.open, self.session = None, None

    def fits(self, module, threads):
        return self.threads == threads and self.watch.is_current(module)

    # Cells.

    def _restart(self, module):
        """Opens a module of the engine and traces all known signatures again, because a session closes it."""
        self.session, self.cells = None, {}
        self.open = ab.Module(type(module).__name__)
        embeddings = [child for child in module.modules() if isinstance(child, torch.nn.Embedding)]
        tables = {id(child.weight) for child in embeddings}
        self.params, self.tables, known = {}, {}, {}
        # A parameter that has several names is one.
        for name, param in module.named_parameters(remove_duplicate=False):
            if id(param) not in known:
                if param.dtype != torch.float32:
                    raise CaptureError(f"parameter {name} is {param.dtype}; the engine computes in float32")
                table = self.open.table(name, *param.shape) if id(param) in tables else None
                made = self.open.param(name, tuple(param.shape) or (1,)) if table is None else table.as_param()
                known[id(param)] = table, (made, tuple(param.shape))
            self.tables[name], self.params[name] = known[id(param)]
        for key in list(self.signatures):
            self._trace(module, key)

    def _trace(self, module, key):
        op, *types = key
        graph = self.graphs.get(op)
        if graph is None:
            self.watch.add(op)
            graph = self.graphs[op] = trace(module, op)
        lowering = Lowering(module, op, graph, self.params, self.tables)
        made = {}

        def body(*args):
            results = lowering(*args)
            made["single"] = not isinstance(results, (tuple, list))
            results = (results,) if made["single"] else tuple(results)
            made["types"] = [result.type for result in results]
            return results

        ports = [ab.index if ty == "int" else ab.f32[ty] for ty in types]
        cell = self.open.cell(*ports, name=f"{op}{len(self.cells)}")(body)
        self.cells[key] = cell
        self.signatures[key] = (made["single"], [tuple(ty.shape) for ty in made["types"]])

    def _signature(self, module, node, results):
        """The key of a call: the method and the shapes of its arguments."""
        key = [node.op]
        for arg in node.args:
            if isinstance(arg, Node):
                single, shapes = results[arg.number]
                if arg.result is None and not single:
                    raise ValueError(f"{arg!r} is {len(shapes)} tensors; name one with split({len(shapes)})")
                key.append(shapes[arg.result or 0])
            elif isinstance(arg, int):
                key.append("int")
            elif arg.dtype != torch.float32:
                raise CaptureError(
                    f"an argument of {node.op} is {arg.dtype}, and the engine computes in float32; pass an int for an index, "
                    "or a float32 tensor"
                )
            else:
                key.append(tuple(arg.shape[1:]))
        key = tuple(key)
        if key in self.refused:
            raise self.refused[key]
        if key not in self.cells:
            try:
                if self.open is None or self.session is not None:
                    self._restart(module)
                self._trace(module, key)
            except CaptureError as error:
                # The open module may hold half a cell.
                self.open, self.cells, self.refused[key] = None, {}, error
                raise
        return key

    # Parameters.

    def _take_over(self, module):
        """Takes over what changed in the parameters. Contents are compared, because torch counts no version for fused
        optimisers, `.data` and arrays that share memory."""
        if self.session is None:
            self.session = ab.Session(self.open, threads=self.threads)
        arrays = {}
        for name, param in module.named_parameters():
            array = param.detach().cpu().contiguous().numpy()
            arrays[name] = array if array.ndim else array.reshape(1)
        self.session.follow_weights(arrays)

    # Execution.

    def apply(self, fold, module, groups):
        used = _used(fold, groups)
        results, keys = {}, {}
        for node in used:
            keys[node.number] = key = self._signature(module, node, results)
            results[node.number] = self.signatures[key]
        self._take_over(module)
        inputs, tensors, values, known = [], [], {}, {}
        with self.session.graph():
            for node in used:
                args = []
                for arg in node.args:
                    if isinstance(arg, Node):
                        args.append(values[arg.number][arg.result or 0])
                    elif isinstance(arg, int):
                        args.append(arg)
                    elif id(arg) in known:
                        args.append(known[id(arg)])
                    else:
                        array = arg.detach().cpu().numpy()
                        value = ab.input(np.ascontiguousarray(array[0]))
                        known[id(arg)] = value
                        args.append(value)
                        if arg.requires_grad:
                            inputs.append(value)
                            tensors.append(arg)
                made = self.cells[keys[node.number]](*args)
                values[node.number] = made if isinstance(made, (tuple, list)) else (made,)
        outputs = [[values[node.number][node.result or 0] for node in group] for group in groups]
        params = list(module.parameters())
        if not torch.is_grad_enabled() or not any(tensor.requires_grad for tensor in [*params, *tensors]):
            return self._values(outputs)
        return list(_Apply.apply(self, outputs, inputs, len(params), *params, *tensors))

    def _values(self, outputs):
        """The groups without gradients."""
        flat = [value for group in outputs for value in group]
        arrays = iter(self.session.run(*flat))
        return [torch.from_numpy(np.stack([next(arrays) for _ in group])) for group in outputs]


def _used(fold, groups):
    """The calls that the groups need, in the order in which they were added."""
    needed, stack = set(), [node.number for group in groups for node in group]
    while stack:
        number = stack.pop()
        if number not in needed:
            needed.add(number)
            stack.extend(arg.number for arg in fold.nodes[number].args if isinstance(arg, Node))
    return [fold.nodes[number] for number in sorted(needed)]


class _Apply(torch.autograd.Function):
    """A fold as one op of torch. Its backward executes the reverse of the paused plan."""

    @staticmethod
    def forward(ctx, captured, outputs, inputs, count, *tensors):
        ctx.paused, arrays = captured.session.forward(outputs, inputs)
        ctx.session, ctx.names, ctx.count = captured.session, captured.names, count
        ctx.shapes = [tensor.shape for tensor in tensors]
        ctx.set_materialize_grads(False)
        return tuple(torch.from_numpy(array) for array in arrays)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        arrays = [None if gradient is None else gradient.contiguous().numpy() for gradient in gradients]
        params, inputs = ctx.session.backward(ctx.paused, arrays)
        of_params = [params[name] for name in ctx.names]
        # A parameter that no output depends on has no gradient, so that optimisers skip it.
        shaped = [
            None if array is None else torch.from_numpy(array).reshape(shape)
            for array, shape in zip([*of_params, *inputs], ctx.shapes)
        ]
        return (None, None, None, None, *shaped)

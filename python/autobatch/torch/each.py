"""`each`: instances that read numbers of their own, side by side."""

import torch
from torch.utils import _pytree as pytree

from .. import _autobatch as native
from .batch import batch, innermost

try:
    import greenlet
except ImportError:
    greenlet = None


def each(function, items, *, unknown="error", threads=0):
    """Calls a function on every item, each in a context of its own, and returns the list of results.

        with autobatch.torch.batch():
            sentences = autobatch.torch.each(decode, minibatch)

    In a plain loop, the first number that an instance reads (`.item()`, `bool`, `int`, `.tolist()`) computes that instance
    alone. Here the instance waits until all others wait too or are done. Then one computation serves them all, so greedy
    decoders, parsers and loops that end by a computed value run batched. An exception of an instance ends all.

    With `unknown="eager"`, torch computes the calls that cannot be recorded of all waiting instances as one, on stacked tensors.

    Outside of a `batch()`, a block is opened for the call, and `unknown` and `threads` are its options. Needs the package
    greenlet.
    """
    if greenlet is None:
        raise ImportError("each runs its instances in greenlets; install them: pip install greenlet")
    block = innermost()
    if block is None:
        with batch(unknown=unknown, threads=threads):
            return each(function, items)
    return _Hub(function, list(items), block).run()


class _Hub:
    """The context that starts the instances, and computes when all of them wait."""

    def __init__(self, function, items, block):
        self.function, self.block = function, block
        self.results = [None] * len(items)
        self.own = greenlet.getcurrent()
        self.instances = [self._instance(number, item) for number, item in enumerate(items)]
        self.known = {id(instance) for instance in self.instances}
        self.depth = torch._C._len_torch_function_stack()
        self.outer = None
        #: The calls for which instances wait, and what they returned, by instance.
        self.calls, self.made = {}, {}

    def _instance(self, number, item):
        def run():
            self.results[number] = self.function(item)

        return greenlet.greenlet(run)

    def run(self):
        grads = torch.is_grad_enabled()
        waiting = self.instances
        self.outer = self.block.set_wait(self._wait)
        try:
            while waiting:
                for instance in waiting:
                    torch.set_grad_enabled(grads)
                    instance.switch()
                waiting = [instance for instance in waiting if not instance.dead]
                torch.set_grad_enabled(grads)
                if waiting:
                    self._compute()
        finally:
            self.block.set_wait(self.outer)
            torch.set_grad_enabled(grads)
            for instance in self.instances:
                if instance and not instance.dead:
                    instance.throw()
        return self.results

    def _compute(self):
        """Computes, or waits with the instances of an `each` around this one."""
        if self.outer is not None:
            self.block.set_wait(self.outer)
            self.outer()
            self.block.set_wait(self._wait)
        self.block.flush()
        if len(self.calls) > 1:
            with torch._C.DisableTorchFunction():
                self.made = _run_stacked(self.calls)
        self.calls = {}

    def _wait(self, *call):
        """Called by an instance that reads a number, or that calls a function of torch that cannot be recorded. Returns what the
        call returns, or `NotImplemented` if the instance must call it itself."""
        own = id(greenlet.getcurrent())
        # Inside of a call that torch passes to the block, its function mode is off the stack. The others need it there.
        missing = self.depth - torch._C._len_torch_function_stack()
        if own not in self.known or missing not in (0, 1):
            return NotImplemented
        grads = torch.is_grad_enabled()
        if call:
            self.calls[own] = (*call, grads)
        if missing:
            torch._C._push_on_torch_function_stack(self.block)
        self.own.switch()
        if missing:
            torch._C._pop_torch_function_stack()
        torch.set_grad_enabled(grads)
        return self.made.pop(own, NotImplemented)


def _run_stacked(calls):
    """Runs calls alike as one, by `torch.vmap`. Returns what each returns, by the keys of the calls; a call that cannot be run
    so, or that changes its arguments, is missing."""
    alike = {}
    for own, (function, args, kwargs, grads) in calls.items():
        leaves, spec = pytree.tree_flatten((native.computed(args), {k: native.computed(v) for k, v in (kwargs or {}).items()}))
        # Parameters are the same for all instances.
        stacks = [isinstance(leaf, torch.Tensor) and not isinstance(leaf, torch.nn.Parameter) for leaf in leaves]
        traits = [(tuple(x.shape), x.dtype, x.device) if stack else (type(x), x) for x, stack in zip(leaves, stacks)]
        key = function, str(spec), grads, tuple(traits)
        name = getattr(function, "__name__", "")
        # A flag may be `inplace`.
        changes = name.endswith("_") and not name.endswith("__") or "out" in (kwargs or {}) or any(leaf is True for leaf in leaves)
        if changes or not any(stacks):
            continue
        try:
            alike.setdefault(key, []).append((own, leaves, spec, stacks))
        except TypeError:
            # An argument is no number or word.
            continue
    made = {}
    for (function, _, grads, _), group in alike.items():
        _, first, spec, stacks = group[0]
        columns = zip(*(leaves for _, leaves, _, _ in group))
        tensors = [torch.stack(column) for column, stack in zip(columns, stacks) if stack]

        def call(*tensors):
            rest = iter(tensors)
            args, kwargs = pytree.tree_unflatten([next(rest) if stack else x for x, stack in zip(first, stacks)], spec)
            return function(*args, **kwargs)

        try:
            with torch.set_grad_enabled(grads):
                found, of_result = pytree.tree_flatten(torch.vmap(call)(*tensors))
                parts = zip(*(one.unbind(0) for one in found))
        except Exception:
            # Each instance calls the function itself, and gets the error if there is one.
            continue
        made |= {own: pytree.tree_unflatten(list(part), of_result) for (own, *_), part in zip(group, parts)}
    return made

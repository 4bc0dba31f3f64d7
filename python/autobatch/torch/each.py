"""`each`: instances that read numbers of their own, side by side."""

import torch

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
        # Inside of a call that torch passes to the block, its function mode is off the stack.
        self.depth = torch._C._len_torch_function_stack()
        self.outer = None

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

    def _wait(self):
        """Called by an instance that reads a number."""
        instance = greenlet.getcurrent()
        if id(instance) in self.known and torch._C._len_torch_function_stack() == self.depth:
            grads = torch.is_grad_enabled()
            self.own.switch()
            torch.set_grad_enabled(grads)

"""`Fold`: records calls of the methods of a module by name, and executes all of them together."""

import sys
from collections import defaultdict

import torch

from .. import _autobatch as native
from .batch import batch, innermost


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
    """Records calls for any number of instances.

    `apply` runs each call as a method of the module on tensors of one instance, whose first extent is 1, within a
    `batch()`. A method that came often is one node of the plan. `fallback=True` lets torch compute the methods that cannot be
    recorded, on stacked tensors: all calls that are ready at the same time are one. `threads` is that of `batch`.
    """

    def __init__(self, fallback=False, threads=0):
        self.fallback, self.threads = fallback, threads
        self.nodes, self._known = [], {}

    def add(self, op, *args):
        """Records a call of a method. Arguments are nodes, ints and tensors whose first extent is 1. Equal calls are one."""
        op = sys.intern(op)
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
        made = self._results(module, _used(self, groups), [node for group in groups for node in group])
        return [torch.cat([made.of(node) for node in group]) for group in groups]

    def _results(self, module, waiting, roots):
        """What the calls return that the roots name, by their numbers."""
        for op in {node.op: None for node in waiting}:
            if not callable(getattr(module, op, None)):
                raise AttributeError(f"{type(module).__name__} has no method {op!r}; fold.add names a method of the module")
        made, by_torch = _Made(), set()
        while waiting:
            late, ready = [], defaultdict(list)
            block = batch(threads=self.threads)
            block.remedy = "pass fallback=True to Fold so that torch computes the method"
            with block:
                calls = _Calls(innermost(), module, made)
                for node in waiting:
                    if late and any(type(arg) is Node and not made.has(arg.number) for arg in node.args):
                        late.append(node)
                        continue
                    if node.op not in by_torch:
                        try:
                            calls.record(node)
                            continue
                        except native.RecordError:
                            if not self.fallback:
                                raise
                            by_torch.add(node.op)
                    late.append(node)
                    ready[node.op].append(node)
                # A block computes what is referred to when it ends.
                made.keep([*roots, *(arg for node in late for arg in node.args if type(arg) is Node)])
            for op, nodes in ready.items():
                _run_stacked(getattr(module, op), nodes, made)
            waiting = [node for node in late if not made.has(node.number)]
        return made


class _Made:
    """What calls returned, by their numbers: one tensor, or several."""

    def __init__(self):
        self.one, self.several = {}, {}

    def has(self, number):
        return number in self.one or number in self.several

    def add(self, number, found):
        if isinstance(found, (tuple, list)):
            self.several[number] = found
        else:
            self.one[number] = found

    def of(self, node):
        """The tensor that a node stands for."""
        try:
            return self.one[node.number] if node.result is None else self.several[node.number][node.result]
        except (KeyError, IndexError):
            pass
        if node.result is not None:
            raise ValueError(f"{node!r} names a result that {node.op} does not return")
        count = len(self.several[node.number])
        raise ValueError(f"{node!r} is {count} tensors; name one with split({count})")

    def keep(self, nodes):
        """Forgets the tensors that no node of these stands for."""
        places = defaultdict(set)
        for node in nodes:
            places[node.number].add(node.result)
        self.one = {number: self.one[number] for number in places.keys() & self.one.keys()}
        self.several = {
            number: [one if place in places[number] else None for place, one in enumerate(self.several[number])]
            for number in places.keys() & self.several.keys()
        }


class _Calls:
    """Records calls of methods in a block."""

    def __init__(self, recorder, module, made):
        self.recorder, self.module, self.made = recorder, module, made
        self.run = recorder.next_run()

    def record(self, node):
        one, several = self.made.one, self.made.several
        try:
            args = tuple([
                arg if type(arg) is not Node else one[arg.number] if arg.result is None else several[arg.number][arg.result]
                for arg in node.args
            ])
        except (KeyError, IndexError):
            # Says what is wrong.
            args = tuple([self.made.of(arg) if type(arg) is Node else arg for arg in node.args])
        found = self.recorder.call_method(self.module, node.op, args, self.run)
        if found is NotImplemented or found is ...:
            args = [torch.tensor([arg]) if type(arg) is int else arg for arg in args]
            found = getattr(self.module, node.op)(*args)
            self.run = self.recorder.next_run()
        if type(found) is tuple:
            several[node.number] = found
        else:
            self.made.add(node.number, found)


def _check(op, place, arg):
    """Refuses what is no tensor of one instance."""
    if not isinstance(arg, torch.Tensor):
        raise TypeError(f"argument {place} of {op} is {arg!r}; pass a node, an int or a tensor")
    if arg.dim() == 0 or arg.shape[0] != 1:
        raise ValueError(
            f"argument {place} of {op} has the shape {tuple(arg.shape)}; its first extent must be 1, for one instance"
        )


def _used(fold, groups):
    """The calls that the groups need, in the order in which they were added."""
    needed, stack = set(), [node.number for group in groups for node in group]
    while stack:
        number = stack.pop()
        if number not in needed:
            needed.add(number)
            stack.extend(arg.number for arg in fold.nodes[number].args if isinstance(arg, Node))
    return [fold.nodes[number] for number in sorted(needed)]


def _run_stacked(method, nodes, made):
    """Runs calls by torch, those with arguments of the same shapes as one call on stacked tensors."""
    alike = defaultdict(list)
    for node in nodes:
        args = [made.of(arg) if type(arg) is Node else arg for arg in node.args]
        alike[tuple(None if type(arg) is int else (tuple(arg.shape), arg.dtype) for arg in args)].append((node, args))
    for calls in alike.values():
        columns = zip(*(args for _, args in calls))
        stacked = [_stacked([node.args[place] for node, _ in calls], column) for place, column in enumerate(columns)]
        found = method(*stacked)
        for row, (node, _) in enumerate(calls):
            part = slice(row, row + 1)
            made.add(node.number, [x[part] for x in found] if isinstance(found, (tuple, list)) else found[part])


def _stacked(given, column):
    """An argument of several calls as one tensor."""
    if type(column[0]) is int:
        return torch.tensor(column)
    if type(given[0]) is Node and not given[0].batched:
        if any(arg is not given[0] for arg in given):
            raise ValueError(f"a batch reads {given[0]!r} and others without a batch; it can share one only")
        return column[0]
    return torch.cat(column)

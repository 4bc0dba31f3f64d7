"""Notices that a module would be captured differently now.

A capture holds what the methods computed with Python values: branches on flags, numbers, types of children. `Watch` lists
everything that the captured methods can read besides tensors: it follows their code objects through methods, functions,
globals and closures, and takes a snapshot of each value. A later snapshot that differs means that the methods must be
captured again. What a snapshot cannot cover, such as a random number, is an error.
"""

import builtins
import dis
import enum
import os
import types

import torch

from .capture import CaptureError

#: Elements of all containers and constant tensors in a snapshot together.
MAX_ELEMENTS = 100_000
#: Modules whose functions return something else at every call. A capture would keep the first result.
CHANGING = ("random", "_random", "time", "datetime", "secrets", "uuid", "numpy.random")
#: The same for parts of modules whose other parts are steady.
CHANGING_PARTS = (("numpy", "random"), ("os", "urandom"))
#: Functions that read attributes whose names no code object holds.
DYNAMIC = {"getattr", "hasattr", "vars", "__dict__", "eval", "exec"}
#: Instructions that change attributes and variables of others.
STORES = {"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"}
MISSING = object()
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, torch.Size, enum.Enum)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _is_of_torch(kind):
    return (getattr(kind, "__module__", None) or "").split(".")[0] == "torch"


def _is_of_library(function):
    """Whether a function belongs to a library whose code does not change while a program runs."""
    name = (getattr(function, "__module__", None) or "").split(".")[0]
    return name in ("torch", "numpy", "math", "operator", "functools", "itertools", "typing", "collections", "autobatch")


def _is_changing(name):
    """Whether a module is one of `CHANGING`, or a part of one."""
    return name is not None and any(name == one or name.startswith(f"{one}.") for one in CHANGING)


def _changes(function):
    """Whether a function returns something else at every call: `random` after `from random import random`."""
    owner = getattr(function, "__self__", None)
    return function is os.urandom or _is_changing(getattr(function, "__module__", None)) or _is_changing(getattr(owner, "__module__", None))


def structure(module):
    """The parts of a module that every capture depends on. Modules and parameters are compared by identity."""
    parts = []
    for name, child in module.named_modules(remove_duplicate=False):
        hooked = child is not module and any(getattr(child, hooks, None) for hooks in _HOOKS)
        if hooked:
            raise CaptureError(
                f"{type(child).__name__} ({name}) has hooks, which a fold would not call; remove them, or pass fallback=True"
            )
        parts.append((name, child, type(child), child.training))
    for name, param in module.named_parameters(remove_duplicate=False):
        parts.append((name, param, tuple(param.shape), param.dtype))
    return parts


def same_structure(one, other):
    """Whether two structures are equal. Objects are equal to themselves only."""
    return len(one) == len(other) and all(
        a[0] == b[0] and a[1] is b[1] and a[2:] == b[2:] for a, b in zip(one, other)
    )


class Watch:
    """What the methods of a module can read, with its present values."""

    def __init__(self, module):
        self.module = module
        self.structure = structure(module)
        #: By (holder, name), with a label for errors: attributes of modules, globals and cells of closures that code names.
        self.places = {}
        self._seen = set()
        self._names, self._reads_any = set(), False
        #: Functions of Python that code names, and the instructions by which it changes what others read.
        self.builtins, self.stores = set(), set()
        self.values = []

    def add(self, method):
        """Follows a method before it is captured."""
        self._follow(getattr(type(self.module), method, None) or getattr(self.module, method, None))
        for _, child in self.module.named_modules():
            if not _is_of_torch(type(child)):
                self._follow(getattr(type(child), "forward", None))
            self._place(vars(child), "forward", child)
        self._list_attributes()
        self.values = self._snapshot()

    def is_current(self, module):
        """Whether everything is as it was."""
        return (
            module is self.module
            and same_structure(self.structure, structure(module))
            and self.values == self._snapshot()
        )

    def _follow(self, function):
        while isinstance(function, (staticmethod, classmethod, types.MethodType)):
            function = function.__func__
        if isinstance(function, property):
            for accessor in (function.fget, function.fset):
                self._follow(accessor)
            return
        function = getattr(function, "__wrapped__", function) if _is_of_library(function) else function
        if not isinstance(function, types.FunctionType) or id(function) in self._seen or _is_of_library(function):
            return
        self._seen.add(id(function))
        # The code may be replaced, and defaults are values too.
        self._place_object(function)
        for cell_name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self._place(cell, "cell_contents", cell_name)
            try:
                self._follow_value(cell.cell_contents)
            except ValueError:
                pass
        self._follow_code(function.__code__, function.__globals__)

    def _follow_code(self, code, scope):
        self.stores |= {f"{i.argval} = .." for i in dis.get_instructions(code) if i.opname in STORES}
        # Code objects list names of globals and of attributes together; the instructions tell them apart.
        loads = {(i.argval, i.opname in ("LOAD_GLOBAL", "LOAD_NAME")) for i in dis.get_instructions(code)}
        for name, is_global in sorted(load for load in loads if load[0] in code.co_names):
            if name in DYNAMIC:
                self._reads_any = True
            if is_global:
                if name in scope or not hasattr(builtins, name):
                    self._place(scope, name, None)
                else:
                    self.builtins.add(name)
                self._follow_value(scope.get(name))
                continue
            self._names.add(name)
            for _, child in self.module.named_modules():
                if not _is_of_torch(type(child)):
                    found = getattr(type(child), name, None)
                    if found is not None:
                        self._place(_ClassView(type(child)), name, None)
                        self._follow(vars(type(child)).get(name, found))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._follow_code(constant, scope)

    def _follow_value(self, value):
        if isinstance(value, types.FunctionType):
            self._follow(value)
        elif isinstance(value, type) and not _is_of_torch(value) and not issubclass(value, torch.nn.Module):
            for member in vars(value).values():
                self._follow(member)

    def _list_attributes(self):
        """Attributes of modules that code can name. Of torch's own modules all count, because captures read them."""
        for _, child in self.module.named_modules():
            attributes = vars(child)
            if _is_of_torch(type(child)):
                names = [name for name in attributes if name[0] != "_" and name != "training"]
            elif self._reads_any:
                names = [name for name in attributes if name[0] != "_"]
            else:
                names = self._names
            for name in names:
                if name not in ("training", "forward"):
                    self._place(attributes, name, child)
            for name in self._names & set(child._buffers):
                self._place(child._buffers, name, child)

    def _place(self, holder, name, owner):
        """Adds a place. Errors show its owner, a module, or the name of a closed-over variable."""
        label = owner if isinstance(owner, str) else name if owner is None else f"{type(owner).__name__}.{name}"
        self.places.setdefault((id(holder), name), (holder, name, label))

    def _place_object(self, function):
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self._place(function, name, None)

    def _snapshot(self):
        taken = _Snapshot(self._names)
        return [taken.of(_read(holder, name), label) for holder, name, label in self.places.values()]


class _ClassView:
    """Attributes of a class, as a mapping."""

    _known = {}

    def __new__(cls, kind):
        view = cls._known.get(kind)
        if view is None:
            view = cls._known[kind] = super().__new__(cls)
            view.kind = kind
        return view

    def get(self, name, default):
        return getattr(self.kind, name, default)


def _read(holder, name):
    if isinstance(holder, (dict, _ClassView)):
        return holder.get(name, MISSING)
    try:
        return getattr(holder, name)
    except (AttributeError, ValueError):
        return MISSING


class _Same:
    """An object that equals itself only. Holding it keeps its identity from being used again."""

    __slots__ = ("thing",)

    def __init__(self, thing):
        self.thing = thing

    def __eq__(self, other):
        return isinstance(other, _Same) and self.thing is other.thing

    __hash__ = None


def _kept(place, module):
    return CaptureError(
        f"the captured methods can read {place!r} (module {module}), which would be evaluated once and kept; "
        "compute it outside and pass it as an argument, or pass fallback=True"
    )


class _Snapshot:
    """Takes snapshots of values. They are equal if a capture would read the same."""

    def __init__(self, names):
        self.names, self.elements, self.open = names, 0, []

    def of(self, value, place):
        if isinstance(value, _PLAIN):
            # -0.0 == 0.0 and 1 == True, but captures differ; NaN differs from itself, but captures do not.
            return type(value), repr(value) if isinstance(value, (float, complex)) else value
        if isinstance(value, types.ModuleType):
            parts = {part for owner, part in CHANGING_PARTS if owner == value.__name__}
            if _is_changing(value.__name__) or parts & self.names:
                raise _kept(place, value.__name__)
            return _Same(value)
        if callable(value) and _changes(value):
            raise _kept(place, value.__module__ or value.__self__.__module__)
        if value is MISSING or callable(value) and not hasattr(value, "__dict__"):
            return _Same(value)
        if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
            self._count(value.numel(), place)
            return "tensor", tuple(value.shape), value.dtype, value.detach().cpu().reshape(-1).tolist()
        if isinstance(value, (torch.nn.Module, torch.nn.Parameter, type, types.CodeType, types.FunctionType)):
            return _Same(value)
        if any(value is one for one in self.open):
            return _Same(value)
        self.open.append(value)
        try:
            return self._of_container(value, place)
        finally:
            self.open.pop()

    def _of_container(self, value, place):
        if isinstance(value, (tuple, list, set, frozenset)):
            self._count(len(value), place)
            items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
            return type(value), [self.of(item, place) for item in items]
        if isinstance(value, dict):
            self._count(len(value), place)
            return type(value), [(self.of(key, place), self.of(item, place)) for key, item in value.items()]
        if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            self._count(value.size, place)
            return "numpy", value.dtype.str, value.shape, value.tobytes()
        if isinstance(value, (types.MethodType, types.BuiltinFunctionType)):
            return type(value), _Same(value.__func__ if isinstance(value, types.MethodType) else value)
        if hasattr(value, "__dict__") and not _is_changing(type(value).__module__):
            attributes = sorted(vars(value).items())
            self._count(len(attributes), place)
            return type(value), _Same(value), [(name, self.of(item, f"{place}.{name}")) for name, item in attributes]
        raise CaptureError(
            f"{place} is {type(value).__module__}.{type(value).__name__}, whose changes a fold cannot notice; pass numbers "
            "or tensors as arguments, or pass fallback=True"
        )

    def _count(self, elements, place):
        self.elements += elements
        if self.elements > MAX_ELEMENTS:
            raise CaptureError(
                f"{place} has too many elements to be compared before every fold; keep it outside of the captured "
                "methods, or pass fallback=True"
            )

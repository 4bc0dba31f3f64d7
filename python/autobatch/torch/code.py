"""What the code of a method names: attributes, globals and closed-over variables, of it and of all code that it can call."""

import builtins
import dis
import os
import sys
import types

import torch

#: Modules whose functions return something else at every call.
CHANGING = ("random", "_random", "time", "datetime", "secrets", "uuid", "numpy.random")
#: The same for parts of modules whose other parts are steady.
CHANGING_PARTS = {"numpy": {"random"}, "os": {"urandom", "getpid", "times"}}
#: Functions that read attributes whose names no code object holds.
DYNAMIC = {"getattr", "hasattr", "vars", "__dict__", "eval", "exec"}
#: Instructions that change attributes and variables of others.
STORES = {"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"}
#: Methods that do not run when a method of an object does.
CONSTRUCTORS = {"__init__", "__new__", "__post_init__", "__init_subclass__", "__setstate__", "__reduce__", "__repr__"}
#: The value of a place that has none.
MISSING = object()


def is_of_torch(kind):
    return (getattr(kind, "__module__", None) or "").split(".")[0] == "torch"


def is_of_library(function):
    """Whether a function belongs to a library whose code does not change while a program runs."""
    name = (getattr(function, "__module__", None) or "").split(".")[0]
    return name in ("torch", "numpy", "math", "operator", "functools", "itertools", "typing", "collections", "autobatch")


def is_changing(name):
    """Whether a module is one of `CHANGING`, or a part of one."""
    return name is not None and any(name == one or name.startswith(f"{one}.") for one in CHANGING)


def changes(function):
    """Whether a function returns something else at every call: `random` after `from random import random`."""
    owner = getattr(function, "__self__", None)
    return function is os.urandom or is_changing(getattr(function, "__module__", None)) or is_changing(getattr(owner, "__module__", None))


class Code:
    """Everything that a method of a module, and the code that it can call, names."""

    def __init__(self, module, method):
        self.module = module
        #: By (holder, name), with a label for errors: attributes of modules, globals and cells of closures that code names.
        self.places = {}
        self._seen = set()
        #: The attributes that code names.
        self.names, self._reads_any = set(), False
        #: Functions of Python that code names, and the instructions by which it changes what others read.
        self.builtins, self.stores = set(), set()
        self._follow(getattr(type(module), method, None) or getattr(module, method, None))
        self._place(vars(module), method, module)
        for _, child in module.named_modules():
            if not is_of_torch(type(child)):
                self._follow(getattr(type(child), "forward", None))
            self._place(vars(child), "forward", child)
        # Code that is found in values names further ones.
        known = None
        while known != (known := (len(self.names), len(self.places))):
            self._list_attributes()
            for holder, name, _ in list(self.places.values()):
                self._follow_value(read(holder, name))

    def _follow(self, function):
        while isinstance(function, (staticmethod, classmethod, types.MethodType)):
            function = function.__func__
        if isinstance(function, property):
            for accessor in (function.fget, function.fset):
                self._follow(accessor)
            return
        function = getattr(function, "__wrapped__", function) if is_of_library(function) else function
        if not isinstance(function, types.FunctionType) or id(function) in self._seen or is_of_library(function):
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
            self.names.add(name)
            for _, child in self.module.named_modules():
                if not is_of_torch(type(child)):
                    found = getattr(type(child), name, None)
                    if found is not None:
                        self._place(ClassView(type(child)), name, None)
                        self._follow(vars(type(child)).get(name, found))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._follow_code(constant, scope)

    def _follow_value(self, value):
        """Follows the code of functions, and of the objects that a method may call."""
        if isinstance(value, types.ModuleType):
            self._follow_module(value)
        if id(value) in self._seen or isinstance(value, (types.ModuleType, torch.nn.Module, torch.Tensor)):
            return
        if isinstance(value, (types.FunctionType, types.MethodType)):
            self._follow(value)
        elif isinstance(value, type):
            if not is_of_torch(value) and not issubclass(value, torch.nn.Module):
                self._seen.add(id(value))
                for member in vars(value).values():
                    self._follow(member)
        elif isinstance(value, (list, tuple, dict)):
            self._seen.add(id(value))
            for item in value.values() if isinstance(value, dict) else value:
                self._follow_value(item)
        elif hasattr(value, "__dict__"):
            self._seen.add(id(value))
            for kind in type(value).__mro__:
                if not is_of_library(kind) and kind.__module__ != "builtins":
                    for name, member in vars(kind).items():
                        if name not in CONSTRUCTORS:
                            self._follow(member)
                            if isinstance(member, types.FunctionType):
                                self._place(ClassView(type(value)), name, None)
            for item in vars(value).values():
                self._follow_value(item)

    def _follow_module(self, module):
        """Places what code names of a module of the program."""
        name = module.__name__.split(".")[0]
        if is_of_library(types.SimpleNamespace(__module__=name)) or name in sys.stdlib_module_names and name != "__main__":
            return
        for part in self.names & set(vars(module)):
            self._place(vars(module), part, f"{module.__name__}.{part}")

    def _list_attributes(self):
        """Attributes of modules that code can name. Of torch's own modules all count, because captures read them."""
        for _, child in self.module.named_modules():
            attributes = vars(child)
            if is_of_torch(type(child)):
                names = [name for name in attributes if name[0] != "_" and name != "training"]
            elif self._reads_any:
                names = [name for name in attributes if name[0] != "_"]
            else:
                names = self.names
            for name in names:
                if name not in ("training", "forward"):
                    self._place(attributes, name, child)
            for name in self.names & set(child._buffers):
                self._place(child._buffers, name, child)

    def _place(self, holder, name, owner):
        """Adds a place. Errors show its owner, a module, or the name of a closed-over variable."""
        label = owner if isinstance(owner, str) else name if owner is None else f"{type(owner).__name__}.{name}"
        self.places.setdefault((id(holder), name), (holder, name, label))

    def _place_object(self, function):
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self._place(function, name, None)

class ClassView:
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


def read(holder, name):
    if isinstance(holder, (dict, ClassView)):
        return holder.get(name, MISSING)
    try:
        return getattr(holder, name)
    except (AttributeError, ValueError):
        return MISSING

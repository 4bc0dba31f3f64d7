"""What the code of a method can read besides its arguments, in a form that native code compares before every call."""

import enum
import types
import weakref

import torch

from .. import _autobatch as native
from .code import CHANGING_PARTS, MISSING, ClassView, Code, changes, is_changing, is_of_library, read

#: Values that their identity describes.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, torch.Size, enum.Enum)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

#: Guards of one method. `cells/trace.rs` refuses fewer if they cost more than the ops that they save.
MAX_GUARDS = 10_000
#: Functions of Python whose effect is not what they return.
EFFECTS = {"print", "open", "input", "breakpoint", "id", "setattr", "delattr", "exec", "eval", "globals"}
_HOOKS_OF_ALL = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")

#: The guards of methods that were traced, with what they compare, by module and name. Engines refer to them weakly, so that they keep no module alive.
_guards = weakref.WeakKeyDictionary()


class _Guards:
    """Collects guards: `holder[name]` is this object, or absent, and a container has this length."""

    def __init__(self, module, names):
        #: The attributes that the code names, and the modules that it is a method of.
        self.names, self.modules = names, {id(child) for child in module.modules()}
        self.items, self.open = [], set()
        #: Lists and dictionaries with their contents, so that a trace that changed them is undone.
        self.contents_before = []

    def value(self, holder, name, value, place):
        self.items.append((holder, name, None if value is MISSING else value, value is not MISSING))
        if len(self.items) > MAX_GUARDS:
            raise native.RecordError(f"it can read more than {MAX_GUARDS} values")
        self.contents(value, place)

    def length(self, holder):
        self.contents_before.append((holder, holder.copy()))
        self.items.append((holder, None, len(holder), True))

    def contents(self, value, place):
        """Guards what an object holds, unless its identity says everything."""
        if value is MISSING or isinstance(value, _PLAIN) or id(value) in self.open:
            return
        self.open.add(id(value))
        if isinstance(value, types.ModuleType):
            if is_changing(value.__name__) or CHANGING_PARTS.get(value.__name__, set()) & self.names:
                raise native.RecordError(f"it can read {place} (module {value.__name__}), which changes")
        elif isinstance(value, (type, types.CodeType, types.FunctionType, torch.nn.Module, torch.nn.Parameter)):
            if changes(value):
                raise native.RecordError(f"it can call {place}, which returns something else at every call")
            if isinstance(value, torch.nn.Module) and id(value) not in self.modules:
                raise native.RecordError(f"it can call {place}, a {type(value).__name__} that is no child of it")
        elif isinstance(value, (property, staticmethod)):
            pass
        elif isinstance(value, tuple):
            for number, item in enumerate(value):
                self.contents(item, f"{place}[{number}]")
        elif type(value) in (list, dict):
            self.length(value)
            for name, item in list(enumerate(value) if type(value) is list else value.items()):
                if not isinstance(name, (str, int)):
                    raise native.RecordError(f"{place} has keys that are no words")
                self.value(value, name, item, f"{place}[{name!r}]")
        elif _is_function(value):
            if changes(value):
                raise native.RecordError(f"it can call {place}, which returns something else at every call")
        elif type(vars(value) if hasattr(value, "__dict__") else None) is dict and not isinstance(value, torch.Tensor):
            kind = type(value)
            if hasattr(kind, "__slots__") or is_of_library(kind) or any(is_changing(one.__module__) for one in kind.__mro__):
                raise native.RecordError(f"it can read {place}, a {type(value).__name__}, whose changes cannot be noticed")
            self.length(vars(value))
            for name, item in vars(value).items():
                self.value(vars(value), name, item, f"{place}.{name}")
        else:
            raise native.RecordError(f"it can read {place}, a {type(value).__name__}, whose changes cannot be noticed")

    def undo(self):
        for holder, before in self.contents_before:
            if isinstance(holder, list):
                holder[:] = before
            else:
                holder.clear()
                holder.update(before)


def _is_function(value):
    """Whether a value is a function of C that a library brings, such as `torch.tanh`."""
    if not isinstance(value, types.BuiltinFunctionType | types.MethodDescriptorType | types.WrapperDescriptorType):
        return False
    module = getattr(value, "__module__", None)
    return module in (None, "builtins", "_operator") or is_of_library(value)


def _guards_of(module, method):
    code = Code(module, method)
    effects = EFFECTS & code.builtins | code.stores
    if effects:
        raise native.RecordError(f"its code has effects that would come only once: {min(effects)}")
    found = _Guards(module, code.names)
    for hooks in _HOOKS_OF_ALL:
        found.length(getattr(torch.nn.modules.module, hooks))
    for _, child in module.named_modules():
        for part in (*_HOOKS, "_modules", "_parameters", "_buffers"):
            found.length(getattr(child, part))
        if any(getattr(child, hooks) for hooks in _HOOKS):
            raise native.RecordError(f"{type(child).__name__} has hooks")
        if any(buffer is not None for buffer in child._buffers.values()):
            raise native.RecordError(f"{type(child).__name__} has buffers, whose changes cannot be noticed")
        found.value(vars(child), "training", child.training, "training")
        for held in (child._modules, child._parameters):
            for name, one in held.items():
                found.value(held, name, one, name)
        for param in child._parameters.values():
            if param is not None:
                found.value(param, "requires_grad", param.requires_grad, "requires_grad")
    for holder, name, label in code.places.values():
        found.value(holder.kind if isinstance(holder, ClassView) else holder, name, read(holder, name), label)
    return found


def _same(one, other):
    return len(one) == len(other) and all(
        a[0] is b[0] and a[1] == b[1] and (a[2] is b[2] or a[1] is None and a[2] == b[2]) and a[3] == b[3]
        for a, b in zip(one, other)
    )


def trace_call(call, module, method, args, kwargs, grads):
    """Calls a method of a module on recorded arguments. Returns what its code read, and what it returned."""
    before = _guards_of(module, method)
    generator = torch.get_rng_state()
    try:
        with torch.set_grad_enabled(grads):
            made = call(module, *args, **kwargs) if method == "forward" else getattr(module, method)(*args, **kwargs)
        if not torch.equal(generator, torch.get_rng_state()):
            raise native.RecordError("it draws random numbers")
        if not _same(before.items, _guards_of(module, method).items):
            raise native.RecordError("it changes what it reads")
    except Exception:
        before.undo()
        raise
    finally:
        torch.set_rng_state(generator)
    known = _guards.setdefault(module, {})
    # Engines of several threads share what still holds.
    if method not in known or not _same(known[method][0], before.items):
        known[method] = before.items, native.Guards(before.items)
    return known[method][1], made

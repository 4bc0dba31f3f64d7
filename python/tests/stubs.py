"""Writes the type stubs of the native module and of `autobatch.dynet`: python python/tests/stubs.py"""

import inspect
import pathlib

from autobatch import _autobatch as native
from stub_types import CALLS, HEAD, INTERNAL, PARAMS, PARAMS_OF, RETURNS, RETURNS_OF_CLASS, SIGNATURES

PACKAGE = pathlib.Path(__file__).parent.parent / "autobatch"

ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
EQUALITY = ("__eq__", "__ne__")
PLAIN = {
    "__bool__": "bool", "__eq__": "bool", "__exit__": "None", "__hash__": "int", "__len__": "int", "__ne__": "bool",
    "__repr__": "str", "_repr_html_": "str", "__enter__": "Graph", "__reduce__": "tuple[Any, ...]", "__getnewargs__": "tuple[str]",
}
"""The results of special methods."""


def parameters(function, name):
    """The parameters of a function with their types; `name` is its name with that of its class."""
    own, shown, keywords_only = PARAMS_OF.get(name, {}), [], False
    for parameter in inspect.signature(function).parameters.values():
        label = parameter.name
        if label in ("self", "cls"):
            shown.append(label)
            continue
        kind = own.get(label) or PARAMS.get(label) or "Any"
        if parameter.kind is parameter.VAR_POSITIONAL:
            label, keywords_only = f"*{label}", True
        elif parameter.kind is parameter.VAR_KEYWORD:
            label = f"**{label}"
        elif parameter.kind is parameter.KEYWORD_ONLY and not keywords_only:
            shown.append("*")
            keywords_only = True
        default = parameter.default
        if default is parameter.empty:
            shown.append(f"{label}: {kind}")
        else:
            if default is None and "None" not in kind and kind != "Any":
                kind += " | None"
            shown.append(f"{label}: {kind} = {'...' if default is Ellipsis else repr(default)}")
    return ", ".join(shown)


def result(name, class_name):
    """The type that a function returns."""
    method = name.split(".")[-1]
    if name in RETURNS:
        return RETURNS[name]
    if method in PLAIN and not (class_name == "Value" and method in EQUALITY):
        return PLAIN[method]
    if class_name in INTERNAL or name in INTERNAL:
        return "Any"
    if class_name is None:
        return "Optimizer" if name[0].isupper() else "Value"
    if class_name.endswith("State"):
        return {"values": "tuple[Value, ...]", "push": class_name}.get(method, "Value")
    if class_name in RETURNS_OF_CLASS:
        return RETURNS_OF_CLASS[class_name]
    return {"run": "List[Value]", "start": f"{class_name}State"}.get(method, "Value")


def function(lines, indent, name, value, class_name=None):
    """Writes a function."""
    short = name.split(".")[-1]
    if short == "__call__":
        given, _, returned = CALLS[class_name].partition(" -> ")
        head = f"def __call__(self, {given}) -> {returned}:"
    elif short in EQUALITY:
        returned = result(name, class_name)
        ignored = "  # type: ignore[override]" if returned != "bool" else ""
        head = f"def {short}(self, other: object) -> {returned}:{ignored}"
    else:
        given = SIGNATURES.get(name) or parameters(value, name)
        head = f"def {short}({given}) -> {result(name, class_name)}:"
    described(lines, indent, head, "" if short[:2] == "__" else first_line(value))


def described(lines, indent, head, doc):
    """Writes a head with its documentation."""
    lines.append(f"{indent}{head}")
    lines.append(f'{indent}    """{doc}"""' if doc else f"{indent}    ...")


def first_line(thing):
    """The first line of the documentation, as text of a program."""
    return (inspect.getdoc(thing) or "").split("\n")[0].replace("\\", "\\\\")


def class_stub(lines, name, kind):
    """Writes a class."""
    bases = ", ".join(base.__name__ for base in kind.__bases__ if base is not object)
    lines.append(f"\nclass {name}({bases}):" if bases else f"\nclass {name}:")
    lines.append(f'    """{first_line(kind)}"""')
    if name == "AutobatchError":
        lines += ["    file: str | None", "    line: int | None", "    help: str | None"]
    if issubclass(kind, Exception):
        return
    if "__new__" in vars(kind):
        given = parameters(kind, f"{name}.__init__")
        described(lines, "    ", f"def __init__({', '.join(filter(None, ['self', given]))}) -> None:", "")
    for member, value in sorted(vars(kind).items()):
        full = f"{name}.{member}"
        if member in ("__new__", "__doc__", "__module__", "__init__", "_restored") or not callable(value) and member[:2] == "__":
            continue
        # The package adds methods of Python to a native class. Types have no order but that of every object.
        if inspect.isfunction(value) or name == "Type" and member in ORDER:
            continue
        if inspect.isgetsetdescriptor(value):
            lines.append("    @property")
            described(lines, "    ", f"def {member}(self) -> {result(full, name)}:", first_line(value))
        elif isinstance(value, staticmethod):
            lines.append("    @staticmethod")
            function(lines, "    ", full, getattr(kind, member), name)
        elif type(value).__name__ == "classmethod_descriptor":
            lines.append("    @classmethod")
            function(lines, "    ", full, value, name)
        elif callable(value):
            function(lines, "    ", full, value, name)


def stubs():
    """The stubs of the native module as text."""
    lines = [HEAD]
    for name, value in sorted(vars(native).items()):
        if name.startswith("__") and name != "__version__" or name in ("_autobatch", "_remade"):
            continue
        if inspect.isclass(value):
            class_stub(lines, name, value)
        elif callable(value):
            lines.append("")
            function(lines, "", name, value)
        else:
            lines.append(f"\n{name}: {type(value).__name__}")
    return "\n".join(lines) + "\n"


DYNET_HEAD = '''"""DyNet's Python interface on this engine. tests/stubs.py writes this file."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
'''

DYNET_RETURNS = {
    "value": "Any", "npvalue": "NDArray[np.float32]", "vec_value": "list[float]", "scalar_value": "float", "dim": "tuple[Any, int]",
    "backward": "None", "forward": "None", "update": "None", "save": "None", "populate": "None", "set": "None", "__len__": "int",
    "__iter__": "Iterator[Expression]", "install": "None", "init": "None", "__repr__": "str", "npvalues": "list[NDArray[np.float32]]",
    "values": "list[Any]", "shape": "tuple[int, ...]", "as_array": "NDArray[np.float32]", "grad_as_array": "NDArray[np.float32]",
    "cg_version": "int", "cg_checkpoint": "None", "cg_revert": "None", "reset_random_seed": "None", "set_value": "None",
    "add_parameters": "Parameters", "add_lookup_parameters": "LookupParameters", "__init__": "None", "v": "Any", "array": "Any",
    "handle": "Any", "gradient": "NDArray[np.float32]", "native": "Any", "extents": "tuple[int, ...]",
}
"""The type that a function of the module returns, by its short name."""


def dynet_stubs():
    """The stubs of `autobatch.dynet` as text."""
    import autobatch.dynet as dynet

    def signature(value, name, returned):
        try:
            given = inspect.signature(value).parameters.values()
        except (ValueError, TypeError):
            return f"def {name}(*args: Any) -> {returned}: ..."
        shown = []
        for parameter in given:
            label = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
            typed = label if label in ("self", "cls") else f"{label}: Any"
            shown.append(typed if parameter.default is parameter.empty else f"{typed} = ...")
        return f"def {name}({', '.join(shown)}) -> {returned}: ..."

    lines = [DYNET_HEAD]
    for name, value in sorted(vars(dynet).items()):
        if name.startswith("_") or name == "ENGINE" or inspect.ismodule(value):
            continue
        if inspect.isclass(value):
            if value.__name__ != name:
                is_public = not value.__name__.startswith("_")
                lines.append(f"\n{name} = {value.__name__}" if is_public else f"\n{name}: Any")
                continue
            bases = [base.__name__ for base in value.__bases__ if getattr(dynet, base.__name__, None) is base]
            lines.append(f"\nclass {name}({', '.join(bases)}):" if bases else f"\nclass {name}:")
            lines.append(f'    """{first_line(value)}"""')
            for member, own in sorted(vars(value).items()):
                if member[:2] == "__" and member not in DYNET_RETURNS and not member.strip("_") in OPERATORS:
                    continue
                returned = DYNET_RETURNS.get(member, "Expression" if name == "Expression" else "Any")
                if inspect.isgetsetdescriptor(own) or isinstance(own, property):
                    lines.append(f"    @property\n    def {member}(self) -> {DYNET_RETURNS.get(member, 'Any')}: ...")
                elif isinstance(own, (staticmethod, classmethod)):
                    kind = "staticmethod" if isinstance(own, staticmethod) else "classmethod"
                    lines.append(f"    @{kind}\n    {signature(own.__func__, member, 'Any')}")
                elif callable(own) and member[:1] != "_" or member[:2] == "__":
                    lines.append(f"    {signature(own, member, returned)}")
        elif callable(value):
            lines.append("\n" + signature(value, name, DYNET_RETURNS.get(name, "Expression")).replace("self: Any", "x: Any").replace("(self", "(x: Any"))
        else:
            known = {bool: "bool", str: "str", dict: "dict[str, Any]"}
            lines.append(f"\n{name}: {known.get(type(value), 'Any')}")
    return "\n".join(lines) + "\n"


OPERATORS = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "neg", "getitem")

FILES = {PACKAGE / "_autobatch.pyi": stubs, PACKAGE / "dynet" / "__init__.pyi": dynet_stubs}
"""The files with what they must hold."""


if __name__ == "__main__":
    for path, make in FILES.items():
        path.write_text(make())

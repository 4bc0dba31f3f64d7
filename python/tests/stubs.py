"""Prints the type stubs of the native module: python python/tests/stubs.py > python/autobatch/_autobatch.pyi"""

import inspect

from autobatch import _autobatch as native

HEAD = '''"""The native half of the package. tests/stubs.py writes this file."""

from typing import Any
'''


def signature(function, name):
    try:
        text = str(inspect.signature(function))
    except (ValueError, TypeError):
        text = "(self, *args: Any, **options: Any)"
    return f"def {name}{text.replace('/, ', '').replace(', /', '').replace('(/)', '()')} -> Any"


def described(lines, indent, head, doc):
    lines.append(f"{indent}{head}:")
    lines.append(f'{indent}    """{doc}"""' if doc else f"{indent}    ...")


def first_line(thing):
    return (inspect.getdoc(thing) or "").split("\n")[0].replace("\\", "\\\\")


def class_stub(lines, name, kind):
    bases = ", ".join(base.__name__ for base in kind.__bases__ if base is not object)
    lines.append(f"\nclass {name}({bases}):" if bases else f"\nclass {name}:")
    lines.append(f'    """{first_line(kind)}"""')
    if not issubclass(kind, Exception):
        if "__new__" in vars(kind):
            described(lines, "    ", signature(kind, "__init__").replace("(", "(self, ", 1), "")
        for member, value in sorted(vars(kind).items()):
            if member in ("__new__", "__doc__", "__module__", "__init__") or not callable(value) and member[:2] == "__":
                continue
            if inspect.isfunction(value):
                continue  # The package adds methods of Python to a native class.
            if inspect.isgetsetdescriptor(value):
                lines.append("    @property")
                described(lines, "    ", f"def {member}(self) -> Any", first_line(value))
            elif isinstance(value, staticmethod):
                lines.append("    @staticmethod")
                described(lines, "    ", signature(getattr(kind, member), member), first_line(value))
            elif callable(value):
                described(lines, "    ", signature(value, member), "" if member[:2] == "__" else first_line(value))


def stubs():
    lines = [HEAD]
    for name, value in sorted(vars(native).items()):
        if name.startswith("__") and name != "__version__" or name in ("_autobatch",):
            continue
        if inspect.isclass(value):
            class_stub(lines, name, value)
        elif callable(value):
            lines.append("")
            described(lines, "", signature(value, name), first_line(value))
        else:
            lines.append(f"\n{name}: {type(value).__name__}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(stubs(), end="")

"""Prints the page "Python, function by function" of the guide: python python/tests/native_page.py > docs/src/native-python.md"""

import inspect
import re

import stubs
from autobatch import _autobatch as native
from autobatch import data, decode, nn, optim, train

HEAD = """# Python, function by function

Every function and class of the package `autobatch` for Python, with its types. `ab` stands for `autobatch`. The pages
[DyNet's Python](dynet.md) and [From PyTorch](from-pytorch.md) list those of `autobatch.dynet` and `autobatch.torch`.
`python python/tests/native_page.py` prints this page from the package, and a test compares both.

An `Operand` is a value, a parameter, a number or an array; an `Index` is an int or a value of type `ab.index`; a `Shape` is
an int or a sequence of ints. `Emitted` is a value or a sequence of values.
"""

MODELS = ("Module", "Cell", "Param", "Table", "Init", "Type")
RUNS = ("Session", "Plan", "Graph", "Trainer", "Step", "Paused")
SPECIAL = {"__call__": "(...)", "__getitem__": "[...]", "__len__": "len(...)"}


def signatures():
    """The signatures and first lines of the native functions, by their full names, as the stubs have them."""
    found, owner, lines = {}, None, stubs.stubs().split("\n")
    for number, line in enumerate(lines):
        if match := re.match(r"class (\w+)", line):
            owner = match[1]
            continue
        match = re.match(r"( *)def (\w+)\((.*)\) -> (.*?):", line)
        if not match:
            continue
        owner = owner if match[1] else None
        is_property = number > 0 and lines[number - 1].strip() == "@property"
        doc = lines[number + 1].strip().strip('"') if '"""' in lines[number + 1] else ""
        given = re.sub(r"^self(, )?", "", match[3])
        shown = f"{match[2]}" if is_property else f"{match[2]}({given})"
        found[f"{owner}.{match[2]}" if owner else match[2]] = (shown, match[4], doc)
    return found


def rows(names, known):
    """A table of functions."""
    yield "| | returns | |"
    yield "|---|---|---|"
    for name in names:
        shown, returned, doc = known[name]
        short = name.split(".")[-1]
        if short in SPECIAL:
            shown = SPECIAL[short].replace("...", shown[len(short) + 1:-1]) if short != "__len__" else "len"
        cells = [f"`{shown}`", f"`{returned}`", doc]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def members(kind, known):
    """The documented members of a class."""
    return [name for name in known if name.startswith(f"{kind}.") and known[name][2] or name in (f"{kind}.__call__", f"{kind}.__getitem__")]


def of_class(module, kind, known):
    """A class with its members."""
    made = known.get(f"{kind}.__init__")
    call = made[0].replace("__init__", kind) if made else kind
    yield f"\n### `{module}{call}`\n\n{inspect.getdoc(getattr(native, kind)).splitlines()[0]}\n"
    names = [name for name in members(kind, known) if not name.endswith("__init__")]
    if names:
        yield from rows(names, known)


def page():
    """The page as text."""
    known, lines = signatures(), [HEAD]
    for title, kinds in (("Models", MODELS), ("Sessions, plans and training", RUNS)):
        lines.append(f"\n## {title}")
        for kind in kinds:
            lines += of_class("ab.", kind, known)
    lines.append("\n## Values")
    lines += of_class("ab.", "Value", known)
    lines.append("\n### Functions of `ab`\n")
    import autobatch

    functions = [name for name in known if "." not in name and name in autobatch.__all__]
    lines += rows(functions, known)
    lines.append("\n## Layers, `ab.nn`")
    for kind in nn.__all__:
        lines += of_class("ab.nn.", kind, known)
    lines.append("\n## Optimisers, `ab.optim`\n\nEach takes `clip_norm`, `clip_value`, `weight_decay`, `decoupled_weight_decay`, "
                 "`average`, `sparse_rows` and\n`schedule` as keywords.\n")
    lines += rows([name for name in optim.__all__ if name in known], known)
    for kind in ("Optimizer", "Schedule"):
        lines += of_class("ab.optim.", kind, known)
    for name, module in (("data", data), ("train", train), ("decode", decode)):
        lines.append(f"\n## `ab.{name}`\n\n{inspect.getdoc(module).splitlines()[0]}\n\n| | |\n|---|---|")
        for member in module.__all__:
            value = getattr(module, member)
            given = re.sub(r"\b[A-Za-z_]\w*\.(?=\w)", "", re.sub(r": '([^']*)'", r": \1", str(inspect.signature(value)).replace("collections.abc.", "").replace("~", "")))
            lines.append(f"| `{member}{given.split(' -> ')[0]}`".replace("|", "\\|").replace("\\|", "|", 1) + f" | {inspect.getdoc(value).splitlines()[0]} |")
    lines.append("\n## Exceptions\n\nAll derive from `ab.AutobatchError`, whose `file`, `line` and `help` name the line of the model and the remedy, or "
                 "are None.\n\n| | |\n|---|---|")
    for name, value in sorted(vars(native).items()):
        if inspect.isclass(value) and issubclass(value, native.AutobatchError):
            lines.append(f"| `ab.{name}` | {inspect.getdoc(value).splitlines()[0].split('. `file`')[0].rstrip('.')}. |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")

"""The committed type stubs equal those of the built package, and mypy accepts them and programs that use them."""

import ast
import copy
import importlib
import inspect
import pathlib
import subprocess
import sys

import pytest

import native_page
import stubs

ROOT = pathlib.Path(__file__).parent.parent
TYPED = ["recursive.py", "bilstm_tagger.py", "graph_network.py", "translate.py", "train_unmodified.py", "ray_map.py"]
"""The examples whose types mypy checks."""


@pytest.mark.parametrize("path", stubs.FILES, ids=lambda path: path.parent.name)
def test_stubs_are_current(path):
    assert path.read_text() == stubs.FILES[path](), "run: python python/tests/stubs.py"


def test_mypy_accepts_the_package_and_a_typed_program():
    pytest.importorskip("mypy")
    files = [ROOT / "autobatch" / name for name in ("__init__.py", "nn.py", "optim.py", "data.py", "decode.py", "train.py")]
    files += [ROOT / "autobatch" / "_autobatch.pyi", *(ROOT / "autobatch" / name / "__init__.pyi" for name in ("dynet", "torch"))]
    files += [ROOT / "examples" / name for name in TYPED]
    # PyTorch, which the examples use where it is installed, has functions without types. The modules behind the stubs have none.
    without_torch = ["--ignore-missing-imports", "--allow-untyped-calls", "--allow-subclassing-any", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *without_torch, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stub_of_torch_has_the_signatures_of_the_package():
    pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch runs this test")
    package = importlib.import_module("autobatch.torch")
    stub = ast.parse((ROOT / "autobatch" / "torch" / "__init__.pyi").read_text())
    named = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert sorted(named) == sorted(package.__all__)
    for name, node in named.items():
        thing = getattr(package, name)
        functions = {"": node} if isinstance(node, ast.FunctionDef) else {
            member.name: member for member in node.body if isinstance(member, ast.FunctionDef)
        }
        if inspect.isclass(thing):
            public = {member for member in vars(thing) if member[0] != "_" and callable(getattr(thing, member))}
            assert public == {member for member in functions if member[0] != "_"}, name
        for member, function in functions.items():
            given = inspect.signature(getattr(thing, member) if member else thing)
            plain = given.replace(parameters=[
                parameter.replace(annotation=parameter.empty) for parameter in given.parameters.values()
            ])
            assert shown(function.args) == str(plain), f"{name}.{member}"


def shown(arguments):
    """The parameters of a function in a stub, without their types, as `inspect` shows them."""
    copied = copy.deepcopy(arguments)
    for argument in ast.walk(copied):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return f"({ast.unparse(copied)})"


def test_the_guide_lists_every_function_of_the_native_interface():
    page = ROOT.parent / "docs" / "src" / "native-python.md"
    remedy = "run: python python/tests/native_page.py > docs/src/native-python.md"
    assert page.read_text() == native_page.page(), remedy

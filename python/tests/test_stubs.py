"""The committed type stubs equal those of the built package, and mypy accepts them and programs that use them."""

import pathlib
import subprocess
import sys

import pytest

import native_page
import stubs

ROOT = pathlib.Path(__file__).parent.parent
TYPED = ["recursive.py", "bilstm_tagger.py", "graph_network.py", "translate.py"]
"""The examples whose types mypy checks."""


@pytest.mark.parametrize("path", stubs.FILES, ids=lambda path: path.parent.name)
def test_stubs_are_current(path):
    assert path.read_text() == stubs.FILES[path](), "run: python python/tests/stubs.py"


def test_mypy_accepts_the_package_and_a_typed_program():
    pytest.importorskip("mypy")
    files = [ROOT / "autobatch" / name for name in ("__init__.py", "nn.py", "optim.py", "data.py", "decode.py")]
    files += [ROOT / "autobatch" / "_autobatch.pyi", ROOT / "autobatch" / "dynet" / "__init__.pyi"]
    files += [ROOT / "examples" / name for name in TYPED]
    # PyTorch, which the examples use where it is installed, has functions without types.
    without_torch = ["--ignore-missing-imports", "--allow-untyped-calls", "--allow-subclassing-any"]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *without_torch, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_guide_lists_every_function_of_the_native_interface():
    page = ROOT.parent / "docs" / "src" / "native-python.md"
    remedy = "run: python python/tests/native_page.py > docs/src/native-python.md"
    assert page.read_text() == native_page.page(), remedy

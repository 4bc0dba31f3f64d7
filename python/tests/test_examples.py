"""The examples run, and the models of those that train learn."""

import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def run(name, *options):
    """The lines that an example prints."""
    command = [sys.executable, EXAMPLES / name, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("name, accuracy", [
    ("recursive.py", r"accuracy (\S+),"), ("bilstm_tagger.py", r"accuracy (\S+),"), ("graph_network.py", r"accuracy (\S+),"),
    ("translate.py", r", (\S+) without a fault"),
])
def test_a_model_learns(name, accuracy):
    steps = {"recursive.py": 300, "translate.py": 350}.get(name, 100)
    lines = run(name, "--steps", str(steps))
    first, last = map(float, re.search(r"loss (\S+) -> (\S+),", lines[0]).groups())
    assert last < 0.7 * first, lines
    assert float(re.search(accuracy, lines[0]).group(1)) > 0.4, lines


def test_an_unmodified_module_trains_alike():
    pytest.importorskip("torch")
    lines = run("train_unmodified.py", "--steps", "4", "--trees", "12")
    (first, last), (other_first, other_last) = [map(float, re.search(r"loss (\S+) -> (\S+),", line).groups()) for line in lines[:2]]
    assert abs(first - other_first) < 2e-4 and abs(last - other_last) < 2e-3, lines
    assert lines[2].startswith("the first losses differ by ")

"""The examples that compare a block with eager torch."""

import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def test_an_unmodified_module_trains_alike():
    command = [sys.executable, EXAMPLES / "train_unmodified.py", "--steps", "4", "--trees", "12"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    (first, last), (other_first, other_last) = [map(float, re.search(r"loss (\S+) -> (\S+),", line).groups()) for line in lines[:2]]
    assert abs(first - other_first) < 2e-4 and abs(last - other_last) < 2e-3, lines
    assert lines[2].startswith("the first losses differ by ")

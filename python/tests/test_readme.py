"""The programs of the README print what they should."""

import pathlib
import re

import pytest


def run(number):
    text = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(programs) == 3
    exec(compile(programs[number], "README.md", "exec"), {"__name__": "readme"})


def test_the_program_of_the_readme_runs(capsys):
    run(0)
    assert capsys.readouterr().out == "2 (8,)\n"


def test_the_programs_for_torch_run(capsys):
    pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch runs this test")
    run(1)
    run(2)
    assert capsys.readouterr().out == "(2, 4) (4, 8)\n"

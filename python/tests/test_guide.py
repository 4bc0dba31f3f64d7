"""The programs of the guide in Python run."""

import pathlib
import re

import pytest

PAGES = pathlib.Path(__file__).parent.parent.parent / "docs" / "src"
PAGE = PAGES / "python.md"


@pytest.mark.parametrize("number, needs", [(1, "numpy"), (2, "numpy"), (3, "torch"), (4, "numpy")])
def test_a_program_of_the_guide_trains(number, needs):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(programs) == 5
    exec(compile(programs[0] + programs[number], str(PAGE), "exec"), {"__name__": "guide"})


def test_a_module_of_torch_trains_as_it_is():
    pytest.importorskip("torch")
    page = PAGES / "from-pytorch.md"
    program, of_each = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names = {"__name__": "guide"}
    exec(compile(program, str(page), "exec"), names)
    assert names["model"].both.weight.grad.abs().max() > 0
    pytest.importorskip("greenlet", reason="greenlet is not installed")
    exec(compile(of_each, str(page), "exec"), names)

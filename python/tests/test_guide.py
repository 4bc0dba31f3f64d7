"""The programs of the chapter "Three Python interfaces" run."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parent.parent.parent / "docs" / "src" / "python.md"


@pytest.mark.parametrize("number, needs", [(1, "numpy"), (2, "numpy"), (3, "torch"), (4, "numpy")])
def test_a_program_of_the_guide_trains(number, needs):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(programs) == 5
    exec(compile(programs[0] + programs[number], str(PAGE), "exec"), {"__name__": "guide"})

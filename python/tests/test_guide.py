"""The programs of the guide in Python run."""

import pathlib
import re

import pytest

PAGES = pathlib.Path(__file__).parent.parent.parent / "docs" / "src"
PAGE = PAGES / "python.md"


@pytest.mark.parametrize("section, needs", [
    ("Native", "numpy"), ("DyNet's", "numpy"), ("TorchFold's", "torch"), ("Transformers", "numpy"),
])
def test_the_programs_of_a_section_of_the_guide_run(section, needs):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    head, *sections = PAGE.read_text().split("\n## ")
    (text,) = [text for text in sections if text.startswith(f"{section}\n")]
    programs = [program for part in (head, text) for program in re.findall(r"```python\n(.*?)```", part, re.DOTALL)]
    assert len(programs) >= 2
    exec(compile("\n".join(programs), str(PAGE), "exec"), {"__name__": "guide"})


def test_a_module_of_torch_trains_as_it_is():
    pytest.importorskip("torch")
    page = PAGES / "from-pytorch.md"
    program, of_each = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names = {"__name__": "guide"}
    exec(compile(program, str(page), "exec"), names)
    assert names["model"].both.weight.grad.abs().max() > 0
    pytest.importorskip("greenlet", reason="greenlet is not installed")
    exec(compile(of_each, str(page), "exec"), names)

"""The program of the README prints what the README says."""

import pathlib
import re


def test_the_program_of_the_readme_runs(capsys):
    text = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(program, "README.md", "exec"), {})
    assert capsys.readouterr().out == "2 (8,)\n"

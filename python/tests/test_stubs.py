"""The committed type stubs equal those of the built module."""

import pathlib

import stubs

STUBS = pathlib.Path(__file__).parent.parent / "autobatch" / "_autobatch.pyi"


def test_stubs_are_current():
    remedy = "run: python python/tests/stubs.py > python/autobatch/_autobatch.pyi"
    assert STUBS.read_text() == stubs.stubs(), remedy

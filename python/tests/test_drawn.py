"""Programs that are drawn, in a block and in eager torch: see `differential_batch.py`."""

import warnings

import pytest

pytest.importorskip("torch")

import differential_batch  # noqa: E402


@pytest.mark.parametrize("first", range(1, 151, 10))
def test_drawn_programs_equal_eager(first):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [differential_batch.case(seed, {}) for seed in range(first, first + 10)]
    assert sum(one.startswith("equal") for one in found) >= 5, found

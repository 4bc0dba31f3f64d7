"""The types of elements in a `batch()`: those of torch, or the call is refused."""

import pytest

torch = pytest.importorskip("torch")
import torch.nn as nn  # noqa: E402

from autobatch import RecordError  # noqa: E402
from autobatch.torch import batch  # noqa: E402

#: Functions of floats, truth values and an index.
PROGRAMS = {
    "number": lambda x, b, i: i + 1,
    "reversed number": lambda x, b, i: 1 - i,
    "float number": lambda x, b, i: i * 2.5,
    "another tensor": lambda x, b, i: i + torch.tensor([1, 2]),
    "quotient": lambda x, b, i: i / 2,
    "remainder": lambda x, b, i: i % 2,
    "stack": lambda x, b, i: torch.stack([i, i]),
    "cat": lambda x, b, i: torch.cat([i.view(1), i.view(1)]),
    "stack of truth": lambda x, b, i: torch.stack([b, b]),
    "cat of truth and floats": lambda x, b, i: torch.cat([b, x]),
    "where of ints": lambda x, b, i: torch.where(b, torch.tensor([1]), torch.tensor([0])),
    "where of numbers": lambda x, b, i: torch.where(b, 1, 0),
    "where of floats": lambda x, b, i: torch.where(b, 1.0, 0.0),
    "where": lambda x, b, i: torch.where(b, x, 0),
    "where of indices": lambda x, b, i: torch.where(i > 1, i, 7),
    "truth times int": lambda x, b, i: b * 2,
    "truth times float": lambda x, b, i: b * 2.0,
    "truth plus truth": lambda x, b, i: b + b,
    "truth times truth": lambda x, b, i: b * b,
    "truth times floats": lambda x, b, i: b * x,
    "sum of truth": lambda x, b, i: b.sum(),
    "sum along an axis": lambda x, b, i: b.sum(1, keepdim=True),
    "sum with a dtype": lambda x, b, i: b.sum(dtype=torch.float32),
    "prod of truth": lambda x, b, i: b.prod(1),
    "cumsum of truth": lambda x, b, i: b.cumsum(1),
    "max of truth": lambda x, b, i: b.max(),
    "max of truth along an axis": lambda x, b, i: b.max(1).values,
    "any": lambda x, b, i: b.any(1),
    "mean": lambda x, b, i: b.float().mean(),
    "float": lambda x, b, i: b.float() + i.float(),
    "long": lambda x, b, i: b.long(),
    "to": lambda x, b, i: b.to(torch.int64),
    "type_as": lambda x, b, i: b.type_as(x),
    "not": lambda x, b, i: ~b,
    "and": lambda x, b, i: b & (x > 0.5),
    "compare indices": lambda x, b, i: i == x.argmax(1),
    "index": lambda x, b, i: x[0, i],
    "view of an index": lambda x, b, i: i.view(1, 1),
    "expand": lambda x, b, i: i.expand(3),
    "expand truth": lambda x, b, i: b.expand(2, 6),
    "negative": lambda x, b, i: -i,
    "clamp": lambda x, b, i: i.clamp(min=1),
    "power": lambda x, b, i: i**2,
    "root": lambda x, b, i: i.sqrt(),
    "zeros like truth": lambda x, b, i: torch.zeros_like(b),
    "zeros like an index": lambda x, b, i: torch.zeros_like(i, dtype=torch.float32),
    "new zeros": lambda x, b, i: i.new_zeros(2),
    "maximum": lambda x, b, i: torch.maximum(i, torch.tensor(3)),
    "masked ints": lambda x, b, i: torch.tensor([[1, 2, 3, 4, 5, 6]]).masked_fill(b, 0),
    "named results": lambda x, b, i: x.max(1).values + x.min(1, keepdim=True).indices.float(),
    "an index of its own": lambda x, b, i: torch.tensor([3]) + 1,
    "an index in place": lambda x, b, i: torch.tensor([3]).add_(2),
    "floats by an index of its own": lambda x, b, i: x * torch.tensor([3]) + x[:, torch.tensor([2])],
    "ints of a list": lambda x, b, i: torch.tensor([3]).tolist(),
    "shape and type": lambda x, b, i: [tuple(torch.tensor([3]).shape), torch.tensor([3]).dtype, len(torch.tensor([3]))],
}
#: Those that need ints which the graph cannot compute.
REFUSED = {
    "number", "reversed number", "float number", "another tensor", "quotient", "remainder", "where of ints",
    "where of numbers", "where of indices", "truth times int", "truth plus truth", "truth times truth", "max of truth", "max of truth along an axis", "negative",
    "clamp", "power", "root", "zeros like truth", "new zeros", "maximum", "masked ints",
}  # fmt: skip


@pytest.mark.parametrize("is_computed", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_have_the_types_of_torch(name, is_computed):
    torch.manual_seed(0)
    layer, run = nn.Linear(4, 6), PROGRAMS[name]

    def tensors():
        x = layer(torch.randn(1, 4, generator=torch.Generator().manual_seed(1)))
        return x, x > 0, x.argmax()

    with torch.no_grad():
        expected = run(*tensors())
        try:
            with batch() as block:
                given = tensors()
                if is_computed:
                    block.flush()
                found = run(*given)
        except RecordError:
            assert name in REFUSED and not is_computed
            return
        assert name not in REFUSED or is_computed
    if isinstance(expected, torch.Tensor):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert torch.allclose(found.float(), expected.float(), atol=1e-6)
    else:
        assert found == expected

"""`autobatch.torch.each`: instances that read numbers of their own."""

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("greenlet")
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from autobatch.torch import batch, each  # noqa: E402

MOST_WORDS = 12


class Decoder(nn.Module):
    """Encodes a sentence and decodes greedily until it draws a multiple of 7."""

    def __init__(self, words=30, width=12):
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(words, width), nn.GRUCell(width, width)
        self.decoder, self.scores = nn.GRUCell(width, width), nn.Linear(width, words)
        nn.init.normal_(self.scores.weight)
        nn.init.normal_(self.decoder.weight_hh)
        nn.init.normal_(self.embedding.weight, std=2)

    def forward(self, sentence):
        state = torch.zeros(1, self.encoder.hidden_size)
        for word in sentence:
            state = self.encoder(self.embedding(torch.tensor([word])), state)
        word, decoded, total = sentence[0], [], 0.0
        while len(decoded) < MOST_WORDS:
            state = self.decoder(self.embedding(torch.tensor([word])), state)
            scores = F.log_softmax(self.scores(state), dim=-1)
            word = int(scores.argmax())
            decoded.append(word)
            total = total + scores[0, word]
            if word % 7 == 0:
                break
        return decoded, total


def sentences(count, seed=1):
    rng = random.Random(seed)
    return [[rng.randrange(30) for _ in range(rng.randrange(1, 9))] for _ in range(count)]


def test_a_greedy_decoder_decodes_as_eager_in_one_flush_per_word():
    torch.manual_seed(3)
    model, data = Decoder(), sentences(20)
    expected = [model(sentence) for sentence in data]
    torch.stack([total for _, total in expected]).mean().backward()
    of_eager = {name: param.grad.clone() for name, param in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    with batch() as block:
        found = each(model, data)
        loss = torch.stack([total for _, total in found]).mean()
    assert [words for words, _ in found] == [words for words, _ in expected]
    longest = max(len(words) for words, _ in found)
    assert len({len(words) for words, _ in found}) > 2, "the sentences end at different places"
    # Each round of words is computed together; parameters that become known compute what was recorded before.
    assert longest <= block.flushes <= longest + 12
    loss.backward()
    for name, param in model.named_parameters():
        scale = of_eager[name].abs().max().clamp(min=1e-3)
        assert (param.grad - of_eager[name]).abs().max() <= 1e-4 * scale, name


def test_a_loop_that_halts_by_a_computed_value():
    torch.manual_seed(4)
    step, halt = nn.Linear(6, 6), nn.Linear(6, 1)

    def ponder(x):
        steps, left = 0, 1.0
        while left > 0.1 and steps < 20:
            x = torch.tanh(step(x))
            left = left * (1 - torch.sigmoid(halt(x)).item())
            steps += 1
        return steps, x.tolist()

    data = [torch.randn(6) * scale for scale in range(1, 9)]
    with torch.no_grad():
        expected = [ponder(x) for x in data]
        found = each(ponder, data)
    assert [steps for steps, _ in found] == [steps for steps, _ in expected]
    for (_, one), (_, other) in zip(found, expected):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-6)


def test_gradients_are_recorded_as_each_instance_says():
    linear = nn.Linear(3, 3)

    def run(number):
        if number % 2:
            with torch.no_grad():
                y = linear(torch.ones(3))
                y.sum().item()
                y = y * 2
        else:
            y = linear(torch.ones(3))
            y.sum().item()
            y = y * 2
        y.sum().item()
        return torch.is_grad_enabled(), y * 1.0

    with batch():
        found = each(run, range(6))
    assert [y.requires_grad for _, y in found] == [True, False] * 3
    assert all(enabled for enabled, _ in found) and torch.is_grad_enabled()


def test_an_exception_of_an_instance_ends_all_and_the_block():
    closed, scale = [], nn.Parameter(torch.full((2,), 2.0))

    def run(number):
        try:
            x = torch.full((2,), float(number)) * scale
            if x.sum().item() == 8.0:
                raise KeyError(number)
            return x.sum().item()
        finally:
            closed.append(number)

    with pytest.raises(KeyError, match="2"):
        with batch():
            each(run, range(5))
    assert sorted(closed) == [0, 1, 2, 3, 4], "every instance leaves its blocks"
    assert each(run, [0, 1]) == [0.0, 4.0], "a later call is not affected"


def test_each_within_each_and_reads_outside():
    one = nn.Parameter(torch.ones(2))

    def inner(x):
        y = x + one
        return int(y.sum()) + int((y * 2).sum())

    def outer(n):
        parts = each(inner, [torch.ones(2) * k for k in range(n)])
        total = (torch.tensor(parts).float().sum() * one).mean()
        return int(total) + int((n * one).sum())

    expected = [sum(3 * 2 * (k + 1) for k in range(n)) + 2 * n for n in (1, 2, 3)]
    with batch():
        before = one * 2
        assert before.sum().item() == 4.0
        assert each(outer, [1, 2, 3]) == expected
    assert each(outer, []) == []


def test_results_without_reads_need_no_flush_of_their_own():
    one = nn.Parameter(torch.ones(2))
    with batch() as block:
        found = each(lambda k: one * k, range(4))
    assert [x.tolist() for x in found] == [[k, k] for k in range(4)]
    assert block.flushes == 1


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_unknown_calls_of_all_instances_are_one():
    torch.manual_seed(6)
    layer = nn.Linear(6, 6)

    def run(x):
        y = layer(x)
        y = torch.cummax(y, dim=-1).values + torch.cummax(y, 1)[0]
        assert y.sum().item() is not None
        return torch.renorm(layer(y), 2, 0, 0.5).tanh()

    data = [torch.randn(1, 6) for _ in range(9)]
    expected = torch.cat([run(x) for x in data])
    stacked = []
    original = torch.vmap
    torch.vmap = lambda call: (stacked.append(call), original(call))[1]
    try:
        with batch(unknown="eager") as block:
            found = torch.cat(each(run, data))
    finally:
        torch.vmap = original
    assert len(stacked) == 3, "three calls, each for nine instances"
    assert torch.allclose(found.detach(), expected, atol=1e-6)
    of_eager = torch.autograd.grad(expected.square().sum(), [layer.weight, layer.bias])
    of_block = torch.autograd.grad(found.square().sum(), [layer.weight, layer.bias])
    for a, b in zip(of_eager, of_block):
        assert torch.allclose(a, b, atol=1e-5)
    assert "torch computed cummax" in block.explain() and "18 times" in block.explain()


def test_an_unknown_call_that_differs_among_instances_is_called_by_each():
    def run(item):
        size, name = item
        x = torch.ones(1, size).cumsum(1) * 0.3
        x = getattr(x + torch.zeros(1, size), name)()
        return torch.frac(x).floor_().sum() + float(torch.trunc(x).sum())

    data = [(3, "frac"), (4, "frac"), (3, "ceil"), (3, "frac")]
    expected = [float(run(item)) for item in data]
    with batch(unknown="eager"):
        found = each(run, data)
    assert [float(x) for x in found] == expected


def test_a_read_inside_of_a_function_of_torch_suspends():
    torch.manual_seed(8)
    layer = nn.Linear(4, 4)

    def run(x):
        for _ in range(3):
            x = layer(x)
            # torch passes the call to the block, which reads the number.
            x = x / (2 if torch.allclose(x, x * 1.0) else 3)
        return x

    data = [torch.randn(1, 4) for _ in range(7)]
    expected = torch.cat([run(x) for x in data])
    with batch() as block:
        found = torch.cat(each(run, data))
    assert torch.allclose(found.detach(), expected, atol=1e-6)
    assert block.flushes <= 6

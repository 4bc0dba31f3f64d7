"""Modules that `batch()` records as one node: equal to eager, and traced again when what their code reads changes."""

import contextlib
import random
import threading
import types

import pytest

torch = pytest.importorskip("torch")
import torch.nn as nn  # noqa: E402

torch.set_num_threads(1)

from autobatch.torch import batch  # noqa: E402

SCALE = 1.0


class Cell(nn.Module):
    """A Tree-LSTM cell."""

    def __init__(self, width=8):
        super().__init__()
        self.left, self.right = nn.Linear(width, 5 * width), nn.Linear(width, 5 * width, bias=False)
        self.scale, self.sizes, self.calls = 1.0, [5], 0

    def forward(self, left, right):
        (left_h, left_c), (right_h, right_c) = left, right
        a, i, f1, f2, o = (self.left(left_h) + self.right(right_h)).chunk(self.sizes[0], 1)
        c = a.tanh() * i.sigmoid() + f1.sigmoid() * left_c + f2.sigmoid() * right_c
        return o.sigmoid() * c.tanh() * self.scale * SCALE, c


def fold(cell, leaves):
    states = [(leaf, torch.zeros_like(leaf)) for leaf in leaves]
    while len(states) > 1:
        states = [cell(states[0], states[1]), *states[2:]]
    return states[0][0].sum()


def drawn(count=12, width=8):
    torch.manual_seed(3)
    return [torch.randn(1, width) for _ in range(count)]


def close(found, expected):
    """Compares a result of a block with one of torch."""
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)


def losses(cell, leaves, before=lambda: None):
    """What three blocks compute, and how many ops each records."""
    made = []
    for _ in range(3):
        with batch(threads=1) as block:
            leaf = [leaf * 1.0 for leaf in leaves]
            before()
            loss = fold(cell, leaf)
        made.append((loss, block.ops))
    return made


def check(cell, leaves, before=lambda: None, fold=fold):
    made = losses(cell, leaves, before)
    before()
    cell.zero_grad()
    expected = fold(cell, leaves)
    expected.backward()
    gradients = [param.grad.clone() for param in cell.parameters()]
    for loss, _ in made:
        cell.zero_grad()
        loss.backward()
        close(loss, expected)
        for param, gradient in zip(cell.parameters(), gradients):
            torch.testing.assert_close(param.grad, gradient, rtol=1e-4, atol=1e-5)
    return [ops for _, ops in made]


def test_a_module_becomes_one_node():
    first, second, third = check(Cell(), drawn())
    # The first call has two leaves without gradients, so it comes once only and takes 18 ops. The others are one node each.
    assert first == 11 * 18 + 1 and second == third == 18 + 10 + 1, (first, second, third)


def test_modules_with_equal_code_keep_their_own_parameters():
    modules = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def all_of(leaves):
        return torch.cat([module(leaf) for leaf in leaves for module in modules]).square().sum()

    leaves = drawn()
    for _ in range(3):
        with batch(threads=1) as block:
            loss = all_of(leaves)
    assert block.ops == 3 * 12 + 3
    close(loss, all_of(leaves))


def test_attributes_and_globals_count():
    global SCALE
    cell = Cell()
    check(cell, drawn())
    other = nn.Linear(8, 40)
    for change in (
        lambda: setattr(cell, "scale", 0.5),
        lambda: cell.sizes.__setitem__(0, 5.0 and 5),
        lambda: globals().__setitem__("SCALE", 3.0),
        lambda: cell.left.weight.requires_grad_(False),
        lambda: setattr(cell, "right", other),
    ):
        cell.left.weight.requires_grad_(True)
        made = losses(cell, drawn(), change)
        change()
        for loss, _ in made[-1:] + made[:1]:
            close(loss, fold(cell, drawn()))
        if not cell.left.weight.requires_grad:
            cell.left.weight.grad = None
            made[-1][0].backward()
            assert cell.left.weight.grad is None
    SCALE = 1.0


def test_a_change_between_two_calls_counts():
    cell = Cell()
    check(cell, drawn())
    with batch(threads=1):
        made = []
        for scale in (1.0, 2.0, 3.0):
            cell.scale = scale
            made.append(fold(cell, [leaf * 1.0 for leaf in drawn()]))
    for scale, loss in zip((1.0, 2.0, 3.0), made):
        cell.scale = scale
        close(loss, fold(cell, drawn()))


def test_variables_around_a_class_and_attributes_of_it_count():
    scale = 1.0

    class Scaled(nn.Linear):
        shift = 0.0

        def forward(self, x):
            return super().forward(x) * scale + self.shift

    module, leaves = Scaled(8, 8), drawn()
    for _ in range(3):
        with batch(threads=1):
            scale, Scaled.shift = 1.0, 0.0
            made = [module(leaf) for leaf in leaves]
            scale = 2.0
            made.append(module(leaves[0]))
            Scaled.shift = 5.0
            made.append(module(leaves[0]))
        plain = nn.Linear.forward(module, leaves[0])
        for found, expected in ((made[0], plain), (made[-2], plain * 2), (made[-1], plain * 2 + 5)):
            close(found, expected)


def test_one_long_block_traces_too():
    cell, leaf = Cell(), [torch.randn(1, 8, requires_grad=True) for _ in range(4)]

    def loss_of():
        return sum(cell((a, b), (c, d))[0].sum() for _ in range(180) for a, b, c, d in (leaf, leaf[::-1], leaf)).square()

    expected = loss_of()
    gradients = torch.autograd.grad(expected, [*cell.parameters(), *leaf])
    with batch(threads=1) as block:
        loss = loss_of()
    assert block.flushes == 2 and block.ops < 540 * 22
    torch.testing.assert_close(loss.cpu(), expected, rtol=1e-4, atol=1e-4)
    for found, other in zip(torch.autograd.grad(loss.cpu(), [*cell.parameters(), *leaf]), gradients):
        torch.testing.assert_close(found, other, rtol=1e-3, atol=1e-3 * float(other.abs().max()))


class Same(nn.Linear):
    def forward(self, x, y):
        return super().forward(x) * (3.0 if x is y else 1.0) + y


def test_one_object_as_two_arguments():
    module, leaves = Same(8, 8), drawn()
    for _ in range(3):
        with batch(threads=1):
            made = [module(leaves[0], leaf) for leaf in leaves]
    for found, leaf in zip(made, leaves):
        close(found, module(leaves[0], leaf))


def test_each_with_modules_that_read():
    each = pytest.importorskip("autobatch.torch").each
    pytest.importorskip("greenlet")
    module = Reading()

    def run(leaf):
        h, c = module((leaf, leaf * 2), (leaf + 1, leaf))
        return h if h.sum().item() > 0 else c

    leaves = drawn(20)
    for _ in range(3):
        made = each(run, leaves, threads=1)
    for found, leaf in zip(made, leaves):
        close(found, run(leaf))


def test_a_change_before_another_pattern_is_traced_counts():
    class Scaled(nn.Linear):
        scale = 1.0

        def forward(self, x):
            return super().forward(x) * self.scale

    module, narrow, wide = Scaled(8, 8), drawn(), [leaf.reshape(8) for leaf in drawn()]
    for leaves, scale in ((narrow, 1.0), (narrow, 1.0), (wide, 2.0), (wide, 2.0), (narrow, 2.0), (wide, 2.0)):
        module.scale = scale
        with batch(threads=1):
            made = [module(leaf) for leaf in leaves]
        close(made[-1], nn.Linear.forward(module, leaves[-1]) * scale)


class Counting(Cell):
    def forward(self, left, right):
        self.calls += 1
        return super().forward(left, right)


class Listing(Cell):
    def forward(self, left, right):
        self.sizes.append(len(self.sizes))
        return super().forward(left, right)


class Printing(Cell):
    def forward(self, left, right):
        print("called")
        return super().forward(left, right)


class Reading(Cell):
    def forward(self, left, right):
        h, c = super().forward(left, right)
        return (h, c) if h.sum().item() > 0 else (h * 2, c)


class Returning(Cell):
    def forward(self, left, right):
        return super().forward(left, right)[0], left[1]


class Changing(Cell):
    def forward(self, left, right):
        left[0].add_(1.0)
        return super().forward(left, right)


class Buffered(Cell):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.arange(8.0))

    def forward(self, left, right):
        h, c = super().forward(left, right)
        return h + self.shift, c


@pytest.mark.parametrize("kind", [Counting, Listing, Printing, Reading, Returning, Buffered])
def test_code_with_effects_is_recorded_op_by_op(kind):
    cell = kind()
    ops = check(cell, drawn())
    assert ops[0] == ops[2] > 100, ops
    # A trace that was refused leaves nothing behind: three blocks and eager torch call it eleven times each.
    assert cell.calls == (4 * 11 if kind is Counting else 0) and len(cell.sizes) == (1 + 4 * 11 if kind is Listing else 1)


def test_an_argument_that_is_changed_in_place():
    cell = Changing()
    for _ in range(3):
        with batch(threads=1):
            loss = fold(cell, [leaf * 1.0 for leaf in drawn()])
    close(loss, fold(cell, [leaf * 1.0 for leaf in drawn()]))


def test_noise_is_drawn_at_every_call():
    cell = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5))
    for _ in range(3):
        with batch(threads=1):
            leaves = [leaf * 1.0 for leaf in drawn(12, 4)]
            made = [cell(leaves[0]) for _ in range(12)]
    assert any(not torch.equal(made[0].cpu(), other.cpu()) for other in made[1:])
    cell.eval()
    for _ in range(2):
        with batch(threads=1):
            leaves = [leaf * 1.0 for leaf in drawn(12, 4)]
            made = [cell(leaves[0]) for _ in range(12)]
    close(made[5], cell(drawn(12, 4)[0]))


def test_hooks_are_called():
    cell, calls = Cell(), []
    check(cell, drawn())
    handle = cell.left.register_forward_hook(lambda *_: calls.append(1))
    losses(cell, drawn())
    assert len(calls) == 3 * 11
    handle.remove()


def test_no_grad_and_words():
    class Named(Cell):
        def forward(self, left, right, *, kind="tanh", scale=1.0):
            h, c = super().forward(left, right)
            return (h.tanh() if kind == "tanh" else h.relu()) * scale, c

    cell = Named()
    for _ in range(3):
        with batch(threads=1):
            leaf = [leaf * 1.0 for leaf in drawn()]
            with torch.no_grad():
                still = [cell((leaf[0], leaf[1]), (leaf[2], leaf[3]), kind=kind, scale=2.0)[0] for kind in ("tanh", "relu") * 9]
            moving = [cell((leaf[0], leaf[1]), (leaf[2], leaf[3]), scale=scale)[0] for scale in (1.0, 3.0) * 9]
    leaf = drawn()
    args = (leaf[0], leaf[1]), (leaf[2], leaf[3])
    close(still[17], cell(*args, kind="relu", scale=2.0)[0])
    close(moving[17], cell(*args, scale=3.0)[0])
    assert not still[17].requires_grad and moving[17].requires_grad


def test_gradients_stop_where_no_grad_was():
    linear, weight = nn.Linear(4, 4), nn.Parameter(torch.ones(4))
    with batch(threads=1):
        x = torch.ones(1, 4) * 1.0
        with torch.no_grad():
            still = linear(x * weight.detach()).tanh().sigmoid()
        loss = (still * weight).sum()
    loss.backward()
    assert weight.grad is not None and linear.weight.grad is None


def test_a_block_explains_itself():
    cell, buffered = Cell(), Buffered()
    for _ in range(2):
        with batch(threads=1, unknown="eager") as block:
            leaves = [leaf * 1.0 for leaf in drawn()]
            loss = fold(cell, leaves) + fold(buffered, leaves)
            print(torch.erfinv(loss.tanh()))
    lines = block.explain().splitlines()
    assert lines[0].startswith("flush 1: ") and " batches, of which " in lines[0], lines
    assert "Cell: one node (1 cell)" in lines
    assert any(line.startswith("Buffered: op by op, because Buffered has buffers") for line in lines), lines
    assert any(line.startswith("torch computed erfinv at File ") and line.endswith(" 1 time: the engine has no counterpart of this op") for line in lines), lines
    assert block._repr_html_().startswith("<pre>flush 1: ")
    with batch() as block:
        assert block.explain() == "nothing was computed"


def test_sequences_of_unequal_lengths_repeat_a_template_and_batch_row_by_row():
    class Block(nn.Module):
        def __init__(self, width=6):
            super().__init__()
            self.layer, self.norm, self.scale = nn.Linear(width, width), nn.LayerNorm(width), nn.Parameter(torch.randn(width))
            self.attention, self.gain = nn.MultiheadAttention(width, 2), 1.0

        def forward(self, x, mask=None):
            y = self.norm(x + self.attention(x, x, x, need_weights=False)[0]) * self.scale
            return torch.tanh(self.layer(y)) * self.gain + torch.arange(len(x)).float()[:, None], y.mean(0)

    torch.manual_seed(5)
    module, first = Block(), nn.Linear(4, 6)
    data = [torch.randn(1 + k % 5, 4) for k in range(60)]

    def run(x):
        y, mean = module(first(x))
        y, other = module(y)
        return torch.cat([y.sum(0), mean, other])

    flushes = []
    for step in range(4):
        if step == 2:
            module.gain = 0.5
        found = []
        for record in (False, True):
            module.zero_grad()
            first.zero_grad()
            with batch(threads=1) if record else contextlib.nullcontext() as block:
                total = torch.stack([run(x) for x in data]).square().mean()
            total.backward()
            found.append([total.detach().clone(), *(p.grad.clone() for p in (*module.parameters(), *first.parameters()))])
        for expected, made in zip(*found):
            assert torch.allclose(expected, made, atol=1e-5 * max(1.0, float(expected.abs().max())))
        flushes.append((block.ops, block.explain().splitlines()[0]))
    assert flushes[1][0] < flushes[0][0] / 3, "a call is one op"
    # Traces of all lengths batch together, as op by op.
    assert "Block: one node (" in block.explain()


def test_modules_within_one_that_becomes_a_node_are_not_traced():
    torch.manual_seed(6)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    for _ in range(3):
        with batch(threads=1) as block:
            made = [model(torch.randn(1, 3)) for _ in range(9)]
    assert len(made) == 9 and block.ops == 9
    assert [line for line in block.explain().splitlines() if ": one node" in line] == ["Sequential: one node (1 cell)"]
    # A module that cannot be one lets those within it be nodes.
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    for _ in range(4):
        with batch(threads=1) as block:
            made = [model(torch.randn(1, 3)) for _ in range(9)]
    shown = block.explain()
    assert "Sequential: op by op, because" in shown and shown.count("Linear: one node (1 cell)") == 2


def test_a_module_over_indices_of_a_sentence_is_one_node():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places, self.out = nn.Embedding(20, 5, padding_idx=0), nn.Embedding(9, 5), nn.Linear(5, 3)

        def forward(self, words):
            return self.out(torch.tanh(self.words(words) + self.places(torch.arange(len(words)))))

    torch.manual_seed(7)
    model, data = Tagger(), [torch.randint(20, (1 + k % 6,)) for k in range(36)]
    for _ in range(4):
        found = []
        for record in (False, True):
            model.zero_grad()
            with batch(threads=1) if record else contextlib.nullcontext() as block:
                total = sum(model(words).square().sum() for words in data)
            total.backward()
            found.append([total.detach().clone(), *(param.grad.clone() for param in model.parameters())])
        for expected, made in zip(*found):
            assert torch.allclose(expected, made, rtol=1e-4, atol=1e-4)
    assert "Tagger: one node (6 cells)" in block.explain()
    # A length that comes for the first time is recorded op by op, beside the others.
    words = torch.randint(20, (8,))
    with batch(threads=1):
        made = [model(one) for one in [*data, words]]
    assert torch.allclose(made[-1].detach(), model(words).detach(), atol=1e-5)


def test_what_changes_at_every_call_is_called_at_every_call():
    import os
    import time
    import uuid

    import numpy as np

    class Changing(nn.Module):
        def __init__(self, call):
            super().__init__()
            self.layer, self.call, self.draw, self.array = nn.Linear(3, 3), call, random.Random(1), np.random.default_rng(1)

    class OfModule(Changing):
        def forward(self, x):
            return self.layer(x) * (1 + self.call(self))

    class OfNumpy(Changing):
        def forward(self, x):
            return self.layer(x) * np.random.rand()

    class OfOs(Changing):
        def forward(self, x):
            return self.layer(x) * int.from_bytes(os.urandom(4), "little")

    class OfRandom(Changing):
        def forward(self, x):
            return self.layer(x) * self.draw.random()

    class OfGenerator(Changing):
        def forward(self, x):
            return self.layer(x) * self.array.random()

    calls = [lambda self: self.draw.random(), lambda self: time.perf_counter_ns() % 9973, lambda self: uuid.uuid4().int % 1000, lambda self: np.random.rand()]
    x = torch.ones(1, 3)
    for model in (*(OfModule(call) for call in calls), *(kind(None) for kind in (OfNumpy, OfOs, OfRandom, OfGenerator))):
        found = set()
        for _ in range(3):
            with batch(threads=1), torch.no_grad():
                made = [model(x) for _ in range(9)]
            found |= {float(one[0, 0]) for one in made}
        assert len(found) >= 20, type(model).__name__


def test_threads_share_the_guards_of_a_module():
    model, x, ops = Cell(), torch.randn(1, 8), {}

    def run(number):
        for _ in range(8):
            with batch(threads=1) as block:
                made = [model((x, x * 2), (x + 1, x * 3)) for _ in range(12)]
            ops[number] = block.ops, len(made)

    threads = [threading.Thread(target=run, args=[number]) for number in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    threads = [threading.Thread(target=run, args=[number]) for number in range(3, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(own == (12, 12) for own in ops.values()), ops


GAIN, CONFIG = 1.0, types.ModuleType("config")
CONFIG.SCALE = 1.0


class Helper:
    """A plain object whose methods a module calls."""

    def __init__(self):
        self.by = 1.0

    def scaled(self, x):
        return x * self.by * GAIN


def gained(x):
    return x * GAIN


class Gained(nn.Module):
    gain = 1.0

    def forward(self, x):
        return x * self.gain


OUTSIDE = Gained()


class ReadsElsewhere(nn.Module):
    """Calls `call`, which reads what lies elsewhere."""

    def __init__(self, call):
        super().__init__()
        self.layer, self.call, self.helper, self.calls = nn.Linear(3, 3), call, Helper(), [gained]

    def forward(self, x):
        return self.call(self, self.layer(x))


def set_gain(model):
    global GAIN
    GAIN = 3.0


ELSEWHERE = {
    "a number of a module of Python": (lambda self, x: x * CONFIG.SCALE, lambda model: setattr(CONFIG, "SCALE", 3.0)),
    "an attribute of a helper": (lambda self, x: self.helper.scaled(x), lambda model: setattr(model.helper, "by", 3.0)),
    "a global that a helper reads": (lambda self, x: self.helper.scaled(x), set_gain),
    "a global that a function of a list reads": (lambda self, x: self.calls[0](x), set_gain),
    "another function in a list": (lambda self, x: self.calls[0](x), lambda model: model.calls.__setitem__(0, lambda x: x * 3.0)),
    "a module that is no child": (lambda self, x: OUTSIDE(x), lambda model: setattr(OUTSIDE, "gain", 3.0)),
    "a method of the class of a helper": (
        lambda self, x: self.helper.scaled(x), lambda model: setattr(Helper, "scaled", lambda self, x: x * 3.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_change_of_what_code_reads_elsewhere_takes_effect(name, monkeypatch):
    for owner, attribute in ((CONFIG, "SCALE"), (OUTSIDE, "gain"), (Helper, "scaled")):
        monkeypatch.setattr(owner, attribute, getattr(owner, attribute))
    monkeypatch.setitem(globals(), "GAIN", 1.0)
    call, edit = ELSEWHERE[name]
    model, x = ReadsElsewhere(call), torch.ones(1, 3)
    for step in range(5):
        if step == 3:
            edit(model)
        with batch(threads=1), torch.no_grad():
            made = [model(x) for _ in range(9)]
        expected = model.layer(x).detach() * (3.0 if step >= 3 else 1.0)
        assert all(torch.allclose(one.detach(), expected, atol=1e-6) for one in made), step

"""`autobatch.torch`: outputs and gradients of folds equal those of torch, one instance at a time."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch runs these tests")

from autobatch.torch import CaptureError, Fold  # noqa: E402

from torch import nn  # noqa: E402


class Spinn(nn.Module):
    """A stack of a tracker and a composition, over binary trees."""

    def __init__(self, width=8, words=20):
        super().__init__()
        self.width = width
        self.words = nn.Embedding(words, width)
        self.left, self.right = nn.Linear(width, 5 * width), nn.Linear(width, 5 * width, bias=False)
        self.tracker = nn.LSTMCell(3 * width, width)
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(0.5)
        self.out = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))

    def leaf(self, word):
        return self.words(word), torch.zeros(word.size(0), self.width)

    def start(self, word):
        zeros = torch.zeros_like(self.words(word))
        return zeros, zeros

    def track(self, h, c, buffer, stack):
        return self.tracker(torch.cat([buffer, stack, h], 1), (h, c))

    def reduce(self, lh, lc, rh, rc, tracked):
        a, i, f1, f2, o = (self.left(lh) + self.right(rh) + self.left(tracked)).chunk(5, 1)
        c = a.tanh() * i.sigmoid() + f1.sigmoid() * lc + f2.sigmoid() * rc
        return torch.sigmoid(o) * c.tanh(), c

    def logits(self, h):
        return self.out(self.drop(self.norm(h)))


TREES = [3, (1, (4, 1)), ((5, 9), (2, 6)), (5, 3), (((1, 2), 3), (4, (5, 6)))]
LABELS = torch.tensor([0, 2, 1, 1, 0])


def encode(call, tree):
    """Encodes a tree; `call(op, results, *args)` computes or records a call of a method."""
    tracker = call("start", 2, 0)

    def visit(node):
        nonlocal tracker
        if isinstance(node, int):
            return call("leaf", 2, node)
        left, right = visit(node[0]), visit(node[1])
        tracker = call("track", 2, *tracker, left[0], right[0])
        return call("reduce", 2, *left, *right, tracker[0])

    return call("logits", 1, visit(tree)[0])


def unbatched(model, trees):
    def call(op, _, *args):
        return getattr(model, op)(*(torch.tensor([arg]) if isinstance(arg, int) else arg for arg in args))

    return torch.cat([encode(call, tree) for tree in trees])


def folded(model, trees, **options):
    fold = Fold(**options)

    def call(op, results, *args):
        node = fold.add(op, *args)
        return node.split(results) if results > 1 else node

    return fold.apply(model, [[encode(call, tree) for tree in trees]])[0]


def gradients(model):
    return {name: param.grad for name, param in model.named_parameters()}


@pytest.mark.parametrize("fallback", [False, True])
def test_outputs_and_gradients_equal_those_of_torch(fallback):
    torch.manual_seed(1)
    model = Spinn().eval()
    other = copy.deepcopy(model)
    expected, found = unbatched(model, TREES), folded(other, TREES, fallback=fallback)
    assert torch.allclose(expected, found, atol=1e-5)
    for scores in (expected, found):
        nn.functional.cross_entropy(scores, LABELS).backward()
    theirs = gradients(model)
    for name, gradient in gradients(other).items():
        assert torch.allclose(theirs[name], gradient, atol=1e-5), name


def test_training_follows_torch():
    torch.manual_seed(2)
    model = Spinn().eval()
    other = copy.deepcopy(model)
    losses = []
    for own, scores in ((model, unbatched), (other, folded)):
        optimizer, curve = torch.optim.Adam(own.parameters(), lr=1e-2), []
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(scores(own, TREES), LABELS)
            loss.backward()
            optimizer.step()
            curve.append(loss.item())
        losses.append(curve)
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    assert losses[0][-1] < losses[0][0]


def test_tensors_get_gradients_and_two_folds_may_wait():
    class Mix(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 2))

        def mix(self, x, y):
            return (x * y[:, :3]) @ self.weight, torch.softmax(x, dim=1).sum(1, keepdim=True)

    model = Mix()
    x = torch.randn(1, 3, requires_grad=True)
    y = torch.randn(1, 4, requires_grad=True)
    results = []
    for _ in range(2):
        fold = Fold()
        product, total = fold.add("mix", x, y).split(2)
        results.append(fold.apply(model, [[product, product], [total]]))
    loss = (results[0][0] ** 2).sum() + 3 * results[1][0].sum() + results[0][1].sum()
    found = torch.autograd.grad(loss, [x, y, model.weight])
    product, total = model.mix(x, y)
    expected = torch.autograd.grad(2 * (product**2).sum() + 6 * product.sum() + total.sum(), [x, y, model.weight])
    for a, b in zip(expected, found):
        assert torch.allclose(a, b, atol=1e-5)


def test_an_op_that_cannot_be_captured_is_an_error_with_its_line():
    class Odd(nn.Module):
        def odd(self, x):
            return torch.cumsum(x, 1)

    def apply(**options):
        fold = Fold(**options)
        return fold.apply(Odd(), [[fold.add("odd", torch.ones(1, 3))]])[0]

    with pytest.raises(CaptureError, match=r"Odd\.odd: cumsum at .*test_torch\.py.*cannot be captured.*fallback=True"):
        apply()
    assert apply(fallback=True).tolist() == [[1.0, 2.0, 3.0]]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda fold, node: fold.add("leaf", 1.5), "pass a node, an int or a tensor"),
        (lambda fold, node: fold.add("leaf", torch.ones(2, 3)), "its first extent must be 1"),
        (lambda fold, node: fold.apply(Spinn(), [[3]]), "apply computes nodes"),
        (lambda fold, node: Fold().apply(Spinn(), [[node]]), "belongs to another fold"),
        (lambda fold, node: fold.apply(Spinn(), [[fold.add("none", 3)]]), "has no method 'none'"),
        (lambda fold, node: fold.apply(Spinn(), [[fold.add("logits", node)]]), "name one with split"),
        (
            lambda fold, node: fold.apply(Spinn(), [[fold.add("logits", node.split(2)[0])]]),
            r"Dropout \(drop\).*call model.eval",
        ),
    ],
)
def test_wrong_use_is_an_error_with_a_remedy(wrong, says):
    fold = Fold()
    with pytest.raises((TypeError, ValueError, CaptureError), match=says):
        wrong(fold, fold.add("leaf", 1))


def test_values_without_gradients():
    model = Spinn().eval()
    with torch.inference_mode():
        assert torch.allclose(unbatched(model, TREES), folded(model, TREES), atol=1e-5)


def test_a_second_backward_is_an_error():
    model = Spinn().eval()
    loss = folded(model, TREES).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(Exception, match="call forward again"):
        loss.backward()


# Nothing that changes between two folds is missed, and what cannot be noticed is refused.


class Layers(nn.Module):
    """Two layers whose behaviour depends on attributes."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.act, self.norm, self.drop = nn.LeakyReLU(0.1), nn.LayerNorm(3), nn.Dropout(0.5)
        self.shift = nn.Parameter(torch.randn(1, 3))
        self.tau, self.use = 1.0, True

    def run(self, x):
        y = self.act(self.first(x)) * self.tau
        y = y + self.shift if self.use else y
        return self.second(self.drop(self.norm(y)))


X = torch.tensor([[0.3, -1.2, 0.8]])


def fold_once(model, *args, method="run", **options):
    fold = Fold(**options)
    return fold.apply(model, [[fold.add(method, *(args or (X,)))]])[0]


def share_bias(model):
    model.second.bias = model.first.bias


def replace_activation(model):
    model.act = nn.Tanh()


def set_slope(model):
    model.act.negative_slope = 0.7


def detached_array(model):
    model.first.weight.detach().numpy()[0] = 2.0


EDITS = {
    "data in place": lambda model: model.first.weight.data.mul_(3),
    "data replaced": lambda model: setattr(model.first.weight, "data", torch.ones(3, 3)),
    "memory of an array": detached_array,
    "a shared bias": share_bias,
    "another activation": replace_activation,
    "an argument of a layer": set_slope,
    "eps": lambda model: setattr(model.norm, "eps", 0.5),
    "a number": lambda model: setattr(model, "tau", 0.25),
    "a flag": lambda model: setattr(model, "use", False),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_between_folds_takes_effect(edit):
    torch.manual_seed(3)
    model = Layers().eval()
    assert torch.allclose(fold_once(model), model.run(X), atol=1e-6)
    before = fold_once(model)
    EDITS[edit](model)
    expected = model.run(X)
    assert not torch.allclose(before, expected, atol=1e-4), "the edit changes the result"
    assert torch.allclose(fold_once(model), expected, atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda params: torch.optim.Adam(params, 0.05, fused=True),
        lambda params: torch.optim.SGD(params, 0.1, foreach=True),
        lambda params: torch.optim.AdamW(params, 0.05, weight_decay=0.5),
    ],
)
def test_every_optimizer_trains_as_in_torch(make):
    torch.manual_seed(4)
    one = Layers().eval()
    one.unused = nn.Linear(2, 2)
    other = copy.deepcopy(one)
    weights = []
    for model, scores in ((one, lambda: one.run(X)), (other, lambda: fold_once(other))):
        optimizer = make(list(model.parameters()))
        for _ in range(4):
            optimizer.zero_grad()
            scores().square().sum().backward()
            optimizer.step()
        weights.append(list(model.parameters()))
    assert other.unused.weight.grad is None, "nothing depends on it, so no optimiser may decay it"
    for a, b in zip(*weights):
        assert torch.allclose(a, b, atol=1e-4)


def test_parameters_with_two_names_and_padding_get_the_gradients_of_torch():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(5, 3, padding_idx=1)
            self.norm, self.again = nn.LayerNorm(3), nn.LayerNorm(3)
            self.again.weight = self.norm.weight
            self.out = nn.Linear(3, 5, bias=False)
            self.out.weight = self.words.weight

        def run(self, word):
            return self.out(self.again(self.norm(self.words(word)).tanh()))

    torch.manual_seed(5)
    one = Tied()
    other = copy.deepcopy(one)
    fold = Fold()
    found = fold.apply(other, [[fold.add("run", word) for word in (1, 3)]])[0]
    expected = one.run(torch.tensor([1, 3]))
    assert torch.allclose(expected, found, atol=1e-6)
    for scores in (expected, found):
        nn.functional.cross_entropy(scores, torch.tensor([0, 2])).backward()
    theirs = gradients(other)
    for name, gradient in gradients(one).items():
        assert torch.allclose(gradient, theirs[name], atol=1e-6), name


def refused(method, says, *args, model=None):
    model = model or Layers().eval()
    with pytest.raises(CaptureError, match=says):
        fold_once(model, *(args or (X,)), method=method)


def test_in_place_ops_whose_old_value_is_read_are_refused():
    class InPlace(Layers):
        def relu(self, x):
            y = self.first(x)
            nn.functional.relu(y, inplace=True)
            return y

        def add(self, x):
            y = self.first(x)
            z = y
            z += x
            return y * z

        def argument(self, x):
            x += 1.0
            return self.first(x)

        def view(self, x):
            y = self.first(x)
            head = y[:, :2]
            y *= 2.0
            return head

        def fine(self, x):
            y = nn.functional.relu(self.first(x), inplace=True)
            y += x
            return y

    model = InPlace().eval()
    for method in ("relu", "add", "view"):
        refused(method, "a value that is read later in place", model=model)
    refused("argument", "changes an argument or parameter in place", model=model)
    assert torch.allclose(fold_once(model, method="fine"), model.fine(X), atol=1e-6)
    assert torch.allclose(fold_once(model, method="relu", fallback=True), model.relu(X), atol=1e-6)


def test_what_a_fold_cannot_notice_is_refused():
    import datetime
    import os
    import random
    import secrets
    import time
    import uuid

    import numpy as np

    class Noisy(Layers):
        def run(self, x):
            return self.first(x) * random.random()

    refused("run", "module random.*evaluated once", model=Noisy())

    class Unique(Layers):
        def run(self, x):
            return self.first(x) * len(os.urandom(2))

    refused("run", "module os.*evaluated once", model=Unique())
    for call in (random.random, random.randint, time.time, secrets.randbelow, np.random.rand, uuid.uuid4, os.urandom, datetime.datetime.now):

        class Named(Layers):
            def run(self, x):
                return call and self.first(x)

        refused("run", "'call' .*evaluated once", model=Named())

    class Drawn(Layers):
        def run(self, x):
            return self.first(x) * float(torch.rand(()))

    refused("run", "draws random numbers of torch", model=Drawn())
    model = Layers().eval()
    model.act.register_forward_hook(lambda module, args, result: result * 2)
    refused("run", r"LeakyReLU \(act\) has hooks", model=model)
    assert torch.allclose(fold_once(model, fallback=True), model.run(X), atol=1e-6)
    refused("run", "torch.float64, and the engine computes in float32", X.double())
    refused("run", "it takes 1 arguments, and the call has 2", X, X)
    model = Layers().eval()
    model.drop.train()
    refused("run", "dropout draws torch's noise", model=model)


def test_softplus_and_parameters_of_any_shape_follow_torch():
    class Shapes(nn.Module):
        def __init__(self):
            super().__init__()
            self.soft, self.sharp = nn.Softplus(beta=2), nn.Softplus(beta=0.5, threshold=0.5)
            self.row, self.number = nn.Parameter(torch.randn(1, 3)), nn.Parameter(torch.tensor(0.7))

        def run(self, x):
            return self.soft(x + self.row) * self.number - self.sharp(x) / (self.row * 2.0).exp()

        def default(self, x, scale=2.0):
            return x * scale

    torch.manual_seed(6)
    model = Shapes()
    found = fold_once(model)
    assert found.shape == (1, 3) and torch.allclose(found, model.run(X), atol=1e-6)
    assert torch.allclose(fold_once(model, method="default"), 2 * X)

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

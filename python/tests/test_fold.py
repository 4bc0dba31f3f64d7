"""`autobatch.torch.Fold`: outputs and gradients of folds equal those of torch, one instance at a time."""

import copy
import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install torch runs these tests")

from autobatch import RecordError  # noqa: E402
from autobatch.torch import Fold  # noqa: E402

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


class Odd(nn.Module):
    """One method that the engine knows, and one that only torch can compute."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def known(self, x):
        return self.layer(x).tanh()

    def odd(self, x, shift):
        assert x.size(0) == shift.size(0)
        return torch.cummax(self.layer(x) + shift, 1).values, x.size(0) * torch.ones(x.size(0))


def odd_program(call):
    shift = call("known", torch.ones(1, 3))
    outs = []
    for k in range(3):
        x = call("known", torch.full((1, 3), 0.3 * k))
        x, size = call("odd", call("known", x), shift)
        outs.append((call("known", x), size))
    return outs


def test_an_op_that_cannot_be_recorded_is_an_error_with_its_line():
    fold = Fold()
    with pytest.raises(RecordError, match=r"cummax at .*test_fold\.py.*cannot be recorded.*fallback=True"):
        fold.apply(Odd(), [[fold.add("odd", X, X).split(2)[0]]])


def test_with_fallback_torch_computes_that_method_on_stacked_tensors():
    torch.manual_seed(7)
    model = Odd()
    fold = Fold(fallback=True)

    def call(op, *args):
        node = fold.add(op, *args)
        return node.split(2) if op == "odd" else node

    outs = odd_program(call)
    found, sizes = fold.apply(model, [[x for x, _ in outs], [size for _, size in outs]])
    assert sizes.tolist() == [3.0, 3.0, 3.0], "three calls are one"
    expected = torch.cat([x for x, _ in odd_program(lambda op, *args: getattr(model, op)(*args))])
    assert torch.allclose(found, expected, atol=1e-6)
    for a, b in zip(*(torch.autograd.grad(x.square().sum(), model.parameters()) for x in (found, expected))):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda fold, node: fold.add("leaf", 1.5), "pass a node, an int or a tensor"),
        (lambda fold, node: fold.add("leaf", torch.ones(2, 3)), "its first extent must be 1"),
        (lambda fold, node: fold.apply(Spinn(), [[3]]), "apply computes nodes"),
        (lambda fold, node: Fold().apply(Spinn(), [[node]]), "belongs to another fold"),
        (lambda fold, node: fold.apply(Spinn(), [[fold.add("none", 3)]]), "has no method 'none'"),
        (lambda fold, node: fold.apply(Spinn(), [[fold.add("logits", node)]]), "name one with split"),
        (lambda fold, node: fold.apply(Spinn(), [[node.split(3)[2]]]), "a result that leaf does not return"),
    ],
)
def test_wrong_use_is_an_error_with_a_remedy(wrong, says):
    fold = Fold()
    with pytest.raises((TypeError, ValueError, AttributeError), match=says):
        wrong(fold, fold.add("leaf", 1))


def test_values_without_gradients():
    model = Spinn().eval()
    with torch.inference_mode():
        assert torch.allclose(unbatched(model, TREES), folded(model, TREES), atol=1e-5)


def test_a_second_backward_adds_the_same_gradients():
    model = Spinn().eval()
    loss = folded(model, TREES).sum()
    loss.backward(retain_graph=True)
    once = {name: gradient.clone() for name, gradient in gradients(model).items() if gradient is not None}
    loss.backward()
    for name, gradient in once.items():
        assert torch.allclose(2 * gradient, gradients(model)[name]), name


# Nothing that changes between two folds is missed. The third fold records nodes, so edits come before and after it.


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
    for _ in range(12):
        before = fold_once(model)
    assert torch.allclose(before, model.run(X), atol=1e-6)
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


def test_in_place_ops_do_what_they_do_in_torch():
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

        def fine(self, x):
            y = nn.functional.relu(self.first(x), inplace=True)
            y += x
            return y

    model = InPlace().eval()
    for method in ("relu", "add", "fine"):
        for _ in range(12):
            assert torch.allclose(fold_once(model, method=method), getattr(model, method)(X), atol=1e-6), method


def test_hooks_and_noise_act_at_every_call():
    class Noisy(Layers):
        def run(self, x):
            return self.first(x) * random.random() + self.drop(x) * float(torch.rand(()))

    for model in (Noisy(), Layers(), Layers().eval()):
        hook = model.act.register_forward_hook(lambda module, args, result: result * 2 * random.random())
        for step in range(12):
            made = []
            for run in (model.run, lambda x: fold_once(model)):
                torch.manual_seed(step)
                random.seed(step)
                made.append(run(X))
            assert torch.allclose(*made, atol=1e-6)
        hook.remove()


def test_calls_follow_the_signature_of_the_method():
    class Shapes(Layers):
        def many(self, *words, scale=2.0):
            return sum(words).float() * scale

        def picks(self, x, index):
            return x.gather(1, index.view(1, 1))

    model = Shapes().eval()
    for _ in range(12):
        assert fold_once(model, 3, 4, torch.tensor([1]), method="many").item() == 16.0
        assert fold_once(model, X, torch.tensor([2]), method="picks").item() == X[0, 2].item()
    with pytest.raises(TypeError, match="positional argument"):
        fold_once(model, X, X)


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

"""Compares `autobatch.torch.Fold` with eager torch on drawn modules and on edits between steps.

    python python/tests/differential_fold.py --cases 10000 --seed 1

Each case draws a module: layers, activations with their arguments, shared and tied parameters, flags that `forward` reads,
in-place ops. It trains the module eagerly and a copy by folds for five steps, and edits both alike between steps: values
through `.data`, attributes, children, training flags, hooks, fused optimisers. Losses, gradients (also their absence) and
weights must agree after every step. A `RecordError` is counted by its reason, and the same case then runs with
`fallback=True`, which must agree too.
"""

import argparse
import collections
import copy
import random
import sys

import torch
from torch import nn
from torch.nn import functional as F

from autobatch import RecordError
from autobatch.torch import Fold

WIDTH, WORDS, CLASSES = 4, 7, 3
SCALE = 0.5


class Invalid(Exception):
    """Eager torch refuses the drawn module, or its numbers overflow."""


class Shift:
    """A plain object whose number `forward` reads."""

    def __init__(self, by):
        self.by = by


def activation(rng):
    return rng.choice([
        nn.Tanh, nn.Sigmoid, nn.ReLU, nn.SiLU, nn.GELU, nn.Identity,
        lambda: nn.ReLU(inplace=True),
        lambda: nn.LeakyReLU(rng.choice([0.01, 0.3])),
        lambda: nn.ELU(rng.choice([1.0, 0.5])),
        lambda: nn.Softplus(rng.choice([1, 2, 0.5]), rng.choice([20, 1, 3])),
        lambda: nn.Dropout(rng.choice([0.0, 0.5])),
    ])()


class Drawn(nn.Module):
    """A module over binary trees whose parts are drawn."""

    def __init__(self, rng):
        super().__init__()
        padding = rng.choice([None, None, 1])
        self.words = nn.Embedding(WORDS, WIDTH, padding_idx=padding)
        self.left, self.right = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=rng.random() < 0.7)
        self.act = activation(rng)
        # With a small eps the gradient through a row of equal numbers is rounding error alone.
        self.norm = nn.LayerNorm(WIDTH, eps=0.1) if rng.random() < 0.5 else nn.Identity()
        self.out = nn.Sequential(nn.Linear(WIDTH, WIDTH), activation(rng), nn.Linear(WIDTH, CLASSES))
        self.gate = nn.GRUCell(WIDTH, WIDTH) if rng.random() < 0.3 else None
        self.unused = nn.Linear(2, 2)
        self.shift = nn.Parameter(torch.randn(rng.choice([(WIDTH,), (1, WIDTH), (1,), ()])))
        self.tau, self.use, self.cfg = rng.choice([1.0, 0.5]), rng.random() < 0.5, Shift(0.25)
        self.form = rng.randrange(9)
        if rng.random() < 0.3:
            self.right.weight = self.left.weight
        if rng.random() < 0.3 and self.right.bias is not None:
            self.right.bias = self.left.bias
        if rng.random() < 0.2:
            self.out[0] = self.left
        if rng.random() < 0.2:
            self.tied = nn.Linear(WIDTH, WORDS, bias=False)
            self.tied.weight = self.words.weight
        else:
            self.tied = None

    def leaf(self, word):
        x = self.words(word)
        return x * self.tau if self.use else x

    def node(self, a, b):
        y = self.left(a) + self.right(b)
        if self.form == 0:
            F.relu(y, inplace=True)
            return y
        if self.form == 1:
            z = y
            z += a
            return self.act(y) + self.shift
        if self.form == 2:
            y = F.relu(y, inplace=True)
        if self.form == 3:
            y = F.softplus(y, beta=2, threshold=3) * SCALE
        if self.form == 4:
            y = torch.cat([y[:, :2], b[:, 2:]], dim=1)
        if self.form == 5:
            y = y / y.size(1) ** 0.5
        if self.form == 6:
            y = F.leaky_relu(y, 0.2) + self.cfg.by
        if self.form == 7:
            p, q = y.chunk(2, dim=-1)
            y = torch.cat([q, p * p], -1)
        y = self.act(y)
        if self.gate is not None:
            y = self.gate(y, a)
        return self.norm(y + self.shift) if self.form != 8 else self.norm(y) * self.shift

    def logits(self, h):
        y = self.out(h)
        if self.tied is not None:
            y = y + self.tied(h)[:, :CLASSES]
        return y


def tree(rng, depth=3):
    return rng.randrange(WORDS) if depth == 0 or rng.random() < 0.3 else (tree(rng, depth - 1), tree(rng, depth - 1))


def eager(model, trees):
    def visit(node):
        return model.leaf(torch.tensor([node])) if isinstance(node, int) else model.node(*map(visit, node))

    return torch.cat([model.logits(visit(one)) for one in trees])


def folded(model, trees, fallback):
    fold = Fold(fallback=fallback)

    def visit(node):
        return fold.add("leaf", node) if isinstance(node, int) else fold.add("node", *map(visit, node))

    return fold.apply(model, [[fold.add("logits", visit(one)) for one in trees]])[0]


def edit(rng):
    """Draws a change, which is applied to both modules."""
    global SCALE
    kind = rng.randrange(17)
    number = rng.choice([0.25, 0.75, 2.0])

    def change(model):
        params = list(model.parameters())
        param = params[kind * 7 % len(params)]
        if kind == 0:
            param.data.mul_(number)
        elif kind == 1:
            param.data = param.data + 0.1
        elif kind == 2 and param.numel():
            param.detach().numpy().reshape(-1)[0] = number
        elif kind == 3:
            model.tau = number
        elif kind == 4:
            model.use = not model.use
        elif kind == 5:
            model.act = nn.Tanh() if number < 1 else nn.ReLU()
        elif kind == 6 and hasattr(model.act, "negative_slope"):
            model.act.negative_slope = number / 4
        elif kind == 7 and hasattr(model.norm, "eps"):
            model.norm.eps = number
        elif kind == 8:
            model.cfg.by = number
        elif kind == 9:
            model.right.weight = model.left.weight
        elif kind == 10:
            model.left.bias = nn.Parameter(torch.full((WIDTH,), number))
        elif kind == 11:
            model.act.register_forward_hook(lambda module, args, made: made * number)
        elif kind == 12:
            model.form = (model.form + 1) % 9
        elif kind == 13:
            for child in model.modules():
                if isinstance(child, nn.Dropout):
                    child.p = 0.0
        elif kind == 14 and isinstance(model.act, nn.Softplus):
            model.act.beta = number
        elif kind == 15:
            model.eval() if model.training else model.train()

    if kind == 16:
        SCALE = number
    return change


def optimizer(rng, model, kind):
    params = [param for param in model.parameters()]
    return {
        0: lambda: torch.optim.SGD(params, 0.1),
        1: lambda: torch.optim.Adam(params, 0.02),
        2: lambda: torch.optim.Adam(params, 0.02, fused=True),
        3: lambda: torch.optim.AdamW(params, 0.02, weight_decay=0.5),
        4: lambda: torch.optim.SGD(params, 0.1, momentum=0.9, foreach=True),
    }[kind]()


def close(one, other, what, atol=2e-4):
    if (one is None) != (other is None):
        raise AssertionError(f"{what}: {'no ' if one is None else 'a '}value eagerly, {'none' if other is None else 'one'} folded")
    if one is not None and not torch.allclose(one, other, atol=atol, rtol=2e-3, equal_nan=True):
        raise AssertionError(f"{what}: {one.flatten()[:4].tolist()} eagerly, {other.flatten()[:4].tolist()} folded")


def case(seed, fallback):
    """Runs a case. Returns the number of edits."""
    global SCALE
    SCALE = 0.5
    rng = random.Random(seed)
    torch.manual_seed(seed)
    one = Drawn(rng)
    one.eval() if rng.random() < 0.8 else [setattr(d, "p", 0.0) for d in one.modules() if isinstance(d, nn.Dropout)]
    other = copy.deepcopy(one)
    kind = rng.randrange(5)
    optimizers = [optimizer(rng, model, kind) for model in (one, other)]
    edits = 0
    for step in range(5):
        trees = [tree(rng) for _ in range(3)]
        labels = torch.tensor([rng.randrange(CLASSES) for _ in trees])
        # Dropout draws other noise, because a fold calls methods in another order.
        if any(isinstance(d, nn.Dropout) and d.training and d.p for d in one.modules()):
            return edits
        for model, scores, own in ((one, lambda m, t: eager(m, t), optimizers[0]), (other, lambda m, t: folded(m, t, fallback), optimizers[1])):
            own.zero_grad()
            try:
                model.found = scores(model, trees)
                if model is one and not model.found.isfinite().all():
                    raise Invalid
                F.cross_entropy(model.found, labels).backward()
            except RuntimeError as error:
                if model is one:
                    raise Invalid from error
                raise
        close(one.found, other.found, f"step {step}: values")
        theirs = dict(other.named_parameters())
        # A gradient that sums up large terms has their rounding errors, also where the sum is small.
        largest = max(param.grad.abs().max().item() for param in one.parameters() if param.grad is not None)
        for name, param in one.named_parameters():
            close(param.grad, theirs[name].grad, f"step {step}: gradient of {name}", 1e-4 * max(largest, 0.1))
        for own in optimizers:
            own.step()
        with torch.no_grad():
            for name, param in one.named_parameters():
                if param.grad is not None:
                    # Adam turns the rounding errors of a gradient that is zero in exact arithmetic into whole steps.
                    theirs[name].copy_(torch.where(param.grad.abs() < 1e-3 * max(largest, 1), param, theirs[name]))
                close(param, theirs[name], f"step {step}: {name}")
        if rng.random() < 0.7:
            change = edit(rng)
            change(one)
            change(other)
            edits += 1
            del one.found, other.found
    return edits


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts, refused, failed = collections.Counter(), collections.Counter(), 0
    for seed in range(options.seed, options.seed + options.cases):
        for fallback in (False, True):
            try:
                counts["edits"] += case(seed, fallback)
                counts["recorded" if not fallback else "by torch after a refusal"] += 1
                break
            except Invalid:
                counts["invalid in torch"] += 1
                break
            except RecordError as error:
                refused[str(error).split(": ", 2)[-1][:60]] += 1
            except AssertionError as error:
                failed += 1
                print(f"seed {seed}, fallback {fallback}: {error}", flush=True)
                break
    print(f"{options.cases} cases: {dict(counts)}; {failed} differ")
    for reason, count in refused.most_common(12):
        print(f"{count:7} refused: {reason}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

"""Trains an ordinary `torch.nn.Module` over trees twice: eagerly, one instance at a time, and in `autobatch.torch.batch`.

    python python/examples/train_unmodified.py [--steps 60] [--trees 64]

The trees are expressions over the digits 0 to 9 with the operators max, min and first; the module learns their value. The model,
the optimiser and the schedule are torch's. Both runs begin with the same weights and see the same trees, so their losses agree up
to rounding. It prints losses, the accuracy on new trees, and the time of a step.
"""

import argparse
import contextlib
import copy
import random
import time
from collections.abc import Callable
from typing import TypeAlias, Union

import torch
import torch.nn as nn
import torch.nn.functional as F

from autobatch.torch import batch

Tree: TypeAlias = Union[int, tuple[int, "Tree", "Tree"]]
Block: TypeAlias = Callable[[], "batch | contextlib.nullcontext[None]"]

OPERATORS: dict[str, Callable[[int, int], int]] = {"max": max, "min": min, "first": lambda left, right: left}


class Node(nn.Module):
    """The vector of an operator over those of its operands."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.out, self.norm = nn.Linear(3 * width, 2 * width), nn.Linear(2 * width, width), nn.LayerNorm(width)

    def forward(self, operator: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        both = torch.cat([operator, left, right], dim=-1)
        vector: torch.Tensor = self.norm(left + self.out(F.gelu(self.hidden(both))))
        return vector


class Calculator(nn.Module):
    """Scores the values of a tree."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.digits, self.operators = nn.Embedding(10, width), nn.Embedding(len(OPERATORS), width)
        self.node, self.value = Node(width), nn.Linear(width, 10)

    def encode(self, tree: Tree) -> torch.Tensor:
        vector: torch.Tensor
        if isinstance(tree, int):
            vector = self.digits(torch.tensor(tree))
        else:
            operator, left, right = tree
            vector = self.node(self.operators(torch.tensor(operator)), self.encode(left), self.encode(right))
        return vector

    def forward(self, tree: Tree) -> torch.Tensor:
        scores: torch.Tensor = self.value(self.encode(tree))
        return scores


def drawn(rng: random.Random, leaves: int) -> Tree:
    if leaves == 1:
        return rng.randrange(10)
    cut = rng.randrange(1, leaves)
    return rng.randrange(len(OPERATORS)), drawn(rng, cut), drawn(rng, leaves - cut)


def value(tree: Tree) -> int:
    if isinstance(tree, int):
        return tree
    operator, left, right = tree
    return list(OPERATORS.values())[operator](value(left), value(right))


def minibatch(seed: int, count: int) -> list[Tree]:
    rng = random.Random(seed)
    return [drawn(rng, rng.randrange(2, 16)) for _ in range(count)]


def train(model: Calculator, block: Block, args: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Returns the losses and the seconds of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    losses: list[float] = []
    seconds: list[float] = []
    for step in range(args.steps):
        trees, start = minibatch(step, args.trees), time.perf_counter()
        with block():
            each = [F.cross_entropy(model(tree), torch.tensor(value(tree))) for tree in trees]
            loss = torch.stack(each).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return losses, seconds


def accuracy(model: Calculator, block: Block) -> float:
    trees = minibatch(-1, 500)
    with torch.no_grad(), block():
        found = [model(tree).argmax() for tree in trees]
    return sum(int(one) == value(tree) for one, tree in zip(found, trees)) / len(trees)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="steps of training (default 60)")
    parser.add_argument("--trees", type=int, default=64, help="trees of a minibatch (default 64)")
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Calculator()
    rows: dict[str, tuple[list[float], float]] = {}
    block: Block
    for name, own, block in (
        ("eager", copy.deepcopy(model), contextlib.nullcontext),
        ("batch()", model, lambda: batch(threads=1)),
    ):
        losses, seconds = train(own, block, args)
        rows[name] = losses, sorted(seconds)[len(seconds) // 2]
        print(f"{name:8} loss {losses[0]:.4f} -> {losses[-1]:.4f}, accuracy {accuracy(own, block):.1%}, {rows[name][1] * 1e3:.1f} ms per step")
    (eager, slow), (batched, fast) = rows["eager"], rows["batch()"]
    print(f"the first losses differ by {abs(eager[0] - batched[0]):.1e}; a step takes {slow / fast:.1f} times less time")


if __name__ == "__main__":
    main()

"""Learns the value of expression trees with a recursive model, in minibatches of trees of any shape.

    python python/examples/recursive.py [--steps 2000] [--trees 64]

A tree is a digit or an operator (max, min, first) over two trees. The example prints the accuracy on new trees and the trees a
second, and where PyTorch is installed those of the same model in eager PyTorch, tree by tree.
"""

import argparse
import random
import time

import autobatch as ab

Tree = int | tuple[int, "Tree", "Tree"]
WIDTH = 64


def drawn(rng: random.Random, leaves: int) -> Tree:
    """A random tree."""
    if leaves == 1:
        return rng.randrange(10)
    cut = rng.randrange(1, leaves)
    return rng.randrange(3), drawn(rng, cut), drawn(rng, leaves - cut)


def value(tree: Tree) -> int:
    """The digit that a tree stands for."""
    if isinstance(tree, int):
        return tree
    operator, left, right = tree[0], value(tree[1]), value(tree[2])
    return (max(left, right), min(left, right), left)[operator]


module = ab.Module("recursive")
digits, operators = module.table("digits", 10, WIDTH), module.table("operators", 3, WIDTH)
hidden = ab.nn.MLP(module, "node", [3 * WIDTH, 2 * WIDTH, WIDTH])
norm = ab.nn.LayerNorm(module, "norm", WIDTH)
out = ab.nn.Linear(module, "out", WIDTH, 10)


@module.cell(ab.f32[WIDTH], ab.f32[WIDTH], ab.f32[WIDTH])
def node(operator: ab.Value, left: ab.Value, right: ab.Value) -> ab.Value:
    """The vector of an operator over those of its operands."""
    return norm(left + hidden(ab.concat([operator, left, right])))


def scores(tree: Tree) -> ab.Value:
    """The scores of the digits."""
    def encode(tree: Tree) -> ab.Value:
        if isinstance(tree, int):
            return digits[tree]
        vector: ab.Value = node(operators[tree[0]], encode(tree[1]), encode(tree[2]))
        return vector
    return out(encode(tree))


def loss(tree: Tree) -> ab.Value:
    """The loss of a tree."""
    return scores(tree).cross_entropy(value(tree))


def eager(batches: list[list[Tree]]) -> float:
    """Trains the same model in eager PyTorch. Returns the trees a second."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.digits, self.operators = nn.Embedding(10, WIDTH), nn.Embedding(3, WIDTH)
            self.hidden = nn.Sequential(nn.Linear(3 * WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH))
            self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

        def encode(self, tree: Tree) -> torch.Tensor:
            if isinstance(tree, int):
                return self.digits.weight[tree]
            left = self.encode(tree[1])
            parts = [self.operators.weight[tree[0]], left, self.encode(tree[2])]
            vector: torch.Tensor = self.norm(left + self.hidden(torch.cat(parts)))
            return vector

    torch.set_num_threads(1)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    start = time.perf_counter()
    for trees in batches:
        losses = [nn.functional.cross_entropy(model.out(model.encode(tree)), torch.tensor(value(tree))) for tree in trees]
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()
    return sum(map(len, batches)) / (time.perf_counter() - start)


def main() -> None:
    """Trains and prints."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    arguments.add_argument("--steps", type=int, default=2000)
    arguments.add_argument("--trees", type=int, default=64)
    options = arguments.parse_args()
    rng = random.Random(1)
    batches = [[drawn(rng, rng.randint(2, 24)) for _ in range(options.trees)] for _ in range(options.steps)]
    trainer = ab.Trainer(module, ab.optim.Adam(2e-3), threads=1)
    start = time.perf_counter()
    losses = [trainer.step(trees, loss).loss for trees in batches]
    rate = options.steps * options.trees / (time.perf_counter() - start)
    new = [drawn(rng, rng.randint(2, 24)) for _ in range(500)]
    hits = sum(int(row.argmax()) == value(tree) for tree, row in zip(new, trainer.predict(new, scores)))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {hits / len(new):.3f}, {rate:,.0f} trees/s")
    try:
        few = eager(batches[:3])
    except ImportError:
        return
    print(f"eager PyTorch: {few:,.0f} trees/s, {rate / few:.1f} times slower")


if __name__ == "__main__":
    main()

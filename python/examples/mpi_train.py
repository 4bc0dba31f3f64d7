"""Trains a recursive model on several processes, with the weights of one.

    pip install mpi4py
    mpirun -n 2 python mpi_train.py

Without mpirun it trains alone. The last line is the same in both cases: weights depend on the number of shards, and not on the
processes that share them.
"""

import hashlib
import random
from typing import Any

import autobatch as ab

SHARDS, EPOCHS, WORDS, WIDTH = 8, 3, 50, 32


class Tree:
    """A word, or two trees. Its label says whether most of its words are even."""

    def __init__(self, words: list[int]) -> None:
        half = len(words) // 2
        self.word = words[0]
        self.children = [Tree(words[:half]), Tree(words[half:])] if half else []
        self.size = len(words)
        self.label = int(2 * sum(word % 2 == 0 for word in words) > len(words))


def trees(count: int, seed: int) -> list[Tree]:
    draw = random.Random(seed)
    return [Tree([draw.randrange(WORDS) for _ in range(draw.randrange(2, 12))]) for _ in range(count)]


def communicator() -> Any:
    """The processes of mpirun; None without mpi4py."""
    try:
        from mpi4py import MPI
    except ImportError:
        return None
    return MPI.COMM_WORLD


def main() -> None:
    module = ab.Module("trees")
    words = ab.nn.Embedding(module, "words", WORDS, WIDTH)
    join = ab.nn.Linear(module, "join", 2 * WIDTH, WIDTH)
    score = ab.nn.Linear(module, "score", WIDTH, 2)

    def encode(tree: Tree) -> ab.Value:
        if not tree.children:
            return words(tree.word)
        left, right = map(encode, tree.children)
        return join(ab.concat([left, right])).tanh()

    def loss(tree: Tree) -> ab.Value:
        return score(encode(tree)).cross_entropy(tree.label)

    trainer = ab.Trainer(module, ab.optim.Adam(0.01), seed=1, shards=SHARDS, group=communicator())
    training = trees(256, seed=2)
    trainer.agree("the trees", str([tree.size for tree in training]))
    for epoch in range(EPOCHS):
        total = 0.0
        for batch in ab.data.batches(training, 32, key=lambda tree: tree.size, seed=epoch):
            batch = ab.train.balanced(batch, SHARDS, lambda tree: tree.size)
            total += trainer.step(batch, loss).loss
        if trainer.rank == 0:
            print(f"epoch {epoch + 1}: loss {total / 8:.4f}")
    if trainer.rank == 0:
        weights = b"".join(trainer.weights[name].tobytes() for name in sorted(trainer.weights))
        print(f"hash of the weights: {hashlib.sha256(weights).hexdigest()[:16]}")


if __name__ == "__main__":
    main()

"""Predicts trees with Ray Data: every actor has a session of its own, and batches trees of any shape.

    pip install 'ray[data]'
    python python/examples/ray_map.py [--trees 20000] [--actors 2]

It prints the rate, and fails if an answer differs from that of one session.
"""

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import autobatch as ab

WIDTH = 32


def drawn(rng: random.Random, leaves: int) -> str:
    """A tree in brackets, such as `(3 (1 4))`."""
    if leaves == 1:
        return str(rng.randrange(10))
    cut = rng.randrange(1, leaves)
    return f"({drawn(rng, cut)} {drawn(rng, leaves - cut)})"


def make() -> tuple[ab.Session, Callable[[Any], ab.Value]]:
    """The session of an actor, and the model of one tree."""
    m = ab.Module("trees")
    digits, node = ab.nn.Embedding(m, "digits", 10, WIDTH), ab.nn.TreeLSTM(m, "node", WIDTH)
    out = ab.nn.Linear(m, "out", WIDTH, 10)

    def emit(tree: str) -> ab.Value:
        stack: list[tuple[ab.Value, ab.Value]] = []
        for char in tree:
            if char.isdigit():
                stack.append(node.leaf(digits(int(char))))
            elif char == ")":
                right, left = stack.pop(), stack.pop()
                stack.append(node.node(left, right))
        return out(stack[0][0])

    return ab.Session(m, threads=1, seed=1), emit


def main() -> None:
    import ray

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trees", type=int, default=20_000, help="trees (default 20000)")
    parser.add_argument("--actors", type=int, default=2, help="actors (default 2)")
    options = parser.parse_args()
    rng = random.Random(1)
    trees = [drawn(rng, rng.randint(1, 24)) for _ in range(options.trees)]
    ray.init(num_cpus=options.actors, include_dashboard=False, log_to_driver=False)
    dataset = ray.data.from_items([{"number": number, "tree": tree} for number, tree in enumerate(trees)])
    start = time.perf_counter()
    pool = ray.data.ActorPoolStrategy(size=options.actors)
    mapped = dataset.map_batches(ab.data.Mapper, fn_constructor_args=(make, "tree"), compute=pool, batch_size=1024)
    rows = sorted(mapped.take_all(), key=lambda row: int(row["number"]))
    seconds = time.perf_counter() - start
    session, emit = make()
    for row, alone in zip(rows, session.predict(trees, emit)):
        if not np.array_equal(row["answer"], alone):
            raise SystemExit(f"tree {row['number']} has another answer")
    print(f"{len(rows):,} trees in {seconds:.1f} s on {options.actors} actors, equal to those of one session")


if __name__ == "__main__":
    main()

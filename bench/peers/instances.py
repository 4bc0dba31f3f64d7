"""Generates binary trees with classes and writes them as JSON, which every program of the comparison reads.

    python instances.py FILE [--trees 128] [--seed 1]

A leaf is a word number, an inner node is the list of its two children. The number of leaves has mean 20 and
standard deviation 8, between 2 and 60. The left child gets a uniform share of the leaves.
"""
import argparse
import json
import random

WORDS, CLASSES = 1000, 3
MEAN_LEAVES, DEVIATION, MIN_LEAVES, MAX_LEAVES = 20, 8, 2, 60


def tree(rng, leaves):
    if leaves == 1:
        return rng.randrange(WORDS)
    left = rng.randrange(1, leaves)
    return [tree(rng, left), tree(rng, leaves - left)]


def generate(count, seed):
    rng = random.Random(seed)
    sizes = [min(MAX_LEAVES, max(MIN_LEAVES, round(rng.gauss(MEAN_LEAVES, DEVIATION)))) for _ in range(count)]
    return {"trees": [tree(rng, size) for size in sizes], "labels": [rng.randrange(CLASSES) for _ in sizes]}


def read(path):
    """Returns the trees and their classes."""
    with open(path) as file:
        data = json.load(file)
    return data["trees"], data["labels"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--trees", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with open(args.file, "w") as file:
        json.dump(generate(args.trees, args.seed), file)


if __name__ == "__main__":
    main()

"""Times `autobatch.torch.batch` against eager torch: an unmodified Tree-LSTM, one thread.

    python python/examples/batch_speed.py [--trees 64] [--leaves 20] [--width 100]

It prints the microseconds to record one op, and the time of inference and of a training step.
"""

import argparse
import random
import statistics
import time

import torch
import torch.nn.functional as F

from autobatch.torch import batch


class TreeLSTM(torch.nn.Module):
    def __init__(self, words, width, classes=5):
        super().__init__()
        self.embedding = torch.nn.Embedding(words, width)
        self.left, self.right = torch.nn.Linear(width, 5 * width), torch.nn.Linear(width, 5 * width, bias=False)
        self.out = torch.nn.Linear(width, classes)

    def node(self, left, right):
        (left_h, left_c), (right_h, right_c) = left, right
        a, i, f1, f2, o = (self.left(left_h) + self.right(right_h)).chunk(5, 1)
        c = a.tanh() * i.sigmoid() + f1.sigmoid() * left_c + f2.sigmoid() * right_c
        return o.sigmoid() * c.tanh(), c

    def encode(self, tree):
        if isinstance(tree, int):
            h = self.embedding(torch.tensor([tree]))
            return h, torch.zeros_like(h)
        return self.node(self.encode(tree[0]), self.encode(tree[1]))

    def forward(self, tree):
        return self.out(self.encode(tree)[0])


def drawn(rng, leaves):
    cut = rng.randrange(1, leaves) if leaves > 1 else 0
    return (drawn(rng, cut), drawn(rng, leaves - cut)) if cut else rng.randrange(1000)


def loss_of(model, data):
    return torch.stack([F.cross_entropy(model(tree), label) for tree, label in data]).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=64)
    parser.add_argument("--leaves", type=int, default=20)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rng, model = random.Random(1), TreeLSTM(1000, args.width)
    data = [(drawn(rng, args.leaves), torch.tensor([rng.randrange(5)])) for _ in range(args.trees)]
    recorded = []

    def infer_eager():
        with torch.no_grad():
            return loss_of(model, data)

    def infer_batched():
        with torch.no_grad(), batch(threads=1) as block:
            start = time.perf_counter()
            loss = loss_of(model, data)
            recorded.append(time.perf_counter() - start)
        return loss, block

    def train_eager():
        model.zero_grad()
        loss_of(model, data).backward()

    def train_batched():
        model.zero_grad()
        with batch(threads=1):
            loss = loss_of(model, data)
        loss.backward()

    times = {function.__name__: [] for function in (infer_eager, infer_batched, train_eager, train_batched)}
    for number in range(args.rounds + 1):
        for function in (infer_eager, infer_batched, train_eager, train_batched):
            start = time.perf_counter()
            function()
            if number:
                times[function.__name__].append(time.perf_counter() - start)
    median = {name: statistics.median(all_) * 1e3 for name, all_ in times.items()}
    ops = infer_batched()[1].ops
    print(f"recording  {ops} ops, {statistics.median(recorded) / ops * 1e6:.2f} us an op")
    for what in ("infer", "train"):
        eager, batched = median[f"{what}_eager"], median[f"{what}_batched"]
        print(f"{what}      eager {eager:.1f} ms, batched {batched:.1f} ms: {eager / batched:.1f} x")


if __name__ == "__main__":
    main()

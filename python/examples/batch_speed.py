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


class Node(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.left, self.right = torch.nn.Linear(width, 5 * width), torch.nn.Linear(width, 5 * width, bias=False)

    def forward(self, left, right):
        (left_h, left_c), (right_h, right_c) = left, right
        a, i, f1, f2, o = (self.left(left_h) + self.right(right_h)).chunk(5, 1)
        c = a.tanh() * i.sigmoid() + f1.sigmoid() * left_c + f2.sigmoid() * right_c
        return o.sigmoid() * c.tanh(), c


class TreeLSTM(torch.nn.Module):
    def __init__(self, words, width, classes=5):
        super().__init__()
        self.embedding, self.node = torch.nn.Embedding(words, width), Node(width)
        self.out = torch.nn.Linear(width, classes)
        #: A module that is called becomes one node. A call of its method `forward` is recorded op by op.
        self.as_module = True

    def encode(self, tree):
        if isinstance(tree, int):
            h = self.embedding(torch.tensor([tree]))
            return h, torch.zeros_like(h)
        return (self.node if self.as_module else self.node.forward)(self.encode(tree[0]), self.encode(tree[1]))

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
    recorded, ops = {}, {}

    def infer_eager():
        with torch.no_grad():
            return loss_of(model, data)

    def infer_batched():
        with torch.no_grad(), batch(threads=1) as block:
            start = time.perf_counter()
            loss_of(model, data)
            recorded.setdefault(kind, []).append(time.perf_counter() - start)
        ops[kind] = block.ops

    def train_eager():
        model.zero_grad()
        loss_of(model, data).backward()

    def train_batched():
        model.zero_grad()
        with batch(threads=1):
            loss = loss_of(model, data)
        loss.backward()

    times = {}
    for number in range(args.rounds + 3):
        for kind, as_module in (("modules", True), ("ops", False)):
            model.as_module = as_module
            for function in (infer_eager, infer_batched, train_eager, train_batched):
                start = time.perf_counter()
                function()
                # The first rounds count the calls, trace the modules, and warm up.
                if number >= 3:
                    times.setdefault((kind, function.__name__), []).append(time.perf_counter() - start)
    median = {name: statistics.median(all_) * 1e3 for name, all_ in times.items()}
    for kind, what in (("modules", "modules as nodes"), ("ops", "op by op")):
        each = statistics.median(recorded[kind]) / ops[kind] * 1e6
        print(f"{what}: {ops[kind]} nodes recorded, {each:.2f} us each")
        for mode in ("infer", "train"):
            eager, batched = median[kind, f"{mode}_eager"], median[kind, f"{mode}_batched"]
            print(f"  {mode}  eager {eager:.1f} ms, batched {batched:.1f} ms: {eager / batched:.1f} x")


if __name__ == "__main__":
    main()

"""Times `autobatch.torch.batch` against eager torch: an unmodified Tree-LSTM, one thread.

    python python/examples/batch_speed.py [--trees 64] [--leaves 20] [--width 100]

It prints the microseconds to record one op, and the time of inference and of a training step. Beside them stand the same model
batched by hand, one call per height of the trees, and written op by op with the native interface.
"""

import argparse
import random
import statistics
import time

import torch
import torch.nn.functional as F

import autobatch as ab
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


def heights(data):
    """The nodes of all trees as batching by hand needs them: the words, for each height the rows of left and right children,
    and the rows of the roots."""
    words, levels, roots = [], [], []

    def place(tree):
        if isinstance(tree, int):
            words.append(tree)
            return 0, len(words) - 1
        left, right = place(tree[0]), place(tree[1])
        height = 1 + max(left[0], right[0])
        while len(levels) < height:
            levels.append([])
        levels[height - 1].append((left, right))
        return height, len(levels[height - 1]) - 1

    roots = [place(tree) for tree, _ in data]
    starts = [0, len(words)]
    for level in levels:
        starts.append(starts[-1] + len(level))

    def rows(places):
        return torch.tensor([starts[height] + row for height, row in places])

    return torch.tensor(words), [(rows([l for l, _ in level]), rows([r for _, r in level])) for level in levels], rows(roots)


def loss_by_hand(model, data, labels):
    """The indices count, as a program makes them for every minibatch."""
    words, levels, roots = heights(data)
    h = model.embedding(words)
    c = torch.zeros_like(h)
    for left, right in levels:
        new_h, new_c = model.node.forward((h[left], c[left]), (h[right], c[right]))
        h, c = torch.cat([h, new_h]), torch.cat([c, new_c])
    return F.cross_entropy(model.out(h[roots]), labels)


class Native:
    """The same model, with the native interface and without cells."""

    def __init__(self, words, width, classes=5):
        m = ab.Module("trees")
        self.words, self.out, self.zeros = m.table("words", words, width), ab.nn.Linear(m, "out", width, classes), [0.0] * width
        self.left, self.right, self.bias = m.param("left", (width, 5 * width)), m.param("right", (width, 5 * width)), m.param("b", 5 * width)
        self.trainer, self.session = ab.Trainer(m, ab.optim.Sgd(0.001), threads=1), ab.Session(m, threads=1)

    def encode(self, tree):
        if isinstance(tree, int):
            return self.words[tree], ab.zeros(len(self.zeros))
        (left_h, left_c), (right_h, right_c) = self.encode(tree[0]), self.encode(tree[1])
        a, i, f1, f2, o = (left_h.affine(self.left, self.bias) + right_h.affine(self.right)).split(5)
        c = a.tanh() * i.sigmoid() + f1.sigmoid() * left_c + f2.sigmoid() * right_c
        return o.sigmoid() * c.tanh(), c

    def loss(self, item):
        return self.out(self.encode(item[0])[0]).cross_entropy(item[1])


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

    labels, native = torch.cat([label for _, label in data]), Native(1000, args.width)
    items = [(tree, int(label)) for tree, label in data]

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

    def infer_by_hand():
        with torch.no_grad():
            return loss_by_hand(model, data, labels)

    def train_by_hand():
        model.zero_grad()
        loss_by_hand(model, data, labels).backward()

    def infer_native():
        native.session.predict(items, native.loss)

    def train_native():
        native.trainer.step(items, native.loss)

    others = infer_by_hand, train_by_hand, infer_native, train_native
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
        for function in others:
            start = time.perf_counter()
            function()
            if number >= 3:
                times.setdefault(function.__name__, []).append(time.perf_counter() - start)
    median = {name: statistics.median(all_) * 1e3 for name, all_ in times.items()}
    for kind, what in (("modules", "modules as nodes"), ("ops", "op by op")):
        each = statistics.median(recorded[kind]) / ops[kind] * 1e6
        print(f"{what}: {ops[kind]} nodes recorded, {each:.2f} us each")
        for mode in ("infer", "train"):
            eager, batched = median[kind, f"{mode}_eager"], median[kind, f"{mode}_batched"]
            print(f"  {mode}  eager {eager:.1f} ms, batched {batched:.1f} ms: {eager / batched:.1f} x")
    for what in ("by_hand", "native"):
        print(what.replace("_", " ") + ":", *(f"{mode} {median[f'{mode}_{what}']:.1f} ms" for mode in ("infer", "train")))


if __name__ == "__main__":
    main()

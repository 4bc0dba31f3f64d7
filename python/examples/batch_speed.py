"""Times `autobatch.torch.batch` against eager torch: an unmodified Tree-LSTM, one thread.

    python python/examples/batch_speed.py [--trees 64] [--leaves 20] [--width 100]

It prints the microseconds to record one op, and the time of inference and of a training step. Beside them stand the same model
batched by hand, one call per height of the trees, and written op by op with the native interface. Then come the other models of
`batch_models.py`.
"""

import argparse
import random
import statistics
import time

import torch
import torch.nn.functional as F

import autobatch as ab
from autobatch.torch import batch
from batch_models import MODELS, TreeLSTM, instances


def drawn(rng, leaves):
    cut = rng.randrange(1, leaves) if leaves > 1 else 0
    return (drawn(rng, cut), drawn(rng, leaves - cut)) if cut else rng.randrange(1000)


def loss_of(model, data):
    return torch.stack([model(*instance).reshape(()) for instance in data]).mean()


def functions(model, data, note=lambda block, seconds: None):
    """Inference and a training step, eagerly and in a block."""

    def infer_eager():
        with torch.no_grad():
            return loss_of(model, data)

    def infer_batched():
        with torch.no_grad(), batch(threads=1) as block:
            start = time.perf_counter()
            loss = loss_of(model, data)
            seconds = time.perf_counter() - start
        note(block, seconds)
        return loss

    def train_eager():
        model.zero_grad()
        loss_of(model, data).backward()

    def train_batched():
        model.zero_grad()
        with batch(threads=1):
            loss = loss_of(model, data)
        loss.backward()

    return infer_eager, infer_batched, train_eager, train_batched


def measure(groups, rounds):
    """The median times in milliseconds of functions, which run in turns, by the keys of their groups."""
    times = {}
    for number in range(rounds + 3):
        for key, group in groups.items():
            for function in group():
                start = time.perf_counter()
                function()
                # The first rounds count the calls, trace the modules, and warm up.
                if number >= 3:
                    times.setdefault((key, function.__name__), []).append(time.perf_counter() - start)
    return {name: statistics.median(all_) * 1e3 for name, all_ in times.items()}


def show(name, key, median):
    parts = []
    for mode in ("infer", "train"):
        eager, batched = median[key, f"{mode}_eager"], median[key, f"{mode}_batched"]
        parts.append(f"{mode} {eager:6.1f} ms eagerly, {batched:5.1f} in a block: {eager / batched:4.1f} x")
    print(f"{name:22}", "   ".join(parts))


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
    data = [(drawn(rng, args.leaves), rng.randrange(5)) for _ in range(args.trees)]
    labels, native = torch.tensor([label for _, label in data]), Native(1000, args.width)
    recorded, ops = {}, {}

    def of_trees(as_module):
        def note(block, seconds):
            recorded.setdefault(as_module, []).append(seconds)
            ops[as_module] = block.ops

        model.as_module = as_module
        return functions(model, data, note)

    def infer_by_hand():
        with torch.no_grad():
            return loss_by_hand(model, data, labels)

    def train_by_hand():
        model.zero_grad()
        loss_by_hand(model, data, labels).backward()

    def infer_native():
        native.session.predict(data, native.loss)

    def train_native():
        native.trainer.step(data, native.loss)

    others = infer_by_hand, train_by_hand, infer_native, train_native
    median = measure({True: lambda: of_trees(True), False: lambda: of_trees(False), "others": lambda: others}, args.rounds)
    print(f"A Tree-LSTM, {args.trees} trees of {args.leaves} leaves, width {args.width}")
    for as_module, what in ((True, "modules are nodes"), (False, "op by op")):
        show(what, as_module, median)
        each = statistics.median(recorded[as_module]) / ops[as_module] * 1e6
        print(f"{'':22} {ops[as_module]} ops recorded, {each:.2f} us each")
    for what in ("by_hand", "native"):
        print(f"{what.replace('_', ' '):22}", *(f"{mode} {median['others', f'{mode}_{what}']:6.1f} ms   " for mode in ("infer", "train")))
    print("Other models, 64 instances, width 64")
    for kind in MODELS[1:]:
        other = kind(width=64)
        own = functions(other, instances(kind, 64))
        show(kind.__name__, kind, measure({kind: lambda own=own: own}, args.rounds))


if __name__ == "__main__":
    main()

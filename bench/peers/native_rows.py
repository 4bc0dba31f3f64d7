"""Times the models a to g written with the native interface of Python beside the same models in Rust, one thread, in turns.

    python bench/peers/native_rows.py [--bench target/release/autobatch-bench] [--rounds 7] [--rows b d f1]

A step of training records the graph, plans it anew, executes it forward and in reverse, and updates with Adam. Inference reads all
outputs. Both programs get the same instances, drawn here. The last column is the ratio of the medians.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

import numpy as np

import autobatch as ab
import instances


def length(rng, mean=20.0, deviation=8.0, low=2, high=60):
    return int(min(max(round(rng.gauss(mean, deviation)), low), high))


def words(rng, count, below):
    return [rng.randrange(below) for _ in range(count)]


class Perceptron:
    """a: a perceptron over 2,000 images, in minibatches of 32."""

    model = "a"
    minibatch = 32

    def __init__(self, m):
        self.layers = ab.nn.MLP(m, "mnist", [784, 200, 100, 10])

    @staticmethod
    def drawn(rng):
        return {"examples": 2000, "note": "uniform pixels", "seed": rng.randrange(1 << 30)}

    @staticmethod
    def items(data):
        rng = np.random.default_rng(data["seed"])
        pixels = rng.random((data["examples"], 784), dtype=np.float32)
        return list(zip(pixels, rng.integers(0, 10, data["examples"]).tolist()))

    def outputs(self, item):
        return self.layers(ab.input(item[0]))

    def loss(self, item):
        return self.outputs(item).cross_entropy(item[1])


class Classifier:
    """A model whose instances are pairs of a structure and a class."""

    def loss(self, item):
        return self.outputs(item).cross_entropy(item[1])


class Spinn(Classifier):
    """b: a Tree-LSTM of width 100 over 128 trees."""

    model = "b"

    def __init__(self, m):
        table = m.table("words", 1000, 100)
        self.leaf = m.cell(ab.index, name="leaf")(lambda word: (table[word], ab.zeros(100)))
        self.node, self.out = ab.nn.TreeLSTM(m, "node", 100), ab.nn.Linear(m, "out", 100, 3)

    @staticmethod
    def drawn(rng):
        return instances.generate(128, rng.randrange(1 << 30))

    @staticmethod
    def items(data):
        return list(zip(data["trees"], data["labels"]))

    def state(self, tree):
        return self.leaf(tree) if isinstance(tree, int) else self.node.node(self.state(tree[0]), self.state(tree[1]))

    def outputs(self, item):
        return self.out(self.state(item[0])[0])


class Similarity:
    """c: a child-sum Tree-LSTM over 256 pairs of dependency trees."""

    model = "c"

    def __init__(self, m):
        self.words = ab.nn.Embedding(m, "words", 2400, 300)
        self.node = ab.nn.ChildSumTreeLSTM(m, "node", 300, 150)
        both, out = ab.nn.Linear(m, "both", 300, 50), ab.nn.Linear(m, "out", 50, 5)

        @m.cell(ab.f32[150], ab.f32[150], name="compare")
        def compare(a, b):
            return out(both(a * b, (a - b).abs()).sigmoid()).log_softmax()

        self.compare = compare

    @staticmethod
    def drawn(rng):
        def tree():
            count = length(rng, 9.6, 3.5, 3, 32)
            parents = [-1] + [rng.randrange(max(0, word - 4), word) for word in range(1, count)]
            return {"parent": parents, "words": words(rng, count, 2400)}

        return {"pairs": [[tree(), tree(), round(1 + 4 * rng.random(), 2)] for _ in range(256)]}

    @staticmethod
    def items(data):
        return data["pairs"]

    def encode(self, tree):
        children = [[] for _ in tree["words"]]
        for number in range(len(children) - 1, -1, -1):
            state = self.node.node(self.words(tree["words"][number]), children[number][::-1])
            if number == 0:
                return state[1]
            children[tree["parent"][number]].append(state)

    def outputs(self, item):
        return self.compare(self.encode(item[0]), self.encode(item[1]))

    def loss(self, item):
        whole, part = int(item[2]), item[2] - int(item[2])
        wanted = [0.0] * 5
        wanted[whole - 1] = 1.0 - part
        if part:
            wanted[whole] = part
        return self.outputs(item).kl_div(ab.input(wanted))


class Tagger:
    """d: a BiLSTM over 64 sentences, embeddings of 128 and states of 50."""

    model = "d"
    options = ["--hidden", "50"]

    def __init__(self, m):
        self.words, self.context = ab.nn.Embedding(m, "words", 10_000, 128), ab.nn.BiLSTM(m, "context", 128, 50)
        hidden, out = ab.nn.Linear(m, "hidden", 100, 32), ab.nn.Linear(m, "out", 32, 9)
        self.head = m.cell(ab.f32[50], ab.f32[50], name="head")(lambda h, b: out(hidden(h, b).tanh()))

    @staticmethod
    def drawn(rng):
        sentences = [words(rng, length(rng), 10_000) for _ in range(64)]
        return {"words": sentences, "tags": [words(rng, len(sentence), 9) for sentence in sentences]}

    @staticmethod
    def items(data):
        return list(zip(data["words"], data["tags"]))

    def outputs(self, item):
        pairs = self.context.run_pairs([self.words(word) for word in item[0]])
        return [self.head(forward, backward) for forward, backward in pairs]

    def loss(self, item):
        return ab.total([scores.cross_entropy(tag) for scores, tag in zip(self.outputs(item), item[1])])


class Names(Classifier):
    """e: an LSTM of width 128 over the letters of 128 names."""

    model = "e"

    def __init__(self, m):
        self.lstm, self.out = ab.nn.LSTM(m, "lstm", 57, 128), ab.nn.Linear(m, "out", 128, 18)

    @staticmethod
    def drawn(rng):
        return {
            "chars": [words(rng, length(rng, 7.0, 2.3, 2, 20), 57) for _ in range(128)], "labels": words(rng, 128, 18),
        }

    @staticmethod
    def items(data):
        return list(zip(data["chars"], data["labels"]))

    def outputs(self, item):
        return self.out(self.lstm.last([ab.one_hot(letter, 57) for letter in item[0]])).log_softmax()

    def loss(self, item):
        return -self.outputs(item).pick(item[1])


class Acceptor(Classifier):
    """f1: an LSTM of width 100 over 64 sequences."""

    model = "f1"

    def __init__(self, m):
        self.words, self.lstm = ab.nn.Embedding(m, "words", 1000, 100), ab.nn.LSTM(m, "lstm", 100, 100)
        self.out = ab.nn.Linear(m, "out", 100, 2, bias=False)

    @staticmethod
    def drawn(rng):
        return {"words": [words(rng, length(rng), 1000) for _ in range(64)], "labels": words(rng, 64, 2)}

    @staticmethod
    def items(data):
        return list(zip(data["words"], data["labels"]))

    def outputs(self, item):
        return self.out(self.lstm.last([self.words(word) for word in item[0]]))


class Recursive(Classifier):
    """f2: a recursive network of width 300 over 64 trees."""

    model = "f2"

    def __init__(self, m):
        self.words, self.node = ab.nn.Embedding(m, "words", 1000, 300), ab.nn.TreeRNN(m, "node", 300)
        self.out = ab.nn.Linear(m, "out", 300, 2, bias=False)

    @staticmethod
    def drawn(rng):
        data = instances.generate(64, rng.randrange(1 << 30))
        return {**data, "labels": [label % 2 for label in data["labels"]]}

    items = Spinn.items

    def value(self, tree):
        return self.words(tree) if isinstance(tree, int) else self.node.node(self.value(tree[0]), self.value(tree[1]))

    def outputs(self, item):
        return self.out(self.value(item[0]))


class Parser:
    """g: a stack LSTM that parses 64 sentences with given actions."""

    model = "g"

    def __init__(self, m):
        self.words, self.actions = ab.nn.Embedding(m, "words", 1000, 100), ab.nn.Embedding(m, "actions", 3, 20)
        self.stack, self.buffer = ab.nn.LSTM(m, "stack", 100, 100), ab.nn.LSTM(m, "buffer", 100, 100)
        self.history = ab.nn.LSTM(m, "history", 20, 100)
        features, following = ab.nn.Linear(m, "features", 300, 100), ab.nn.Linear(m, "next", 100, 3)
        phrase = ab.nn.Linear(m, "phrase", 200, 100)
        width = ab.f32[100]
        self.score = m.cell(width, width, width, name="score")(lambda *states: following(features(*states).tanh()))
        self.compose = m.cell(width, width, name="compose")(lambda head, other: phrase(head, other).tanh())

    @staticmethod
    def drawn(rng):
        sentences, all_actions = [], []
        for _ in range(64):
            count = length(rng)
            shifted, depth, actions = 0, 0, []
            while shifted < count or depth > 1:
                if shifted < count and (depth < 2 or rng.random() < 0.5):
                    actions.append(0)
                    shifted, depth = shifted + 1, depth + 1
                else:
                    actions.append(rng.choice((1, 2)))
                    depth -= 1
            sentences.append(words(rng, count, 1000))
            all_actions.append(actions)
        return {"words": sentences, "actions": all_actions}

    @staticmethod
    def items(data):
        return list(zip(data["words"], data["actions"]))

    def outputs(self, item):
        vectors = [self.words(word) for word in item[0]]
        buffer, stack, history = [self.buffer.start()], [self.stack.start()], self.history.start()
        for vector in reversed(vectors):
            buffer.append(buffer[-1].push(vector))
        vectors, phrases, scores = iter(vectors), [], []
        for action in item[1]:
            scores.append(self.score(stack[-1].h, buffer[-1].h, history.h))
            if action == 0:
                buffer.pop()
                phrases.append(next(vectors))
            else:
                right, left = phrases.pop(), phrases.pop()
                del stack[-2:]
                phrases.append(self.compose(left, right) if action == 1 else self.compose(right, left))
            stack.append(stack[-1].push(phrases[-1]))
            history = history.push(self.actions(action))
        return scores

    def loss(self, item):
        return ab.total([scores.cross_entropy(action) for scores, action in zip(self.outputs(item), item[1])])


ROWS = {"a": Perceptron, "b": Spinn, "c": Similarity, "d": Tagger, "e": Names, "f1": Acceptor, "f2": Recursive, "g": Parser}


def native(kind, items, mode):
    """A function that makes one step."""
    m = ab.Module(kind.__name__.lower())
    model = kind(m)
    batches = list(ab.data.batches(items, getattr(kind, "minibatch", len(items))))
    if mode == "infer":
        session = ab.Session(m, threads=1)
        return lambda: [session.predict(batch, model.outputs) for batch in batches]
    trainer = ab.Trainer(m, ab.optim.Adam(1e-3), threads=1)
    return lambda: [trainer.step(batch, model.loss) for batch in batches]


def seconds(step, least=0.4):
    """The median time of a step."""
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < least or len(times) < 3:
        before = time.perf_counter()
        step()
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def rust(bench, kind, file, mode):
    """The median time of a step of the Rust program."""
    command = [
        bench, kind.model, "--peer-data", file, "--mode", mode, "--alone", "--rounds", "3", "--turn", "100", "--threads", "1", "--json",
        *getattr(kind, "options", []),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.strip().split("\n")[-1])["seconds_per_step"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="target/release/autobatch-bench")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    options = parser.parse_args()
    print("| model | mode | Rust, ms | Python, ms | ratio |\n|---|---|---|---|---|")
    for row in options.rows:
        kind = ROWS[row]
        data = kind.drawn(random.Random(1))
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "data.json"
            file.write_text(json.dumps(data))
            for mode in ("infer", "train"):
                step = native(kind, kind.items(data), mode)
                step()
                rounds = [(rust(options.bench, kind, str(file), mode), seconds(step)) for _ in range(options.rounds)]
                ours, theirs = (statistics.median(times) for times in zip(*rounds))
                print(f"| {row} | {mode} | {1e3 * ours:.2f} | {1e3 * theirs:.2f} | {theirs / ours:.2f} |", flush=True)


if __name__ == "__main__":
    main()

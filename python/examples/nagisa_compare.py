"""Compares nagisa, a Japanese tagger on DyNet, under DyNet and under its drop-in: tags, losses and processor times.

    python python/examples/nagisa_compare.py PYTHON_WITH_DYNET PYTHON_WITH_AUTOBATCH [--rounds 3] [--steps 24]

Both Pythons need nagisa. The shipped model tags 1,000 sentences, and `nagisa.fit` trains on the shipped sample from
equal weights. nagisa's own tagger computes with numpy, so the program replaces that model by nagisa's DyNet model.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

SENTENCES = 1000
WARM_UP = 2
"""The first steps of training, which the times leave out."""


def sample():
    """Returns the folder of the sample that nagisa ships."""
    import nagisa

    return pathlib.Path(nagisa.__file__).parent / "data" / "sample_datasets"


def shipped_sentences():
    """Returns the sentences of the sample as lists of words."""
    sentences = []
    for path in sorted(sample().iterdir()):
        if path.suffix not in (".train", ".dev", ".test"):
            continue
        lines = path.read_text(encoding="utf8").splitlines()
        for is_end, group in itertools.groupby(lines, lambda line: line == "EOS"):
            if not is_end:
                sentences.append([line.split("\t")[0] for line in group])
    return sentences


def tag():
    """Tags sentences. Returns the words and tags, and the seconds."""
    import nagisa
    import nagisa.model
    import nagisa.np_model

    class Model(nagisa.model.Model):
        """nagisa's DyNet model with the interface of its numpy model."""

        def encode_ws(self, X, train=False):
            return [scores.npvalue() for scores in super().encode_ws(X, train)]

    nagisa.np_model.Model = Model
    tagger = nagisa.Tagger()
    texts = ["".join(words) for words in shipped_sentences()][:SENTENCES]
    draw, words = random.Random(5), list(tagger._word2id)[:20_000]
    texts += ["".join(draw.choices(words, k=draw.randint(3, 12))) for _ in range(SENTENCES - len(texts))]
    start = time.process_time()
    results = []
    for tokens in map(tagger.tagging, texts):
        results.append([tokens.words, tokens.postags])
    return {"results": results, "seconds": time.process_time() - start}


def fit(steps):
    """Trains on the first sentences of the sample. Returns the losses, and the seconds of a step."""
    import model
    import nagisa.model
    import nagisa.train
    import numpy as np

    class Model(nagisa.model.Model):
        """nagisa's DyNet model with equal weights under both libraries."""

        def __init__(self, hp, params=None, embs=None):
            super().__init__(hp, params, embs)
            if params is None:
                numbers = np.random.default_rng(3)
                for stored in self.model.parameters_list():
                    stored.set_value(numbers.uniform(-0.1, 0.1, stored.shape()))
                for stored in self.model.lookup_parameters_list():
                    stored.init_from_array(numbers.uniform(-0.1, 0.1, stored.shape()))

    losses, seconds = [], []

    def train(hp, model, train_data, test_data, dev_data):
        for number in itertools.islice(itertools.cycle(range(len(train_data.ws_data))), steps):
            start = time.process_time()
            x, y = train_data.ws_data[number]
            scores = model.encode_ws(x, train=True)
            gold = model.score_sentence(scores, y)
            loss = model.forward(scores) - gold
            losses.append(loss.value() / len(y))
            loss.backward()
            model.trainer.update()
            loss = model.get_POStagging_loss(*train_data.pos_data[number])
            losses.append(loss.value())
            loss.backward()
            model.trainer.update()
            seconds.append(time.process_time() - start)

    model.Model, nagisa.train._start = Model, train
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(sample() / f"sample.{part}") for part in ("train", "dev", "test")]
        nagisa.train.fit(*paths, os.path.join(folder, "model"), dropout_rate=0.0)
    return {"results": losses, "seconds": statistics.median(seconds[WARM_UP:])}


def child(action, steps, drop_in):
    """Runs one action in this process and prints its result as the last line."""
    sys.argv = sys.argv[:1]
    if drop_in:
        import autobatch.dynet

        autobatch.dynet.install()
    import nagisa.model  # noqa: F401  It makes nagisa's own modules importable by their short names.

    print(json.dumps(tag() if action == "tag" else fit(steps)))


def run(python, action, steps, *options):
    """Runs one action in another process."""
    command = [python, __file__, "--child", action, "--steps", str(steps), *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def compare(options):
    """Runs both actions under both libraries in turns and prints a table."""
    print("| nagisa | DyNet, ms | drop-in, ms | times as fast | results |\n|---|---|---|---|---|")
    for action in ("tag", "fit"):
        seconds, results = {"real": [], "own": []}, {}
        for _ in range(options.rounds):
            for name, python, extra in (("real", options.pythons[0], ()), ("own", options.pythons[1], ("--drop-in",))):
                found = run(python, action, options.steps, *extra)
                seconds[name].append(found["seconds"])
                results[name] = found["results"]
        real, own = (min(seconds[name]) for name in ("real", "own"))
        if action == "tag":
            equal = sum(one == other for one, other in zip(results["real"], results["own"]))
            title, verdict = f"tags {SENTENCES:,} sentences", f"{equal:,} of {SENTENCES:,} sentences have equal tags"
        else:
            worst = max(abs(one - other) / abs(one) for one, other in zip(results["real"], results["own"]))
            title, verdict = "`fit`, one step", f"the largest difference of {len(results['own'])} losses is {worst:.0e}"
        print(f"| {title} | {1e3 * real:,.2f} | {1e3 * own:,.2f} | {real / own:.2f} | {verdict} |", flush=True)


def main():
    """Reads the arguments."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("pythons", nargs="*", metavar="PYTHON")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--steps", type=int, default=24)
    arguments.add_argument("--child", choices=["tag", "fit"])
    arguments.add_argument("--drop-in", action="store_true")
    options = arguments.parse_args()
    if options.child:
        child(options.child, options.steps, options.drop_in)
    elif len(options.pythons) == 2:
        compare(options)
    else:
        arguments.error("name a Python with DyNet and a Python with this package")


if __name__ == "__main__":
    main()

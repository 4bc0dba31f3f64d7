"""The latency of one instance at a time in PyTorch or DyNet, as `autobatch bench latency MODEL` measures it.

Every call builds what depends on the instance, computes and reads the scores. Prints one line of JSON: percentiles in microseconds.
DyNet batches automatically within an instance. PyTorch computes a tree node by node (`--batched no`) or height by height, with its
index tensors made in the call (`--batched yes`); sequences are one call of its LSTM.

    python bench/peers/latency.py torch treelstm trees.json [--batched yes] [--calls 10000]
    python bench/peers/latency.py dynet names
"""
import argparse
import json
import random
import time

import instances

LETTERS, LANGUAGES = 57, 18
WORDS, TAGS, EMBEDDING, TAGGER_HIDDEN, BOTTLENECK = 10_000, 17, 128, 50, 32


def percentiles(call, inputs, calls):
    """Calls with the inputs in turns, after each input once."""
    for one in inputs:
        call(one)
    times = []
    for number in range(calls):
        start = time.perf_counter()
        call(inputs[number % len(inputs)])
        times.append((time.perf_counter() - start) * 1e6)
    times.sort()
    return {f"p{percent}": round(times[len(times) * percent // 100], 1) for percent in (50, 90, 99)}


def sequences(seed, count, mean, deviation, least, most, below):
    rng = random.Random(seed)
    lengths = [min(most, max(least, round(rng.gauss(mean, deviation)))) for _ in range(count)]
    return [[rng.randrange(below) for _ in range(length)] for length in lengths]


def names():
    return sequences(1, 128, 7, 2, 2, 20, LETTERS)


def sentences():
    return sequences(1, 64, 20, 8, 3, 60, WORDS)


def with_torch(args):
    import torch
    from torch import nn
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(1)
    if args.model == "treelstm":
        from pytorch_by_hand import Levels, TreeLstm

        model = TreeLstm(args.hidden or 100)
        zero = torch.zeros(args.hidden or 100)

        def encode(tree):
            if isinstance(tree, int):
                return model.words.weight[tree], zero
            (left_h, left_c), (right_h, right_c) = (encode(child) for child in tree)
            h, c = model.node(torch.cat([left_h, right_h]).unsqueeze(0), torch.cat([left_c, right_c]).unsqueeze(0))
            return h[0], c[0]

        def scores(tree):
            return model(Levels([tree])) if args.batched == "yes" else model.out(encode(tree)[0])

        inputs = instances.read(args.data)[0]
    elif args.model == "names":
        lstm, out = nn.LSTM(LETTERS, args.hidden or 128), nn.Linear(args.hidden or 128, LANGUAGES)

        def scores(name):
            letters = functional.one_hot(torch.tensor(name), LETTERS).float()
            return torch.log_softmax(out(lstm(letters.unsqueeze(1))[1][0][0, 0]), 0)

        inputs = names()
    else:
        hidden = args.hidden or TAGGER_HIDDEN
        words, lstm = nn.Embedding(WORDS, EMBEDDING), nn.LSTM(EMBEDDING, hidden, bidirectional=True)
        narrow, tags = nn.Linear(2 * hidden, BOTTLENECK), nn.Linear(BOTTLENECK, TAGS)

        def scores(sentence):
            states = lstm(words(torch.tensor(sentence)).unsqueeze(1))[0][:, 0]
            return tags(torch.tanh(narrow(states)))

        inputs = sentences()

    def call(one):
        with torch.inference_mode():
            scores(one).tolist()

    return percentiles(call, inputs, args.calls)


def with_dynet(args):
    import dynet_config

    dynet_config.set(mem="512", autobatch=1, random_seed=1)
    import dynet as dy

    collection = dy.ParameterCollection()
    if args.model == "treelstm":
        hidden = args.hidden or 100
        words = collection.add_lookup_parameters((instances.WORDS, hidden))
        shapes = [(5 * hidden, hidden), (5 * hidden, hidden), (5 * hidden,), (instances.CLASSES, hidden), (instances.CLASSES,)]
        left, right, bias, out, out_bias = [collection.add_parameters(shape) for shape in shapes]

        def encode(tree, zero):
            if isinstance(tree, int):
                return words[tree], zero
            (left_h, left_c), (right_h, right_c) = (encode(child, zero) for child in tree)
            gates = dy.affine_transform([bias, left, left_h, right, right_h])
            a, i, f, g, o = (dy.pick_range(gates, part * hidden, (part + 1) * hidden) for part in range(5))
            c = dy.cmult(dy.tanh(a), dy.logistic(i)) + dy.cmult(dy.logistic(f), left_c) + dy.cmult(dy.logistic(g), right_c)
            return dy.cmult(dy.logistic(o), dy.tanh(c)), c

        def scores(tree):
            return [dy.affine_transform([out_bias, out, encode(tree, dy.zeros(hidden))[0]])]

        inputs = instances.read(args.data)[0]
    elif args.model == "names":
        hidden = args.hidden or 128
        lstm = dy.VanillaLSTMBuilder(1, LETTERS, hidden, collection)
        out, bias = collection.add_parameters((LANGUAGES, hidden)), collection.add_parameters((LANGUAGES,))
        rows = [[float(at == letter) for at in range(LETTERS)] for letter in range(LETTERS)]

        def scores(name):
            state = lstm.initial_state().add_inputs([dy.inputVector(rows[letter]) for letter in name])[-1]
            return [dy.log_softmax(dy.affine_transform([bias, out, state.output()]))]

        inputs = names()
    else:
        hidden = args.hidden or TAGGER_HIDDEN
        words = collection.add_lookup_parameters((WORDS, EMBEDDING))
        forward, backward = (dy.VanillaLSTMBuilder(1, EMBEDDING, hidden, collection) for _ in range(2))
        shapes = [(BOTTLENECK, 2 * hidden), (BOTTLENECK,), (TAGS, BOTTLENECK), (TAGS,)]
        narrow, narrow_bias, tags, tags_bias = [collection.add_parameters(shape) for shape in shapes]

        def scores(sentence):
            xs = [words[word] for word in sentence]
            ahead, back = forward.initial_state().transduce(xs), backward.initial_state().transduce(xs[::-1])[::-1]
            states = [dy.concatenate(list(pair)) for pair in zip(ahead, back)]
            narrowed = [dy.tanh(dy.affine_transform([narrow_bias, narrow, state])) for state in states]
            return [dy.affine_transform([tags_bias, tags, state]) for state in narrowed]

        inputs = sentences()

    def call(one):
        dy.renew_cg()
        made = scores(one)
        dy.forward(made)
        [score.npvalue() for score in made]

    return percentiles(call, inputs, args.calls)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", choices=["torch", "dynet"])
    parser.add_argument("model", choices=["treelstm", "names", "tagger"])
    parser.add_argument("data", nargs="?", help="trees as instances.py writes them")
    parser.add_argument("--batched", choices=["yes", "no"], default="no")
    parser.add_argument("--hidden", type=int, help="the width of states [default: that of the model]")
    parser.add_argument("--calls", type=int, default=10_000)
    args = parser.parse_args()
    print(json.dumps((with_torch if args.system == "torch" else with_dynet)(args)))


if __name__ == "__main__":
    main()

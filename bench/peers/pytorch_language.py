"""A language model in PyTorch over packed sequences, as `autobatch bench lm` computes it: an LSTM with tied word vectors.

Prints {"seconds_per_step": x} and {"more_bytes": y}, the memory that the steps took. Sentences are drawn from a fixed seed; `--dump-data` writes
them for `autobatch bench lm --peer-data FILE`. Sorting and packing are made before the measurement, which favours this
program. The loss is computed in one of three ways: `plain` keeps all scores; `blocks` computes those of some words at a time,
and again in the reverse; `fused` is `torch.nn.functional.linear_cross_entropy` with its options for chunks.

    python bench/peers/pytorch_language.py [--mode train] [--hidden 256] [--how fused] [--device cuda]
"""
import argparse
import json
import math
import random
import resource

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_sequence
from torch.utils.checkpoint import checkpoint

import timing

WORDS, SENTENCES, MEAN_LENGTH, DEVIATION, MIN_LENGTH, MAX_LENGTH = 50_000, 100, 20, 8, 3, 60


class LanguageModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.words = nn.Embedding(WORDS + 1, hidden)
        nn.init.uniform_(self.words.weight, -0.5, 0.5)
        self.lstm = nn.LSTM(hidden, hidden)

    def losses(self, states, labels):
        return functional.cross_entropy(functional.linear(states, self.words.weight), labels, reduction="none")

    def forward(self, words, labels, how, blocks):
        """The sum of the losses."""
        states = self.lstm(PackedSequence(self.words(words.data), words.batch_sizes))[0].data
        if how == "fused":
            options = nn.LinearCrossEntropyOptions()
            return functional.linear_cross_entropy(states, self.words.weight, labels, reduction="sum", options=options)
        if how == "plain":
            return self.losses(states, labels).sum()
        parts = zip(states.split(blocks), labels.split(blocks))
        return sum(checkpoint(self.losses, s, l, use_reentrant=False).sum() for s, l in parts)


def drawn():
    """Sentences of words whose frequency is about the inverse of their number."""
    rng = random.Random(1)
    lengths = [min(MAX_LENGTH, max(MIN_LENGTH, round(rng.gauss(MEAN_LENGTH, DEVIATION)))) for _ in range(SENTENCES)]
    word = lambda: min(WORDS - 1, int(math.expm1(rng.random() * math.log1p(WORDS))))
    return [[word() for _ in range(length)] for length in lengths]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["infer", "train"], default="infer")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--how", choices=["plain", "blocks", "fused"], default="plain")
    parser.add_argument("--blocks", type=int, default=256, help="words whose scores are in memory at once")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of the measurement")
    parser.add_argument("--device", default="cpu", help="where PyTorch computes: cpu, cuda")
    parser.add_argument("--dump-data", metavar="FILE", help="only write the sentences as JSON")
    args = parser.parse_args()
    words = drawn()
    if args.dump_data:
        with open(args.dump_data, "w") as file:
            json.dump({"words": words}, file)
        return
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)

    def packed(rows):
        return pack_sequence([torch.tensor(row) for row in sorted(rows, key=len, reverse=True)]).to(args.device)

    labels = packed([sentence + [WORDS] for sentence in words]).data
    words = packed([[WORDS] + sentence for sentence in words])
    model = LanguageModel(args.hidden).to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=timing.LEARNING_RATE, fused=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    # Results return to the host, which waits for a GPU.
    def infer():
        with torch.inference_mode():
            model(words, labels, args.how, args.blocks).cpu()

    def train():
        optimizer.zero_grad()
        loss = model(words, labels, args.how, args.blocks) / SENTENCES
        loss.backward()
        optimizer.step()
        loss.item()

    timing.measure(train if args.mode == "train" else infer, args.seconds, None)
    print(json.dumps({"more_bytes": 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)}))


if __name__ == "__main__":
    main()

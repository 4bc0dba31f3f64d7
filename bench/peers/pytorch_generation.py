"""Greedy generation in PyTorch with a key-value cache, as the example `generation_speed` generates.

A causal encoder of two layers with norms after attention and after the feed-forward network, 4 heads and 1,000 words. The caches are
allocated before the measurement, and all sentences have one length, which favours this program. With `--beam` each sentence keeps 4
hypotheses, whose caches are reordered by index in every step.

    python bench/peers/pytorch_generation.py [--width 128] [--length 128] [--threads 1]
"""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional

WORDS, HEADS, LAYERS, BEAM = 1000, 4, 2, 4
SENTENCES = (1, 8, 64)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x, cache, at):
        count, width = x.shape
        query, key, value = self.project(x).view(count, 3, HEADS, width // HEADS).unbind(1)
        cache[0][:, :, at], cache[1][:, :, at] = key, value
        keys, values = cache[0][:, :, :at + 1], cache[1][:, :, :at + 1]
        read = functional.scaled_dot_product_attention(query.unsqueeze(2), keys, values)
        x = self.norms[0](x + self.out(read.reshape(count, width)))
        return self.norms[1](x + self.narrow(functional.relu(self.wide(x))))


class Writer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words, self.next = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
        self.layers = nn.ModuleList(Layer(width) for _ in range(LAYERS))

    def scores(self, words, caches, at):
        x = self.words(words)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache, at)
        return self.next(x)


def greedy(model, caches, words, length):
    for at in range(length):
        words = model.scores(words, caches, at).argmax(1)
    return words.tolist()


def word_times(model, length, least=10_000):
    """Microseconds from word to word of single sentences, one after the other, greedily; ascending."""
    times = []
    while len(times) < least:
        shape = (LAYERS, 2, 1, HEADS, length, model.words.embedding_dim // HEADS)
        caches, words, ends = torch.zeros(shape), torch.zeros(1, dtype=torch.long), []
        for at in range(length):
            words = model.scores(words, caches, at).argmax(1)
            words.tolist()
            ends.append(time.perf_counter())
        times += [1e6 * (end - start) for start, end in zip(ends, ends[1:])]
    return sorted(times)


def drawn(model, caches, words, length):
    for at in range(length):
        words = torch.multinomial(model.scores(words, caches, at).softmax(1), 1)[:, 0]
    return words.tolist()


def beam(model, caches, words, length):
    count = len(words)
    words = words.repeat_interleave(BEAM)
    total = torch.full((count, BEAM), -torch.inf)
    total[:, 0] = 0
    first = torch.arange(count).unsqueeze(1) * BEAM
    for at in range(length):
        scores = model.scores(words, caches, at).log_softmax(1).view(count, BEAM, WORDS) + total.unsqueeze(2)
        total, best = scores.flatten(1).topk(BEAM)
        parents, words = (first + best // WORDS).flatten(), (best % WORDS).flatten()
        for cache in caches:
            for side in cache:
                side[:, :, :at + 1] = side[parents, :, :at + 1]
    return words.tolist()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    model = Writer(args.width)
    print(f"sentences       greedy        drawn    beam of {BEAM}   words a second, width {args.width}")
    for count in SENTENCES:
        best = []
        for way in (greedy, drawn, beam):
            rows = count * (BEAM if way is beam else 1)
            shape = (LAYERS, 2, rows, HEADS, args.length, args.width // HEADS)
            caches, times = torch.zeros(shape), []
            for _ in range(args.rounds + 1):
                start = time.perf_counter()
                with torch.inference_mode():
                    way(model, caches, torch.arange(count) % WORDS, args.length)
                times.append(time.perf_counter() - start)
            best.append(count * args.length / min(times[1:]))
        print(f"{count:>9} {best[0]:>12.0f} {best[1]:>12.0f} {best[2]:>12.0f}", flush=True)
    with torch.inference_mode():
        times = word_times(model, args.length)
    p50, p99 = (times[len(times) * percent // 100] for percent in (50, 99))
    print(f"one sentence: {p50:.0f} microseconds a word, p50, and {p99:.0f}, p99, of {len(times)}")


if __name__ == "__main__":
    main()

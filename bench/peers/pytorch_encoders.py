"""Encoders over sentences of unequal lengths in PyTorch: padded, padded in buckets of similar length, and packed.

Packed means without padding: the rows of all sentences in one matrix, and attention sentence by sentence.

The models, lengths and words are those of the example `encoders` of the CPU runtime, and so are the measured steps: inference,
and forward and reverse of a training step without the update. Masks are made before the measurement, which favours this program.

    python bench/peers/pytorch_encoders.py [--threads 1] [--rounds 5] [--device cuda]
"""
import argparse
import math
import time
import typing

import torch
from torch import nn
from torch.nn import functional

WORDS, TAGS, HEADS, LAYERS = 10_000, 17, 4, 2
SENTENCES = {"short": (64, 10, 30), "long": (32, 5, 200)}
BUCKETS = (1, 4, 8)


class Layer(nn.Module):
    """An encoder layer with norms after attention and after the feed-forward network."""

    def __init__(self, width):
        super().__init__()
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x, mask):
        count, length, width = x.shape
        heads = self.project(x).view(count, length, 3, HEADS, width // HEADS)
        if isinstance(mask, Packed):
            parts = heads.split(mask.lengths, 1)
            read = torch.cat([attended(part, is_causal=mask.is_causal) for part in parts], 1)
        else:
            read = attended(heads, attn_mask=mask)
        x = self.norms[0](x + self.out(read))
        return self.norms[1](x + self.narrow(functional.relu(self.wide(x))))


class Packed(typing.NamedTuple):
    """What takes the place of a mask if the rows of all sentences are one batch."""

    lengths: list
    is_causal: bool


def attended(heads, **options):
    """The attention over queries, keys and values of all heads, `[count, length, 3, HEADS, width / HEADS]`."""
    query, key, value = heads.permute(2, 0, 3, 1, 4)
    read = functional.scaled_dot_product_attention(query, key, value, **options)
    return read.transpose(1, 2).flatten(2)


class Tagger(nn.Module):
    """Words to the sum of the losses of their tags."""

    def __init__(self, width):
        super().__init__()
        self.words, self.tags = nn.Embedding(WORDS, width), nn.Linear(width, TAGS)
        self.layers = nn.ModuleList(Layer(width) for _ in range(LAYERS))

    def forward(self, words, mask, tags):
        x = self.words(words)
        for layer in self.layers:
            x = layer(x, mask)
        scores = self.tags(x).flatten(0, 1)
        return functional.cross_entropy(scores, tags.flatten(), ignore_index=-1, reduction="sum")


def drawn(count, least, most):
    """The lengths that the example draws."""
    state, lengths = 1, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        lengths.append(least + (state >> 33) % (most - least + 1))
    return lengths


def padded(lengths, is_causal):
    """Words, mask and tags of one batch."""
    longest = max(lengths)
    words = torch.zeros(len(lengths), longest, dtype=torch.long)
    tags = torch.full((len(lengths), longest), -1)
    for row, length in enumerate(lengths):
        words[row, :length] = torch.arange(length) * 7919 % WORDS
        tags[row, :length] = torch.arange(length) % TAGS
    seen = torch.arange(longest)[None, :] < torch.tensor(lengths)[:, None]
    seen = seen[:, None, None, :].expand(len(lengths), 1, longest, longest)
    if is_causal:
        seen = seen & torch.ones(longest, longest, dtype=torch.bool).tril()
    return words, torch.zeros(seen.shape).masked_fill(~seen, -1e9), tags


def packed(lengths, is_causal):
    """The same as one batch without padding."""
    words = torch.cat([torch.arange(length) * 7919 % WORDS for length in lengths])
    tags = torch.cat([torch.arange(length) % TAGS for length in lengths])
    return words[None], Packed(lengths, is_causal), tags[None]


def infer(model, batches):
    with torch.no_grad():
        return sum(float(model(*batch)) for batch in batches)


def train(model, batches):
    model.zero_grad(set_to_none=True)
    for batch in batches:
        loss = model(*batch)
        loss.backward()
    # The host waits for a GPU.
    loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu", help="where PyTorch computes: cpu, cuda")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_default_device(args.device)
    torch.manual_seed(1)
    print("sentences  width   reads  buckets    infer, ms    train, ms")
    for name, sizes in SENTENCES.items():
        for width in (128, 256):
            for is_causal in (False, True):
                measure(name, sorted(drawn(*sizes)), width, is_causal, args.rounds)


def measure(name, lengths, width, is_causal, rounds):
    model, least = Tagger(width), {}
    cuts = {count: math.ceil(len(lengths) / count) for count in BUCKETS}
    batches = {
        count: [padded(lengths[at:at + size], is_causal) for at in range(0, len(lengths), size)]
        for count, size in cuts.items()
    }
    batches["packed"] = [packed(lengths, is_causal)]
    for _ in range(rounds + 1):
        for count in batches:
            for step in (infer, train):
                start = time.perf_counter()
                step(model, batches[count])
                taken = (time.perf_counter() - start) * 1e3
                least[count, step] = min(taken, least.get((count, step), math.inf))
    reads = "causal" if is_causal else "all"
    for count in batches:
        times = (least[count, infer], least[count, train])
        print(f"{name:>9} {width:>6} {reads:>7} {count:>8} {times[0]:>12.1f} {times[1]:>12.1f}", flush=True)


if __name__ == "__main__":
    main()

"""A BiLSTM tagger in PyTorch over packed sequences, as `autobatch bench tagger` computes it; with `--crf` as `autobatch bench crf`.

Prints one line of JSON, {"seconds_per_step": x}. Sentences are drawn from a fixed seed; `--dump-data` writes them for
`autobatch bench tagger --peer-data FILE`. Sorting and packing are made before the measurement, which favours this program.

    python bench/peers/pytorch_tagger.py [--crf] [--mode train] [--hidden 50] [--embedding 128] [--device cuda]
"""
import argparse
import json
import random

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import timing

WORDS, TAGS, BOTTLENECK = 10_000, 17, 32
SENTENCES, MEAN_LENGTH, DEVIATION, MIN_LENGTH, MAX_LENGTH = 64, 20, 8, 3, 60


class Tagger(nn.Module):
    def __init__(self, embedding, hidden):
        super().__init__()
        self.words = nn.Embedding(WORDS, embedding)
        self.lstm = nn.LSTM(embedding, hidden, bidirectional=True)
        self.narrow, self.tags = nn.Linear(2 * hidden, BOTTLENECK), nn.Linear(BOTTLENECK, TAGS)

    def forward(self, words):
        packed = PackedSequence(self.words(words.data), words.batch_sizes)
        return self.tags(torch.tanh(self.narrow(self.lstm(packed)[0].data)))


class Crf(nn.Module):
    """A conditional random field over packed scores. Sentences are sorted by length, so a step goes over the first of them."""

    def __init__(self):
        super().__init__()
        self.transitions = nn.Parameter(torch.rand(TAGS, TAGS) * 0.2 - 0.1)
        self.start, self.end = (nn.Parameter(torch.rand(TAGS) * 0.2 - 0.1) for _ in range(2))

    def forward(self, scores, words, tags):
        """The sum of the losses of all sentences."""
        alpha, gold, last = None, None, None
        for s, tag in zip(scores.split(words.batch_sizes.tolist()), tags.split(words.batch_sizes.tolist())):
            own, count = s.gather(1, tag.unsqueeze(1)).squeeze(1), len(tag)
            if alpha is None:
                alpha, gold, last = s + self.start, own + self.start[tag], tag
                continue
            next_alpha = torch.logsumexp(alpha[:count].unsqueeze(1) + self.transitions, 2) + s
            alpha = torch.cat([next_alpha, alpha[count:]])
            gold = torch.cat([gold[:count] + own + self.transitions[tag, last[:count]], gold[count:]])
            last = torch.cat([tag, last[count:]])
        return (torch.logsumexp(alpha + self.end, 1) - gold - self.end[last]).sum()

    def decode(self, scores, words):
        """The best tags, step by step."""
        best, before = None, []
        for s in scores.split(words.batch_sizes.tolist()):
            if best is None:
                best = s + self.start
                continue
            top, from_tag = (best[:len(s)].unsqueeze(1) + self.transitions).max(2)
            best = torch.cat([top + s, best[len(s):]])
            before.append(from_tag)
        tag = (best + self.end).argmax(1)
        tags = [tag]
        for from_tag in reversed(before):
            count = len(from_tag)
            tag = torch.cat([from_tag.gather(1, tag[:count].unsqueeze(1)).squeeze(1), tag[count:]])
            tags.append(tag)
        return torch.cat(tags)


def drawn():
    """Sentences and their tags."""
    rng = random.Random(1)
    lengths = [min(MAX_LENGTH, max(MIN_LENGTH, round(rng.gauss(MEAN_LENGTH, DEVIATION)))) for _ in range(SENTENCES)]
    words = [[rng.randrange(WORDS) for _ in range(length)] for length in lengths]
    return words, [[rng.randrange(TAGS) for _ in sentence] for sentence in words]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crf", action="store_true", help="a conditional random field over the tags")
    parser.add_argument("--mode", choices=["infer", "train"], default="infer")
    parser.add_argument("--embedding", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of the measurement")
    parser.add_argument("--device", default="cpu", help="where PyTorch computes: cpu, cuda")
    parser.add_argument("--dump-data", metavar="FILE", help="only write the sentences as JSON")
    args = parser.parse_args()
    words, tags = drawn()
    if args.dump_data:
        with open(args.dump_data, "w") as file:
            json.dump({"words": words, "tags": tags}, file)
        return
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)

    def packed(rows):
        sequences = [torch.tensor(row) for row in sorted(rows, key=len, reverse=True)]
        return pack_sequence(sequences).to(args.device)

    words, tags = packed(words), packed(tags).data
    model = Tagger(args.embedding, args.hidden).to(args.device)
    if args.crf:
        model.crf = Crf().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=timing.LEARNING_RATE, fused=True)

    # Results return to the host, which waits for a GPU.
    def infer():
        with torch.inference_mode():
            (model.crf.decode(model(words), words) if args.crf else model(words)).cpu()

    def train():
        optimizer.zero_grad()
        scores = model(words)
        loss = model.crf(scores, words, tags) if args.crf else functional.cross_entropy(scores, tags, reduction="sum")
        loss = loss / SENTENCES
        loss.backward()
        optimizer.step()
        loss.item()

    timing.measure(train if args.mode == "train" else infer, args.seconds, None)


if __name__ == "__main__":
    main()

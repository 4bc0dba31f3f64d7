"""Tags sequences of any length with a bidirectional LSTM.

    python python/examples/bilstm_tagger.py [--steps 150] [--sentences 32]

The tag of a digit says whether it is larger than its left neighbour, and than its right one. Weights make the loss the mean over
all digits. The example prints the accuracy on new sequences and the digits a second, and where PyTorch is installed those of the
same model in eager PyTorch, sequence by sequence.
"""

import argparse
import random
import time

import autobatch as ab

WIDTH, TAGS = 64, 4


def tags_of(digits: list[int]) -> list[int]:
    """The tags of a sequence."""
    padded = [0, *digits, 0]
    return [(here > before) + 2 * (here > after) for before, here, after in zip(padded, padded[1:], padded[2:])]


module = ab.Module("tagger")
words = ab.nn.Embedding(module, "words", 10, WIDTH)
encoder = ab.nn.BiLSTM(module, "encoder", WIDTH, WIDTH)
out = ab.nn.Linear(module, "out", 2 * WIDTH, TAGS)


def scores(digits: list[int]) -> list[ab.Value]:
    """The scores of the tags of each digit."""
    return [out(state) for state in encoder.run([words(digit) for digit in digits])]


def loss(digits: list[int]) -> ab.Value:
    """The sum of the losses of a sequence."""
    return ab.total([row.cross_entropy(tag) for row, tag in zip(scores(digits), tags_of(digits))])


def eager(batches: list[list[list[int]]]) -> float:
    """Trains the same model in eager PyTorch. Returns the digits a second."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    embedding, lstm = nn.Embedding(10, WIDTH), nn.LSTM(WIDTH, WIDTH, bidirectional=True)
    linear = nn.Linear(2 * WIDTH, TAGS)
    optimizer = torch.optim.Adam([*embedding.parameters(), *lstm.parameters(), *linear.parameters()], 5e-3)
    start = time.perf_counter()
    for sentences in batches:
        total = torch.zeros(())
        for digits in sentences:
            states, _ = lstm(embedding(torch.tensor(digits)))
            total = total + nn.functional.cross_entropy(linear(states), torch.tensor(tags_of(digits)), reduction="sum")
        optimizer.zero_grad()
        (total / sum(map(len, sentences))).backward()
        optimizer.step()
    return sum(len(digits) for sentences in batches for digits in sentences) / (time.perf_counter() - start)


def main() -> None:
    """Trains and prints."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    arguments.add_argument("--steps", type=int, default=150)
    arguments.add_argument("--sentences", type=int, default=32)
    options = arguments.parse_args()
    rng = random.Random(1)
    drawn = [[rng.randrange(10) for _ in range(rng.randint(3, 40))] for _ in range(options.steps * options.sentences)]
    batches = list(ab.data.batches(drawn, options.sentences, key=len, seed=1))
    trainer = ab.Trainer(module, ab.optim.Adam(5e-3), threads=1)
    start = time.perf_counter()
    losses = [trainer.step(sentences, loss, weights=len).loss for sentences in batches]
    rate = sum(map(len, drawn)) / (time.perf_counter() - start)
    new = [[rng.randrange(10) for _ in range(rng.randint(3, 40))] for _ in range(200)]
    hits = [
        int(row.argmax()) == tag
        for digits, rows in zip(new, trainer.predict(new, scores)) for row, tag in zip(rows, tags_of(digits))
    ]
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {sum(hits) / len(hits):.3f}, {rate:,.0f} digits/s")
    try:
        few = eager(batches[:5])
    except ImportError:
        return
    print(f"eager PyTorch: {few:,.0f} digits/s, {rate / few:.1f} times slower")


if __name__ == "__main__":
    main()

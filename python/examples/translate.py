"""Translates sequences with attention, and searches for the best translation with a beam, many sequences at once.

    python python/examples/translate.py [--steps 1200] [--pairs 32]

The translation of a sequence of digits is the sequence backwards, each digit d as 9 - d. Decoding runs as tasks: the steps of all
searches execute together. The example prints the share of new sequences that it translates without a fault, and the symbols a
second of training and of the search; where PyTorch is installed, also those of training in eager PyTorch, pair by pair.
"""

import argparse
import random
import time
from typing import Any

import autobatch as ab

WIDTH, START, END = 64, 10, 10
"""The number of the start among the symbols that are read, and of the end among those that are written."""


def translated(digits: list[int]) -> list[int]:
    """The translation."""
    return [9 - digit for digit in reversed(digits)]


module = ab.Module("translate")
words = ab.nn.Embedding(module, "words", 11, WIDTH)
encoder, decoder = ab.nn.BiLSTM(module, "encoder", WIDTH, WIDTH // 2), ab.nn.LSTM(module, "decoder", WIDTH, WIDTH)
out = ab.nn.Linear(module, "out", 2 * WIDTH, 11)


def encoded(digits: list[int]) -> ab.Value:
    """The states of the encoder, as a list."""
    return ab.list(encoder.run([words(digit) for digit in digits]))


def attended(states: ab.Value, query: ab.Value) -> ab.Value:
    """The scores of the next symbol, from a state of the decoder."""
    return out(query, ab.attend(query, states, states, WIDTH**-0.5))


def loss(digits: list[int]) -> ab.Value:
    """The sum of the losses of a translation."""
    target, states = translated(digits), encoded(digits)
    queries = decoder.run([words(symbol) for symbol in [START, *target]])
    return ab.total([attended(states, query).cross_entropy(symbol) for query, symbol in zip(queries, [*target, END])])


async def search(digits: list[int]) -> list[int]:
    """The best translation that a beam finds."""
    states = encoded(digits)

    def step(state: Any, symbol: int) -> tuple[ab.Value, Any]:
        state = state.push(words(symbol))
        return attended(states, state.h), state

    found = await ab.decode.beam(step, decoder.start(), start=START, end=END, width=4, limit=30)
    return found[0].symbols


def eager(batches: list[list[list[int]]]) -> float:
    """Trains the same model in eager PyTorch. Returns the symbols a second."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    embedding, linear = nn.Embedding(11, WIDTH), nn.Linear(2 * WIDTH, 11)
    forth, back = nn.LSTM(WIDTH, WIDTH // 2, bidirectional=True), nn.LSTM(WIDTH, WIDTH)
    optimizer = torch.optim.Adam(nn.ModuleList([embedding, linear, forth, back]).parameters(), 5e-3)
    start = time.perf_counter()
    for pairs in batches:
        total = torch.zeros(())
        for digits in pairs:
            target = translated(digits)
            states, _ = forth(embedding(torch.tensor(digits)))
            queries, _ = back(embedding(torch.tensor([START, *target])))
            read = torch.softmax(queries @ states.T * WIDTH**-0.5, -1) @ states
            scores = linear(torch.cat([queries, read], -1))
            total = total + nn.functional.cross_entropy(scores, torch.tensor([*target, END]), reduction="sum")
        optimizer.zero_grad()
        (total / sum(len(digits) + 1 for digits in pairs)).backward()
        optimizer.step()
    return sum(len(digits) + 1 for pairs in batches for digits in pairs) / (time.perf_counter() - start)


def main() -> None:
    """Trains and prints."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    arguments.add_argument("--steps", type=int, default=1200)
    arguments.add_argument("--pairs", type=int, default=32)
    options = arguments.parse_args()
    rng = random.Random(1)

    def draw(count: int) -> list[list[int]]:
        return [[rng.randrange(10) for _ in range(rng.randint(2, 12))] for _ in range(count)]

    batches = list(ab.data.batches(draw(options.steps * options.pairs), options.pairs, seed=1))
    trainer = ab.Trainer(module, ab.optim.Adam(5e-3, clip_norm=1.0), threads=1)
    start = time.perf_counter()
    losses = [trainer.step(pairs, loss, weights=lambda digits: len(digits) + 1).loss for pairs in batches]
    rate = sum(len(digits) + 1 for pairs in batches for digits in pairs) / (time.perf_counter() - start)
    new = draw(200)
    start = time.perf_counter()
    found = trainer.session().tasks(new, search)
    searched = sum(len(symbols) + 1 for symbols in found) / (time.perf_counter() - start)
    hits = sum(symbols == translated(digits) for symbols, digits in zip(found, new))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, {hits / len(new):.3f} without a fault, "
          f"{rate:,.0f} symbols/s in training, {searched:,.0f} in the search")
    try:
        few = eager(batches[:5])
    except ImportError:
        return
    print(f"eager PyTorch: {few:,.0f} symbols/s in training, {rate / few:.1f} times slower")


if __name__ == "__main__":
    main()

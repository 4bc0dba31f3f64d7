"""Searches for sequences of symbols: `async` functions for `Session.tasks`.

A model gives a function `step(state, symbol)`, which emits the scores of the next symbols, one a symbol, and the next state. The
state is anything: values, tuples of values, or None. Tasks of many inputs execute their steps together.

    async def translate(sentence):
        return await beam(step, encode(sentence), start=BOS, end=EOS, width=4, limit=50)

    best = [found[0].symbols for found in session.tasks(sentences, translate)]
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._autobatch import Value, gather

__all__ = ["Found", "beam", "greedy", "sample"]

Next = Callable[[Any, int], tuple[Value, Any]]
"""The scores of the next symbols and the next state, from a state and its last symbol."""


@dataclass(frozen=True)
class Found:
    """A sequence without its start and end, and the sum of the log-probabilities of its symbols and its end."""

    symbols: list[int]
    score: float
    ended: bool
    """Whether the sequence reached its end within the limit."""


def _log_softmax(scores: NDArray[Any]) -> NDArray[np.float64]:
    scores = np.asarray(scores, dtype=np.float64).ravel()
    largest = scores.max()
    if math.isnan(largest):
        raise ValueError("the scores of the next symbols hold NaN, so no symbol is the most probable; find its cause with set_watch")
    if largest == -math.inf:
        raise ValueError("all next symbols are masked with minus infinity, so there is no next symbol")
    shifted = scores - largest
    return np.asarray(shifted - math.log(np.exp(shifted).sum()))


async def greedy(step: Next, state: Any, *, start: int, end: int, limit: int = 100) -> Found:
    """Returns the `Found` sequence that takes the most probable symbol at each step, at most `limit` symbols."""
    return await _path(step, state, start, end, limit, lambda scores: int(np.argmax(scores)))


async def sample(
    step: Next, state: Any, *, start: int, end: int, random: np.random.Generator, temperature: float = 1.0,
    top_k: int | None = None, limit: int = 100,
) -> Found:
    """Returns a `Found` sequence whose symbols a numpy generator draws.

    A temperature below 1 prefers probable symbols, and `top_k` allows only that many of them.
    """
    if not temperature > 0:
        raise ValueError(f"a temperature is a positive number, found {temperature}; greedy() takes the most probable symbol")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k is at least 1, found {top_k}")

    def choose(scores: NDArray[Any]) -> int:
        scores = np.asarray(scores, dtype=np.float64).ravel() / temperature
        if top_k is not None:
            scores[np.argsort(-scores, kind="stable")[top_k:]] = -math.inf
        probabilities = np.exp(_log_softmax(scores))
        return int(random.choice(len(probabilities), p=probabilities / probabilities.sum()))

    return await _path(step, state, start, end, limit, choose)


async def _path(
    step: Next, state: Any, start: int, end: int, limit: int, choose: Callable[[NDArray[Any]], int]
) -> Found:
    symbols: list[int] = []
    total, symbol = 0.0, start
    for _ in range(limit):
        scores, state = step(state, symbol)
        numbers = await scores
        known = _log_softmax(numbers)
        symbol = choose(numbers)
        total += float(known[symbol])
        if symbol == end:
            return Found(symbols, total, True)
        symbols.append(symbol)
    return Found(symbols, total, False)


async def beam(
    step: Next, state: Any, *, start: int, end: int, width: int = 4, limit: int = 100, length_penalty: float = 0.0
) -> list[Found]:
    """Returns the `Found` sequences of a beam search, the best first, at most `width` of them.

    Sequences are compared by their scores divided by `length ** length_penalty`; the length counts the end. Sequences that
    reached the limit are returned if none reached its end.
    """
    if width < 1:
        raise ValueError(f"a beam has a width of at least 1, found {width}")

    def ranked(found: Found) -> float:
        return float(found.score / max(len(found.symbols) + found.ended, 1) ** length_penalty)

    open_: list[tuple[float, list[int], Any, int]] = [(0.0, [], state, start)]
    ended: list[Found] = []
    for _ in range(limit):
        stepped = [step(state, symbol) for _, _, state, symbol in open_]
        known = [_log_softmax(scores) for scores in await gather(*[scores for scores, _ in stepped])]
        candidates = []
        for number, ((score, symbols, _, _), scores) in enumerate(zip(open_, known)):
            for symbol in np.argsort(-scores, kind="stable")[: width + 1]:
                if scores[symbol] > -math.inf:
                    candidates.append((score + float(scores[symbol]), number, int(symbol)))
        candidates.sort(key=lambda candidate: -candidate[0])
        following = []
        for score, number, symbol in candidates:
            symbols = open_[number][1]
            if symbol == end:
                ended.append(Found(symbols, score, True))
            else:
                following.append((score, [*symbols, symbol], stepped[number][1], symbol))
            if len(following) == width:
                break
        ended.sort(key=ranked, reverse=True)
        del ended[width:]
        open_ = following
        # Scores only fall, so without a penalty no open sequence can replace an ended one that is better now.
        if not open_ or length_penalty == 0.0 and len(ended) == width and ended[-1].score >= open_[0][0]:
            break
    return ended or sorted((Found(symbols, score, False) for score, symbols, _, _ in open_), key=ranked, reverse=True)

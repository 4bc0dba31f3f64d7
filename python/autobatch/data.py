"""Minibatches of items."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ._autobatch import batches_of

__all__ = ["batches"]

Item = TypeVar("Item")


def batches(
    items: Iterable[Item], size: int, *, key: Callable[[Item], int] | None = None, seed: int | None = None
) -> Iterator[list[Item]]:
    """Yields minibatches of at most `size` items, each a list.

    With `key`, such as `len`, items of similar size come together. With `seed`, minibatches and items of equal size come in
    an order that depends on the seed alone; give each epoch a seed of its own.

    >>> list(batches(["a", "bbb", "cc", "d"], 2, key=len))
    [['a', 'd'], ['cc', 'bbb']]
    """
    items = list(items)
    sizes = [0] * len(items) if key is None else [int(key(item)) for item in items]
    for positions in batches_of(sizes, size, seed):
        yield [items[position] for position in positions]

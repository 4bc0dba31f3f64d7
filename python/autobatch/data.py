"""Minibatches of items, and batches of data sets."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ._autobatch import batches_of

if TYPE_CHECKING:
    from ._autobatch import Session, Value

__all__ = ["Mapper", "batches"]

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


class Mapper:
    """Predicts batches of a column, as `map_batches` of Ray Data calls it: each actor makes a session of its own, once.

    `make()` returns a session and the function that emits the values of an item. The answers stand in the column `answers`.

        dataset.map_batches(
            Mapper, fn_constructor_args=(make, "tree"), compute=ray.data.ActorPoolStrategy(size=4), batch_size=1024
        )
    """

    def __init__(
        self, make: "Callable[[], tuple[Session, Callable[[Any], Value]]]", column: str, answers: str = "answer"
    ) -> None:
        self.session, self.emit = make()
        self.column, self.answers = column, answers

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        if self.column not in batch:
            raise KeyError(f"the batch has no column {self.column!r}; it has {', '.join(map(repr, batch))}")
        answers = self.session.predict(batch[self.column], self.emit)
        # Answers of one shape are one array; others are rows of objects.
        shapes = {getattr(answer, "shape", None) for answer in answers}
        if len(shapes) == 1 and None not in shapes:
            return {**batch, self.answers: np.stack(answers)}
        rows = np.empty(len(answers), dtype=object)
        rows[:] = answers
        return {**batch, self.answers: rows}

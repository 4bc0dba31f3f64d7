"""Training loops."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, TypeVar

from ._autobatch import balanced_order

if TYPE_CHECKING:
    from ._autobatch import Step, Trainer, Value

__all__ = ["balanced", "epoch"]

Item = TypeVar("Item")


def epoch(
    trainer: "Trainer",
    batches: Iterable[Sequence[Item]],
    loss: "Callable[[Item], Value]",
    *,
    weights: Callable[[Item], float] | None = None,
    together: int | None = None,
    progress: bool | None = None,
) -> "Iterator[Step]":
    """Trains on each minibatch, and yields the report of each step.

    `weights` and `together` are those of `Trainer.step`. A bar of tqdm shows the mean loss and the items in a second, where tqdm
    is installed and the output is a terminal or a notebook; `progress=True` insists on it, and `progress=False` shows nothing.

    >>> losses = [step.loss for step in epoch(trainer, data.batches(trees, 64, key=len, seed=1), loss)]  # doctest: +SKIP
    """
    total = len(batches) if isinstance(batches, Sized) else None
    with _bar(progress, total) as bar:
        summed, weight, instances = 0.0, 0.0, 0
        for batch in batches:
            step = trainer.step(batch, loss, weights=weights, together=together)
            if not step.skipped:
                summed, weight = summed + step.loss * step.weight, weight + step.weight
            instances += step.instances
            bar.update(step.instances, summed / weight if weight else float("nan"))
            yield step


def balanced(items: Sequence[Item], shards: int, cost: Callable[[Item], int]) -> list[Item]:
    """The items of a minibatch in an order such that its shards have nearly equal costs, for example numbers of tokens.

    Processes that share a minibatch then end at nearly the same time. The order depends on items, costs and `shards` alone.

    >>> balanced([9, 1, 8, 2, 7, 3, 6, 4], 4, lambda length: length)
    [9, 1, 8, 2, 7, 3, 6, 4]
    """
    return [items[position] for position in balanced_order([cost(item) for item in items], shards)]


class _bar:
    """A bar of tqdm, or nothing."""

    def __init__(self, progress: bool | None, total: int | None) -> None:
        self.bar, self.items = None, 0
        if progress is False:
            return
        try:
            from tqdm.auto import tqdm
        except ImportError:
            if progress:
                raise ImportError("progress=True needs tqdm; install it with: pip install tqdm") from None
            return
        # Without a wish, tqdm is silent where the output is no terminal. A notebook is none, but has bars.
        hidden = None if progress is None and "ipykernel" not in sys.modules else False
        self.bar = tqdm(total=total, unit="step", disable=hidden)

    def __enter__(self) -> "_bar":
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def update(self, instances: int, loss: float) -> None:
        """Shows one more step."""
        if self.bar is not None:
            self.items += instances
            rate = self.items / max(self.bar.format_dict["elapsed"], 1e-9)
            self.bar.set_postfix_str(f"loss {loss:.4f}, {rate:,.0f} items/s", refresh=False)
            self.bar.update()

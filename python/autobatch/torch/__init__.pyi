"""Models of PyTorch, written for one instance and executed for many."""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import List, Literal, TypeVar

from torch import Tensor, nn
from typing_extensions import Self

Item = TypeVar("Item")
Result = TypeVar("Result")

class batch:
    """Records the calls of torch's functions in a block, and computes what they return in a short plan of large kernels."""
    remedy: str
    ops: int
    flushes: int
    def __init__(self, unknown: Literal["error", "eager"] = "error", explain: bool = False, threads: int = 0) -> None:
        ...
    def __enter__(self) -> Self:
        ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        ...
    def flush(self) -> None:
        """Computes what was recorded so far."""
    def explain(self) -> str:
        """What the block did so far, as text: batches, modules that are one node, and calls that torch computed."""

def each(
    function: Callable[[Item], Result], items: Iterable[Item], *, unknown: Literal["error", "eager"] = "error", threads: int = 0
) -> List[Result]:
    """Calls a function on every item, each in a context of its own, and returns the list of results."""

class Node:
    """A call of a method."""
    def split(self, count: int) -> tuple[Node, ...]:
        """The results of a method that returns a tuple of `count` tensors."""
    def no_batch(self) -> Self:
        """Marks a value that every call of a batch reads. All calls must read the same one."""
    def nobatch(self) -> Self:
        """The spelling of TorchFold."""

class Fold:
    """Records calls for any number of instances."""
    def __init__(self, fallback: bool = False, threads: int = 0) -> None:
        ...
    def add(self, op: str, *args: Node | Tensor | int) -> Node:
        """Records a call of a method. Arguments are nodes, ints and tensors whose first extent is 1. Equal calls are one."""
    def apply(self, module: nn.Module, groups: Iterable[Iterable[Node]]) -> List[Tensor]:
        """Computes groups of nodes. Each group becomes a tensor with one row a node."""

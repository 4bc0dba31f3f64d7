"""Models of PyTorch, written for one instance and executed for many.

    with autobatch.torch.batch():
        loss = sum(F.cross_entropy(model(tree), label) for tree, label in minibatch)
    loss.backward()

`batch` records ordinary code and executes what can run together in a short plan; `each` does the same for instances that read
numbers of their own. `Fold` is the interface of TorchFold, which names calls of methods. Results are tensors of torch, and
`backward` reaches the parameters, so the optimiser and the training loop stay torch's.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("autobatch.torch needs PyTorch; install it: pip install torch") from error

from .batch import batch
from .each import each
from .fold import Fold, Node

__all__ = ["Fold", "Node", "batch", "each"]

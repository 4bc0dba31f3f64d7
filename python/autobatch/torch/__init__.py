"""TorchFold's interface over the engine: fold the methods of a `torch.nn.Module`.

    from autobatch.torch import Fold

    fold = Fold()
    h, c = fold.add("leaf", 3).split(2)
    logits, = fold.apply(model, [[fold.add("logits", h)]])
    loss_of(logits).backward()

`apply` captures each method once and executes all calls in a short plan. Results are torch tensors, and `backward` reaches
the parameters of the module, so the optimiser and the training loop stay torch's.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("autobatch.torch needs PyTorch; install it: pip install torch") from error

from .capture import CaptureError
from .batch import batch
from .each import each
from .fold import Fold, Node

__all__ = ["CaptureError", "Fold", "Node", "batch", "each"]

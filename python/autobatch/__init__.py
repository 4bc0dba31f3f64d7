"""Automatic dynamic batching: write a model for one instance, run thousands of differently shaped ones at once.

A model declares parameters and cells in a :class:`Module`. A :class:`Session` calls an ordinary Python function for
every instance, which records what to compute, and then executes all instances together in a short plan of large kernels.
A :class:`Trainer` does the same forward and in reverse, and updates the parameters.

    import autobatch as ab

    m = ab.Module("tree")
    words = m.table("words", 100, 8)
    w, b = m.param("w", (16, 8)), m.param("b", 8)

    @m.cell(ab.f32[8], ab.f32[8])
    def node(left, right):
        return ab.affine([left, right], w, b).tanh()

    def encode(tree):
        return words[tree] if isinstance(tree, int) else node(encode(tree[0]), encode(tree[1]))

    session = ab.Session(m)
    vectors = session.predict([3, (1, (4, 1))], encode)
"""

import sys

VERSION = "0.1.0"


def _take_native_half_with_gpus() -> None:
    """Makes the native half of the package `autobatch-engine-gpu` that of this one, where it is installed."""
    try:
        from autobatch_gpu import _autobatch
    except ModuleNotFoundError as error:
        if error.name != "autobatch_gpu":
            raise
        return
    if _autobatch.__version__ != VERSION:
        raise ImportError(
            f"autobatch-engine {VERSION} and autobatch-engine-gpu {_autobatch.__version__} do not fit; install both: "
            "pip install --upgrade 'autobatch-engine[gpu]'"
        )
    sys.modules[f"{__name__}._autobatch"] = _autobatch


_take_native_half_with_gpus()

from . import data, decode, nn, optim, train
from ._autobatch import (
    AutobatchError,
    BusyError,
    Cell,
    CheckpointError,
    ClosedError,
    EmitError,
    Graph,
    Module,
    Param,
    Paused,
    Plan,
    PlanError,
    RecordError,
    RunError,
    Session,
    Step,
    Table,
    Trainer,
    TrainError,
    Type,
    Value,
    WeightsError,
    __version__,
    affine,
    affine_sum,
    append,
    attend,
    bool_,
    concat,
    devices,
    f32,
    fill,
    gather,
    graph_attend,
    i32,
    index,
    indices,
    input,
    list,
    list_of,
    one_hot,
    softmax_sum,
    log_softmax_of,
    stack,
    total,
    u32,
    weighted_sum,
    zeros,
)
from ._autobatch import Init as init

__all__ = [
    "AutobatchError", "BusyError", "Cell", "CheckpointError", "ClosedError", "EmitError", "Graph", "Module", "Param",
    "Paused", "Plan", "PlanError", "RecordError", "RunError", "Session", "Step", "Table", "TrainError", "Trainer", "Type",
    "Value", "WeightsError", "affine", "affine_sum", "append", "attend", "bool_", "concat", "data", "decode",
    "devices", "f32", "fill", "gather", "graph_attend", "i32", "index", "indices", "init", "input", "list", "list_of",
    "log_softmax_of", "nn", "one_hot", "optim", "softmax_sum", "stack", "total", "train", "u32", "weighted_sum", "zeros",
]

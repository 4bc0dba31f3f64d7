"""The types of the native module, which `stubs.py` writes into its stubs.

A parameter has the type of its name, unless its function says another one.
"""

HEAD = '''"""The native half of the package. tests/stubs.py writes this file."""

from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, List, Protocol, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import Unpack

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Array: TypeAlias = NDArray[Any]
Path: TypeAlias = str | PathLike[str]
Shape: TypeAlias = int | Sequence[int]
Operand: TypeAlias = "Value | Param | ArrayLike"
Index: TypeAlias = "int | Value"
Emitted: TypeAlias = "Value | Sequence[Value]"


class Communicator(Protocol):
    """The processes of a group. The communicators of mpi4py have these methods."""
    def Get_rank(self) -> int: ...
    def Get_size(self) -> int: ...
    def allgather(self, message: bytes, /) -> Sequence[bytes]: ...
    def alltoall(self, messages: Sequence[bytes], /) -> Sequence[bytes]: ...


class Options(TypedDict, total=False):
    """The keyword arguments of every optimiser."""
    clip_norm: float
    clip_value: float
    weight_decay: float
    decoupled_weight_decay: float
    average: float
    sparse_rows: bool
    schedule: "Schedule | Callable[[int], float]"
'''

EMIT = "Callable[[Item], Emitted]"
LOSS = "Callable[[Item], Value]"
WEIGHTS = "Mapping[str, ArrayLike]"

PARAMS = {
    "activation": "str", "ahead": "bool", "alpha": "float", "answer": "Any", "array": "ArrayLike", "average": "float",
    "axis": "int | None", "b": "Value", "batch_size": "int", "betas": "tuple[float, float]", "bias": "Param | None",
    "by": "float", "channels": "int", "chosen": "Callable[[str], object]", "classes": "int", "count": "int", "cutoffs": "Sequence[int]", "deviation": "float",
    "device": "str", "dims": "Shape", "dropout": "float", "dtype": "str", "element": "Type | None",
    "elements": "ArrayLike", "emit": EMIT, "encoded": "Sequence[Value]", "eps": "float",
    "eps_uncorrected": "bool", "eps_under_root": "bool", "every": "int", "feed_forward": "int | None", "filters": "int", "forget_bias": "float", "gain": "float",
    "fact": "str", "gamma": "float", "gates": "Value", "gradients": "Sequence[Array | None]", "group": "Communicator | None", "groups": "Sequence[Sequence[Value]]",
    "half": "int", "heads": "int", "hidden_dropout": "float", "high": "float", "hoist": "bool", "index": "Index", "indices": "Sequence[int]",
    "init": "Init | ArrayLike | None", "input": "int", "input_dropout": "float", "inputs": "int", "item": "Value", "items": "Iterable[Item]",
    "k": "int", "key": "int", "keys": "Value", "label": "Index", "layer_norm": "bool", "layers": "int", "left": "Value", "lefts": "int", "legal": "Sequence[bool]",
    "longest": "int", "loss": LOSS, "low": "float", "lr": "float", "margin": "float", "memory_limit": "int | None",
    "mod": "None", "module": "Module", "momentum": "float", "name": "str", "names": "Mapping[str, str]", "norm_first": "bool",
    "number": "float", "optimizer": "Optimizer", "options": "Unpack[Options]", "other": "Operand", "outputs": "int", "paused": "Paused",
    "parts": "Iterable[Value | Param]", "padding": "int | None", "path": "Path", "peepholes": "bool", "place": "int", "policy": "str | None", "ports": "Type",
    "process": "int", "projection": "int | None", "queries": "Sequence[Value]", "query": "Value", "rate": "float", "reduction": "int", "rho": "float", "right": "Value", "rights": "int",
    "rows": "int", "samples": "int", "schedule": "Schedule | Callable[[int], float]", "scale": "float", "scores": "Value", "spelling": "str", "seed": "int",
    "costs": "Sequence[int]", "shape": "Shape", "shards": "int | None", "sizes": "Sequence[int]", "subject": "str", "skip_non_finite": "bool", "slope": "float", "slopes": "int", "start": "int",
    "state_dict": "Mapping[str, Any]", "stop": "int", "tags": "Sequence[Index]", "target": "Operand", "text": "str",
    "then": "Schedule", "threads": "int", "to": "str", "together": "int | None", "update": "int", "update_unused": "bool",
    "updates": "int", "used": "Sequence[int]", "value": "Operand", "values": "Iterable[Value | Param]", "watch": "bool",
    "weight": "Param", "weights": "Sequence[float] | Callable[[Item], float] | None", "width": "int", "widths": "Sequence[int]", "window": "int",
    "work_limit": "float | None", "x": "Value", "xs": "Sequence[Value]",
}
"""The type of a parameter by its name."""

PARAMS_OF = {
    "AdditiveAttention.__init__": {"query": "int", "key": "int"},
    "AdditiveAttention.keys": {"keys": "Sequence[Value]"},
    "AdditiveAttention.read": {"keys": "Sequence[Value]", "values": "Sequence[Value]"},
    "DotAttention.__init__": {"scale": "float | None"}, "balanced_order": {"shards": "int"},
    "DotAttention.read": {"keys": "Sequence[Value]", "values": "Sequence[Value]"},
    "GroupNorm.__init__": {"groups": "int"},
    "CharCNN.__init__": {"chars": "int"}, "CharCNN.__call__": {"chars": "Sequence[Value]"},
    "LatticeLSTM.__init__": {"chars": "int", "words": "int"},
    "LatticeLSTM.run": {"chars": "Sequence[Value]", "words": "Sequence[tuple[int, int, Value]]"},
    "MVRNN.leaf": {"vector": "Value", "matrix": "Value"},
    "MVRNN.node": {"left": "tuple[Value, Value]", "right": "tuple[Value, Value]"},
    "MultiHeadAttention.__init__": {"bias": "bool", "key": "int | None", "value": "int | None"},
    "TreeGRU.__init__": {"input": "int | None"}, "TreeLSTM.__init__": {"input": "int | None"},
    "TreeRNN.__init__": {"input": "int | None", "bias": "bool"},
    "CRF.__init__": {"tags": "int"},
    "Expression.__init__": {"b": "int"}, "Expression.input_of": {"b": "int"}, "Expression.repeated": {"b": "int"},
    "CRF.decode": {"scores": "Sequence[Value]"},
    "CRF.loss": {"scores": "Sequence[Value]", "tags": "Sequence[int]"},
    "ChildSumTreeLSTM.node": {"children": "Sequence[tuple[Value, Value]]"},
    "Graph.output": {"value": "Value"},
    "Init.uniform": {"a": "float"},
    "Linear.__init__": {"bias": "bool"},
    "TransformerDecoder.__init__": {"bias": "bool"},
    "TransformerEncoder.__init__": {"bias": "bool"},
    "TransformerEncoderLayer.__init__": {"bias": "bool"},
    "MultiHeadAttention.cross": {"keys": "Sequence[Value]", "values": "Sequence[Value]"},
    "Graph.plan": {"values": "Value"},
    "Plan.explain": {"a": "Value | str", "b": "Value | str"},
    "SampledSoftmax.loss": {"sample": "Sample", "classes": "Sequence[int]"},
    "Session.run": {"values": "Value"},
    "Session.tasks": {"task": "Callable[[Item], Coroutine[Any, Any, Answer]]"},
    "Session.set_weights": {"values": WEIGHTS}, "Trainer.set_weights": {"values": WEIGHTS},
    "Session.follow_weights": {"values": WEIGHTS},
    "Session.forward": {"inputs": "Sequence[Value]"},
    "Table.__getitem__": {"key": "Index"},
    "Trainer.backward": {"loss": "Value", "values": "Sequence[Value]"},
    "Trainer.evaluate": {"values": "Sequence[Value]"},
    "Trainer.exchange": {"other": "SetAside"},
    "Trainer.rebind": {"value": "Value"},
    "Trainer.set_aside": {"names": "set[str]"},
    "Trainer.step_graph": {"loss": "Callable[[], Emitted]"},
    "Trainer.step_tasks": {"loss": "Callable[[Item], Coroutine[Any, Any, Value]]"},
    "TreeGRU.node": {"x": "Value | None"}, "TreeRNN.node": {"x": "Value | None"},
    "TreeLSTM.node": {"left": "tuple[Value, Value]", "right": "tuple[Value, Value]", "x": "Value | None"},
    "Type.__getitem__": {"key": "Shape"},
    "Value.__getitem__": {"key": "Index | slice"},
    "Value.cross_entropy_with": {"target": "Value"},
    "Value.label_loss": {"rows": "Param"},
    "Value.select": {"a": "Value"},
    "affine_sum": {"bias": "Param", "pairs": "Param | Value"},
    "append": {"values": "Value"},
    "attend": {"values": "Value"},
    "graph_attend": {"values": "Value"},
    "gather": {"values": "Value"},
    "list_of": {"element": "Type"},
    "one_hot": {"width": "int"},
    "softmax_sum": {"values": "Value"}, "weighted_sum": {"values": "Value"},
    "fill": {"number": "float"},
}
"""Types of parameters that differ from those of their names."""


RETURNS = {
    "Awaited.__await__": "Generator[Any, Any, Any]", "Awaited.__iter__": "Iterator[Any]", "Awaited.__next__": "Any",
    "LatticeLSTM.run": "List[tuple[Value, Value]]", "MVRNN.leaf": "tuple[Value, Value]", "MVRNN.node": "tuple[Value, Value]",
    "BiRNN.run_pairs": "List[tuple[Value, Value]]", "BiLSTM.run_pairs": "List[tuple[Value, Value]]",
    "BiGRU.run_pairs": "List[tuple[Value, Value]]", "Step.metrics": "dict[str, float]", "CRF.decode": "List[Value]", "Cell.name": "str",
    "ChildSumTreeLSTM.node": "tuple[Value, Value]", "Embedding.__call__": "Value", "Graph.instance": "None",
    "Graph.output": "None", "Graph.session": "Session | None", "Graph.text": "str", "Graph.to_bytes": "bytes",
    "LSTMState.push": "LSTMState", "Linear.weight": "Param", "Module.cell": "CellDecorator", "Module.param": "Param",
    "Module.params": "dict[str, tuple[int, ...]]", "Module.table": "Table", "Optimizer.learning_rate": "float",
    "Param.name": "str", "Graph.plan": "Plan", "Session.plan": "Plan", "Plan.batches": "int", "Plan.bound": "int", "Plan.nodes": "int",
    "Plan.policy": "str", "Plan.text": "str", "Plan.explain": "str", "Plan.policies": "dict[str, int]", "Plan.inspect": "PathLike[str]",
    "Plan.save": "None", "Plan.save_graph": "None", "Session.backward": "Any", "Session.batches": "tuple[int, int] | None",
    "Session.cache_stats": "tuple[int, int]", "Session.forward": "Any", "Session.graph": "Graph",
    "Session.last_plan": "str | None", "Session.predict": "List[Any]", "Session.run": "List[Array]", "Session.run_groups": "Any",
    "Session.tasks": "List[Answer]", "Session.weights": "dict[str, Array]", "Session.import_pytorch": "dict[str, List[str]]",
    "Trainer.import_pytorch": "dict[str, List[str]]", "Step.batches": "tuple[int, int]", "Step.gradient_norm": "float | None",
    "Step.instances": "int", "Step.loss": "float", "Step.losses": "List[float]", "Step.number": "int",
    "Step.output": "List[float] | None", "Step.seconds": "dict[str, float]", "Step.skipped": "bool", "Step.weight": "float",
    "Table.as_param": "Param", "Trainer.averages": "dict[str, Array] | None", "Trainer.backward": "tuple[float, List[Array | None]]",
    "Trainer.evaluate": "List[Array]", "Trainer.gradient": "Array", "Trainer.gradients": "dict[str, Array]", "Trainer.graph": "Graph",
    "Trainer.learning_rate": "float", "Trainer.rank": "int", "Trainer.ranks": "int", "Trainer.note": "str | None", "Trainer.predict": "List[Any]", "Trainer.session": "Session",
    "Trainer.set_aside": "SetAside", "Trainer.skipped": "int", "Trainer.step": "Step", "Trainer.step_graph": "Step",
    "Trainer.step_tasks": "Step", "Trainer.steps": "int", "Trainer.weight": "Array", "Trainer.weights": "dict[str, Array]",
    "TransformerDecoder.start": "TransformerState", "TransformerEncoder.start": "TransformerState",
    "TransformerState.output": "Value", "TransformerState.push": "TransformerState", "TreeLSTM.leaf": "tuple[Value, Value]",
    "TreeLSTM.node": "tuple[Value, Value]", "Type.dtype": "str", "Type.is_list": "bool", "Type.shape": "tuple[int, ...]",
    "Type.__getitem__": "Type", "Value.__await__": "Generator[Any, Any, Array]", "Value.__iter__": "Iterator[Value]",
    "Value.numpy": "Array", "Value.shape": "tuple[int, ...]", "Value.split": "tuple[Value, ...]", "Value.top_k": "tuple[Value, Value]",
    "Value.type": "Type", "Value.__array__": "Array", "balanced_order": "List[int]", "batches_of": "List[List[int]]", "devices": "List[str]", "gather": "Awaited",
    "list_of": "Type", "log_softmax_of": "List[Value]", "AdditiveAttention.keys": "List[Value]", "MultiHeadAttention.cross": "List[Value]",
    "SampledSoftmax.sample": "Sample", "op_codes": "dict[str, int]",
}
"""The type that a function returns, by its name."""

RETURNS_OF_CLASS = {
    "Value": "Value", "Table": "Value", "Param": "Value", "Linear": "Value", "MLP": "Value", "Embedding": "Value", "LayerNorm": "Value",
    "RMSNorm": "Value", "GatedSum": "Value", "Experts": "Value", "TreeRNN": "Value", "TreeGRU": "Value", "CRF": "Value",
    "SampledSoftmax": "Value", "AdditiveAttention": "Value", "Init": "Init", "Schedule": "Schedule", "Positions": "Positions",
    "Trainer": "None", "Session": "None", "Optimizer": "Optimizer",
}
"""The type that the methods of a class return which are not in `RETURNS`."""

CALLS = {
    "Bilinear": "left: Value, right: Value -> Value", "CharCNN": "chars: Sequence[Value] -> Value", "GroupNorm": "x: Value -> Value",
    "PReLU": "x: Value -> Value",
    "Cell": "*args: Index -> Any", "CellDecorator": "body: Callable[..., Any] -> Cell", "Embedding": "index: Index -> Value",
    "Experts": "x: Value -> Value",
    "GatedGraph": "states: Sequence[Value], neighbours: Sequence[Sequence[int]], rounds: int -> List[Value]",
    "GatedSum": "states: Sequence[Value], inputs: Sequence[Value] -> Value",
    "GraphAttention": "nodes: Sequence[Value], neighbours: Sequence[Sequence[int]] -> List[Value]",
    "LayerNorm": "x: Value -> Value", "Linear": "*parts: Value -> Value", "MLP": "x: Value -> Value",
    "MultiHeadAttention": "xs: Sequence[Value], causal: bool = False -> List[Value]",
    "Positions": "xs: Sequence[Value] -> List[Value]", "RMSNorm": "x: Value -> Value", "Schedule": "update: int -> float",
    "TransformerDecoder": "xs: Sequence[Value], encoded: Sequence[Value] -> List[Value]",
    "TransformerEncoder": "xs: Sequence[Value], causal: bool = False -> List[Value]",
    "TransformerEncoderLayer": "xs: Sequence[Value], causal: bool = False -> List[Value]",
}
"""Of callable objects, the parameters and the result."""

SIGNATURES = {
    "SampledSoftmax.full_loss": "self, x: Value, class_: int", "AdaptiveSoftmax.loss": "self, x: Value, class_: int",
}
"""The parameters of functions that Python cannot inspect, because one is named by a keyword."""

INTERNAL = {"Engine", "Expression", "Guards", "Lazy", "Recorder", "computed", "op_codes", "waits"}
"""What other modules of the package use; its members have no types of their own."""

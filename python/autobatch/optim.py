"""Optimisers and schedules of the learning rate.

Every optimiser takes ``clip_norm``, ``clip_value``, ``weight_decay``, ``decoupled_weight_decay``, ``average``,
``sparse_rows`` and ``schedule`` as keyword arguments.
"""

from ._autobatch import (
    Adadelta,
    Adagrad,
    Adam,
    AdamW,
    AmsGrad,
    Momentum,
    Nesterov,
    Optimizer,
    RmsProp,
    Schedule,
    Sgd,
)

__all__ = [
    "Adadelta", "Adagrad", "Adam", "AdamW", "AmsGrad", "Momentum", "Nesterov", "Optimizer", "RmsProp", "Schedule",
    "Sgd",
]

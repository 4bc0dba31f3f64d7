"""Layers. A layer declares its parameters in a module when it is made, and emits when it is called."""

from ._autobatch import (
    GRU,
    LSTM,
    MLP,
    RNN,
    AdditiveAttention,
    BiGRU,
    BiLSTM,
    BiRNN,
    ChildSumTreeLSTM,
    Embedding,
    LayerNorm,
    Linear,
    MultiHeadAttention,
    Positions,
    RMSNorm,
    TransformerDecoder,
    TransformerEncoder,
    TransformerEncoderLayer,
    TreeGRU,
    TreeLSTM,
    TreeRNN,
)

__all__ = [name for name in dir() if not name.startswith("_")]

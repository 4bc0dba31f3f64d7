"""Layers. A layer declares its parameters in a module when it is made, and emits when it is called."""

from ._autobatch import (
    CRF,
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
    Experts,
    GatedGraph,
    GatedSum,
    GraphAttention,
    LayerNorm,
    Linear,
    MultiHeadAttention,
    Positions,
    RMSNorm,
    Sample,
    SampledSoftmax,
    TransformerDecoder,
    TransformerEncoder,
    TransformerEncoderLayer,
    TreeGRU,
    TreeLSTM,
    TreeRNN,
)

__all__ = [
    "AdditiveAttention", "BiGRU", "BiLSTM", "BiRNN", "CRF", "ChildSumTreeLSTM", "Embedding", "Experts", "GRU",
    "GatedGraph", "GatedSum", "GraphAttention", "LSTM", "LayerNorm", "Linear", "MLP", "MultiHeadAttention",
    "Positions", "RMSNorm", "RNN", "Sample", "SampledSoftmax", "TransformerDecoder", "TransformerEncoder",
    "TransformerEncoderLayer", "TreeGRU", "TreeLSTM", "TreeRNN",
]

"""Attention that learns: projections around `attend`, what stands beside them, and the cache for decoding."""

from regard.layers.block import DecoderBlock, EncoderBlock
from regard.layers.block_config import BlockConfig
from regard.layers.cache import KeyValueCache
from regard.layers.feedforward import FeedForward
from regard.layers.listen import listen
from regard.layers.longformer import LongformerAttention
from regard.layers.multihead import MultiHead
from regard.layers.norm import Residual

__all__ = [
    "BlockConfig",
    "DecoderBlock",
    "EncoderBlock",
    "FeedForward",
    "KeyValueCache",
    "LongformerAttention",
    "MultiHead",
    "Residual",
    "listen",
]

"""Who may look at whom: one language, True = may look."""

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import And, Mask, Not, Or
from regard.attention.mask.bigbird import bigbird
from regard.attention.mask.blocks import block_sparse
from regard.attention.mask.causal import causal
from regard.attention.mask.documents import documents
from regard.attention.mask.longformer import longformer
from regard.attention.mask.padding import padding
from regard.attention.mask.prefix import prefix
from regard.attention.mask.tensor import allowed, as_mask, blocked, rule
from regard.attention.mask.window import window

__all__ = [
    "And",
    "Mask",
    "Not",
    "Or",
    "Sizes",
    "allowed",
    "as_mask",
    "bigbird",
    "block_sparse",
    "blocked",
    "causal",
    "documents",
    "longformer",
    "padding",
    "prefix",
    "rule",
    "window",
]

"""The plain version: attention in NumPy, straight from the formulas, in float64.

Nothing here is clever and nothing is fast; it is the specification that every fast path is compared with.
Shapes are (…, q, d) and (…, k, d), further axes lead and broadcast as NumPy broadcasts. A mask is True where
a query may look. A row that may look nowhere weighs 0 everywhere and mixes to 0.

The examples share one input, five tokens of four channels:

>>> import numpy as np
>>> X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
>>> attend(X, X, X).weights[0].round(4)
array([0.2976, 0.1095, 0.1805, 0.1805, 0.2318])
"""

from regard.attention.reference.around import nadaraya_watson, sinusoid
from regard.attention.reference.arrays import Array, Mask, each_row, hide, wide
from regard.attention.reference.masks import causal_mask, distance, padding_mask, window_mask
from regard.attention.reference.mechanism import Stages, attend, mix, multi_head, repeat_heads, split_heads
from regard.attention.reference.scores import (
    additive_scores,
    bilinear_scores,
    cosine_scores,
    dot_scores,
    gaussian_scores,
    scaled_dot_scores,
)
from regard.attention.reference.weights import entmax15, sigmoid, softmax, sparsemax, top_k

__all__ = [
    "Array",
    "Mask",
    "Stages",
    "additive_scores",
    "attend",
    "bilinear_scores",
    "causal_mask",
    "cosine_scores",
    "distance",
    "dot_scores",
    "each_row",
    "entmax15",
    "gaussian_scores",
    "hide",
    "mix",
    "multi_head",
    "nadaraya_watson",
    "padding_mask",
    "repeat_heads",
    "scaled_dot_scores",
    "sigmoid",
    "sinusoid",
    "softmax",
    "sparsemax",
    "split_heads",
    "top_k",
    "wide",
    "window_mask",
]

"""scores, mask → weights. Each takes (scores, allowed) and keeps the same promises about the mask:

a hidden cell weighs exactly 0; a row that may look nowhere, by the mask or because every score is −inf, is
all 0 with zero gradients; whatever stands in a hidden cell, NaN and inf included, reaches nothing; no keys
give no weights. A NaN that may be seen does reach its row. Half precision is computed in float32 and given
back as it came.
"""

from regard.attention.weigh.entmax import entmax
from regard.attention.weigh.sigmoid import sigmoid
from regard.attention.weigh.softmax import softmax
from regard.attention.weigh.sparsemax import sparsemax
from regard.attention.weigh.top_k import TopK, top_k

__all__ = ["TopK", "entmax", "sigmoid", "softmax", "sparsemax", "top_k"]

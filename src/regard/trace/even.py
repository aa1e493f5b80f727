"""What softmax does to a row whose keys are all hidden by a large finite number instead of −inf."""

import torch

from regard.attention.weigh.softmax import softmax
from regard.shapes import Allowed, Scores, Weights


def even_softmax(scores: Scores, allowed: Allowed | None = None) -> Weights:
    """softmax under a mask of finite numbers: a row that sees nothing is even, because all its scores are equal.

    >>> even_softmax(torch.zeros(2, 4), torch.tensor([[True, True, False, False], [False] * 4]))
    tensor([[0.5000, 0.5000, 0.0000, 0.0000],
            [0.2500, 0.2500, 0.2500, 0.2500]])
    """
    if allowed is None:
        return softmax(scores)
    blind = ~allowed.any(-1, keepdim=True)
    return torch.where(blind, 1.0 / max(1, scores.shape[-1]), softmax(scores, allowed))

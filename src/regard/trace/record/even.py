"""What softmax does to a row whose keys are all hidden by a large finite number instead of −inf."""

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Mask
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


class WholeRows(Mask):
    """The same mask for whole rows only: an even row counts all keys, also those beyond what any row sees."""

    def __init__(self, inner: Mask) -> None:
        self.inner, self.fixed = inner, inner.fixed

    def check(self, sizes: Sizes) -> None:
        self.inner.check(sizes)

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        return self.inner.cell(at, sizes)

    def describe(self) -> str:
        return self.inner.describe()

    def __repr__(self) -> str:
        return repr(self.inner)

"""Each key on its own: it is looked at or not, whatever the others are."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.weigh.softmax import hide
from regard.shapes import Allowed, Scores, Weights


def sigmoid(scores: Scores, allowed: Allowed | None = None, *, bias: Float[Tensor, "..."] | float = 0.0) -> Weights:
    r"""$w = 1 / (1 + e^{-(s + \mathrm{bias})})$, each key by itself (Ramapuram et al. 2024).

    A row adds to anything between 0 and the number of its keys; the authors advise a `bias` of −log(keys),
    which starts a row near 1. A row that may look nowhere is 0.

    >>> import torch
    >>> sigmoid(torch.tensor([[0.0, 2.0, 5.0]]), torch.tensor([[True, True, False]]))
    tensor([[0.5000, 0.8808, 0.0000]])
    """
    logits, hidden = hide(scores, allowed)  # *b q k
    return torch.sigmoid(logits + bias).masked_fill(hidden, 0.0).to(scores.dtype)

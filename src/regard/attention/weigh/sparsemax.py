"""The nearest point of the simplex: weak keys get exactly nothing."""

import math

import torch
from torch import Tensor

from regard.attention.weigh.softmax import hide
from regard.shapes import Allowed, Scores, Weights


def sparsemax(scores: Scores, allowed: Allowed | None = None) -> Weights:
    r"""The probabilities nearest to the scores: $w = [s - \tau]_+$, τ such that a row adds to one.

    Exact, by sorting (Martins & Astudillo 2016, algorithm 1). Keys below τ weigh exactly 0. A row that may
    look nowhere is 0.

    >>> import torch
    >>> sparsemax(torch.tensor([[1.0, 0.5, 0.1, -2.0]]))
    tensor([[0.7500, 0.2500, 0.0000, 0.0000]])
    """
    logits, hidden = hide(scores, allowed)  # *b q k
    if not scores.shape[-1]:
        return scores.clone()
    z = subtract_top(logits)

    descending = z.detach().sort(-1, descending=True).values
    count = count_up(z)  # k
    sums = descending.cumsum(-1)
    size = (1 + count * descending > sums).sum(-1, keepdim=True).clamp(min=1)  # *b q 1; 0 only where NaN
    rough = (sums.gather(-1, size - 1) - 1) / size

    # The same τ once more from the keys it admits: no cumulated rounding, and a plain mean to differentiate.
    support = z > rough
    tau = (z.where(support, 0.0).sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
    return (z - tau).clamp(min=0.0).masked_fill(hidden, 0.0).to(scores.dtype)


def subtract_top(logits: Tensor) -> Tensor:
    """Logits less their row's largest, and no lower than −2.

    A weight is positive only within 1 of the largest, so what is lower plays no part; without −inf and far
    numbers the sums stay finite and sharp. The largest is a constant here: shifting a row changes no weight.
    """
    top = logits.detach().amax(-1, keepdim=True)
    return (logits - top.masked_fill(top == -math.inf, 0.0)).clamp(min=-2.0)


def count_up(z: Tensor) -> Tensor:
    """1, 2, …, as many as there are keys."""
    return torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)

"""Between softmax and sparsemax: weak keys get nothing, strong ones share smoothly."""

import torch
from torch import Tensor

from regard.attention.weigh.softmax import hide, softmax
from regard.attention.weigh.sparsemax import count_up, sparsemax, subtract_top
from regard.shapes import Allowed, Scores, Weights


def entmax(scores: Scores, allowed: Allowed | None = None, *, alpha: float = 1.5) -> Weights:
    r"""$w = [(\alpha - 1) s - \tau]_+^{1/(\alpha-1)}$, τ such that a row adds to one.

    Peters et al. 2019. `alpha` 1 is softmax, 2 is sparsemax. 1.5 is exact, by sorting (their algorithm 2);
    others in between are found by halving an interval as often as there are digits. As a weigher:
    `partial(entmax, alpha=1.3)`. A row that may look nowhere is 0.

    >>> import torch
    >>> entmax(torch.tensor([[2.0, 1.0, -3.0]]))
    tensor([[0.8307, 0.1693, 0.0000]])
    >>> entmax(torch.tensor([[2.0, 1.0, -3.0]]), alpha=1.2)
    tensor([[0.7658, 0.2342, 0.0000]])
    """
    if not 1 <= alpha <= 2:
        raise ValueError(f"alpha {alpha} is not between 1 (softmax) and 2 (sparsemax); choose one that is, such as 1.5")
    if alpha == 1:
        return softmax(scores, allowed)
    if alpha == 2:
        return sparsemax(scores, allowed)
    logits, hidden = hide(scores, allowed)  # *b q k
    if not scores.shape[-1]:
        return scores.clone()
    z = subtract_top(logits * (alpha - 1))
    if alpha == 1.5:
        weights = (z - threshold_by_sorting(z)).clamp(min=0.0).square()
    else:
        weights = powers(z, threshold_by_halving(z, 1 / (alpha - 1)), 1 / (alpha - 1))
    return weights.masked_fill(hidden, 0.0).to(scores.dtype)


def threshold_by_sorting(z: Tensor) -> Tensor:
    r"""The τ at which $\sum [z - \tau]_+^2 = 1$: that of the longest run of sorted z that is above its τ."""
    descending = z.detach().sort(-1, descending=True).values
    count = count_up(z)  # k
    mean = descending.cumsum(-1) / count
    spread = descending.square().cumsum(-1) - count * mean.square()
    # Where the spread exceeds 1 there is no τ; the mean stands in, and the run's last z is below it anyway.
    taus = mean - ((1 - spread) / count).clamp(min=0.0).sqrt()
    size = (taus <= descending).sum(-1, keepdim=True).clamp(min=1)  # *b q 1; 0 only where NaN
    support = z > taus.gather(-1, size - 1)

    # The same τ once more from the keys it admits: no cumulated rounding, and two sums to differentiate.
    size = support.sum(-1, keepdim=True)
    mean = z.where(support, 0.0).sum(-1, keepdim=True) / size
    spread = (z - mean).where(support, 0.0).square().sum(-1, keepdim=True)
    return mean - ((1 - spread) / size).sqrt()


def threshold_by_halving(z: Tensor, power: float) -> Tensor:
    r"""The τ at which $\sum [z - \tau]_+^{power} = 1$, power above 1."""
    fixed = z.detach()
    low = fixed.amax(-1, keepdim=True) - 1  # here the largest alone makes 1
    width = 1.0
    for _ in range(53 if z.dtype == torch.float64 else 24):  # the digits of a fraction
        width /= 2
        middle = low + width
        low = middle.where(powers(fixed, middle, power).sum(-1, keepdim=True) >= 1, low)
    # Newton's method, from where τ already stands, in terms of z: two steps give three right derivatives.
    tau = low
    for _ in range(2):
        slope = powers(z, tau, power - 1).sum(-1, keepdim=True) * power
        tau = tau + (powers(z, tau, power).sum(-1, keepdim=True) - 1) / slope
    return tau


def powers(z: Tensor, tau: Tensor, power: float) -> Tensor:
    r"""$[z - \tau]_+^{power}$; below τ a 1 is raised instead, because 0 to a power may have no slope."""
    above = ~(z <= tau)  # so that NaN counts as above and is passed on
    return (z - tau).where(above, 1.0).pow(power).where(above, 0.0)

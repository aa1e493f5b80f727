"""What weights meet besides the values: values of each query's own, such as relative positions (Shaw et al. 2018).

`Σ a_ij (v_j + r_ij)` is often computed as two products. In the second one queries stand where batch and heads stood:
its left operand is the weights in another order, (q, b · h, k), or as rows that stand alone, (b · h · q, 1, k). Both
are found by their numbers, and so are columns of a softmax that meet no values, such as those of learned sinks.
"""

import torch
from torch import Tensor

FURTHER = "its weights weigh further values, such as relative positions or values of each query's own"
NOTE = f"{FURTHER}; the map is that of all these sums, and its mix is the first over the values of the keys"
EDITED = f"{FURTHER}, which an edit would leave"


def sums_again(weights: Tensor, left: Tensor, right: Tensor) -> bool:
    """Whether `left` is these weights, (…, q, k), with queries first or apart, and meets values of each."""
    if weights.ndim < 3 or left.ndim < 3 or left.numel() != weights.numel() or left.shape[-1] != weights.shape[-1]:
        return False
    *lead, q, k = weights.shape
    if q > 1 == left.shape[-2] and right.shape[:-2].numel() == weights.shape[:-1].numel():
        return is_weights(weights, left.reshape(weights.shape))  # each query stands alone, beside its values
    if q < 2 or left.shape[0] != q or right.shape[:-2].numel() < q or is_weights(weights, left.reshape(weights.shape)):
        return False
    count = len(lead)
    turned = left.reshape(q, *reversed(lead), k).permute(*range(count, 0, -1), 0, count + 1)
    return is_weights(weights, left.reshape(q, *lead, k).movedim(0, -2)) or is_weights(weights, turned)


def part_that_met(weights: Tensor, left: Tensor) -> Tensor | None:
    """The first or the last columns of a softmax, where they alone are what `left` is; None where they are not."""
    count = left.shape[-1]
    if not 1 < count < weights.shape[-1] or left.shape[-2] != weights.shape[-2]:
        return None
    if left.shape[:-2].numel() != weights.shape[:-2].numel():
        return None
    parts = (weights[..., :count], weights[..., -count:])
    return next((part for part in parts if is_weights(part, left.reshape(part.shape))), None)


def is_weights(softmax: Tensor, x: Tensor) -> bool:
    """Whether `x` is what a softmax gave, as it was or after dropout."""
    end = tuple(size - 1 for size in x.shape[:-1])
    return scale_between(softmax[end], x[end]) is not None and scale_between(softmax, x) is not None


def scale_between(softmax: Tensor, used: Tensor) -> float | None:
    """What all weights were multiplied by on their way, but for those that became 0: 1, or more where some did.

    None where they were changed otherwise, as dropout does not.
    """
    full = used.dtype == softmax.dtype and used.dtype in (torch.float32, torch.float64)
    slack = 1e-4 if full else 2e-2
    used, made = used.detach().float(), softmax.detach().float()
    there = made > 1e-30
    kept = (used != 0) & there
    if not bool(kept.any()):
        return None
    ratio = (used / made)[kept]
    usual = float(ratio.median())
    dropped = bool((~kept & there).any())  # dropout takes some and raises the others alike
    alike = float((ratio / usual - 1).abs().max()) < slack
    return usual if alike and (usual > 1.0 + slack if dropped else abs(usual - 1.0) < slack) else None

"""How far a map may be from the truth by rounding alone: it follows from the size of its scores, on any processor."""

import torch

from regard.trace.record.layer import Layer


def rounding(layer: Layer, dtype: torch.dtype = torch.float32) -> float:
    """A bound on the error of weights that were computed in this dtype.

    A score is a sum of products; each of them carries a few units of rounding from the layers before and from the
    sum, so its error is eps · Σ |q| |k| times a small number. An error in a score is one factor in a weight, which is
    at most 1. T5 does not divide its scores, so there Σ |q| |k| is in the hundreds.
    """
    assert layer.q is not None
    assert layer.k is not None
    q, k = layer.q.double().abs(), layer.k.double().abs()
    sums = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT
    scale = float(getattr(layer.weights.source, "scale", 1.0))
    return 16 * torch.finfo(dtype).eps * (1 + float(sums.max()) * scale)

"""The mechanism stage by stage, for whatever no fused kernel can serve; the specification of the others."""

import math
from contextlib import nullcontext

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.as_4d import add_leading_axes
from regard.attention.axes.heads import multiply_grouped
from regard.attention.kernels.finite import is_finite
from regard.attention.map import Computed, DropoutRecord, drop
from regard.attention.map.blocks import BUDGET
from regard.attention.map.computed import find_seen_keys
from regard.eager import autocasts, readable


def attend_explicitly(
    computed: Computed, v: Float[Tensor, "*_b k e"], dropped: DropoutRecord | None = None
) -> Float[Tensor, "*_c q e"]:
    """scores → mask → weights → mix, in float32 or better, the mix in the dtype of v.

    Keys and values that no query sees are set to 0 first, so nothing in them, NaN included, reaches the mix or a
    gradient. Where gradients are not needed, rows are computed in blocks.
    """
    with torch.autocast(v.device.type, enabled=False) if autocasts(v) else nullcontext():
        allowed = computed.allowed()
        if allowed is not None and not (readable(v) and is_finite(computed.k) and is_finite(v)):
            computed = computed.hide_unseen(allowed)
            v = add_leading_axes(v, len(computed.shape) - 2)
            v = v.masked_fill(~find_seen_keys(allowed, v), 0.0)
        wide = v.to(computed.dtype)
        if dropped is None and not torch.is_grad_enabled() and readable(v) and computed.shape[-2] > 1:
            mix = mix_by_rows(computed, wide, allowed)
        else:
            weights = computed.normalise(computed.scores(), allowed)
            mix = mix_values(weights if dropped is None else drop(weights, dropped), wide, allowed)
        shape = (*computed.shape[:-1], v.shape[-1])
        return mix.to(v.dtype).expand(shape)


def mix_by_rows(computed: Computed, v: Tensor, allowed: Tensor | None) -> Float[Tensor, "*_b q e"]:
    *lead, q, k = computed.shape
    height = max(16, BUDGET // max(1, k * math.prod(lead)))
    if height >= q:
        return mix_values(computed.normalise(computed.scores(), allowed), v, allowed)
    parts = []
    for first in range(0, q, height):
        rows = slice(first, min(q, first + height))
        some = allowed if allowed is None or allowed.shape[-2] == 1 else allowed[..., rows, :]
        parts.append(mix_values(computed.normalise(computed.scores(rows), some), v, some))
    return torch.cat(parts, -2)


def mix_values(weights: Tensor, v: Tensor, allowed: Tensor | None) -> Float[Tensor, "*_b q e"]:
    """weights @ v, where a hidden value reaches nothing even if it is NaN or inf: 0 · NaN would be NaN."""
    if allowed is None or not readable(v) or is_finite(v):
        return multiply_grouped(weights, v)
    finite = v.isfinite()
    if finite.all():
        return multiply_grouped(weights, v)
    mix = multiply_grouped(weights, v.masked_fill(~finite, 0.0))
    sees = allowed.expand(*allowed.shape[:-2], *weights.shape[-2:]).to(v.dtype)
    sees = sees.expand(weights.shape)
    for what, value in ((v.isnan(), torch.nan), (v == torch.inf, torch.inf), (v == -torch.inf, -torch.inf)):
        reached = multiply_grouped(sees, what.to(v.dtype)) > 0
        mix = mix + torch.where(reached, value, 0.0).to(v.dtype)
    return mix

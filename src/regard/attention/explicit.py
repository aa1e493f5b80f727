"""The mechanism stage by stage, for whatever no fused kernel can serve; the specification of the others."""

import math
from contextlib import nullcontext

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.heads import grouped, times
from regard.attention.map import Asked, Dropped, drop
from regard.attention.map.asked import aligned, seen_by_any
from regard.attention.map.blocks import BUDGET
from regard.eager import autocasts, readable


def attend_explicitly(
    asked: Asked, v: Float[Tensor, "*_b k e"], dropped: Dropped | None = None
) -> Float[Tensor, "*_c q e"]:
    """scores → mask → weights → mix, in float32 or better, the mix in the dtype of v.

    Keys and values that no query sees are set to 0 first, so nothing in them, NaN included, reaches the mix or a
    gradient. Where gradients are not needed, rows are computed in blocks.
    """
    with torch.autocast(v.device.type, enabled=False) if autocasts(v) else nullcontext():
        allowed = asked.allowed()
        if allowed is not None and not (readable(v) and harmless(asked.k) and harmless(v)):
            asked = asked.unseen(allowed)
            v = aligned(v, len(asked.shape) - 2)
            v = v.masked_fill(~seen_by_any(allowed, v), 0.0)
        wide = v.to(asked.dtype)
        if dropped is None and not torch.is_grad_enabled() and readable(v) and asked.shape[-2] > 1:
            mix = by_rows(asked, wide, allowed)
        else:
            weights = asked.normalise(asked.scores(), allowed)
            mix = mixed(weights if dropped is None else drop(weights, dropped), wide, allowed)
        shape = (*asked.shape[:-1], v.shape[-1])
        return mix.to(v.dtype).expand(shape)


def harmless(x: Tensor) -> bool:
    """Whether nothing in x could reach a mix that is not to see it: 0 · x is 0. One sum tells, as NaN survives it."""
    return math.isfinite(x.detach().sum().item())


def by_rows(asked: Asked, v: Tensor, allowed: Tensor | None) -> Float[Tensor, "*_b q e"]:
    *lead, q, k = asked.shape
    height = max(16, BUDGET // max(1, k * math.prod(lead)))
    if height >= q:
        return mixed(asked.normalise(asked.scores(), allowed), v, allowed)
    parts = []
    for first in range(0, q, height):
        rows = slice(first, min(q, first + height))
        some = allowed if allowed is None or allowed.shape[-2] == 1 else allowed[..., rows, :]
        parts.append(mixed(asked.normalise(asked.scores(rows), some), v, some))
    return torch.cat(parts, -2)


def mixed(weights: Tensor, v: Tensor, allowed: Tensor | None) -> Float[Tensor, "*_b q e"]:
    """weights @ v, where a hidden value reaches nothing even if it is NaN or inf: 0 · NaN would be NaN."""
    if allowed is None or not readable(v) or math.isfinite(v.detach().sum().item()):
        return grouped(times, weights, v)
    finite = v.isfinite()
    if finite.all():
        return grouped(times, weights, v)
    mix = grouped(times, weights, v.masked_fill(~finite, 0.0))
    sees = allowed.expand(*allowed.shape[:-2], *weights.shape[-2:]).to(v.dtype)
    sees = sees.expand(weights.shape)
    for what, value in ((v.isnan(), torch.nan), (v == torch.inf, torch.inf), (v == -torch.inf, -torch.inf)):
        reached = grouped(times, sees, what.to(v.dtype)) > 0
        mix = mix + torch.where(reached, value, 0.0).to(v.dtype)
    return mix


def needs_care(mix: Tensor, asked: Asked, v: Tensor, flagged: bool) -> bool:
    """Whether a kernel may have let something hidden through: the mix is not finite, and k or v is not either.

    Asked only where values may be read: in eager mode, on the CPU.
    """
    return not is_finite(mix, flagged) and not (asked.k.isfinite().all() and v.isfinite().all())


def is_finite(mix: Float[Tensor, "*_b q e"], flagged: bool) -> bool:
    """Whether a mix is finite. One sum tells: NaN and inf survive it.

    Under the kernel's causal flag (`flagged`) the last query tells for all: the kernel reads for it whatever it reads
    for any other.
    """
    mix = mix.detach() if mix.requires_grad else mix
    if flagged and mix.numel() > 1 << 15:  # a sum over less is over before a row is found
        mix = mix.select(-2, -1)
    return math.isfinite(mix.sum().item())

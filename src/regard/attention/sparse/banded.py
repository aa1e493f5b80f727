"""Masks that leave most keys out, computed over the others only: windows, Longformer, BigBird."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.attention.mask import Mask, Sizes
from regard.attention.mask.window import Window
from regard.attention.sparse.banded_kernel import BandedAttention
from regard.attention.sparse.strips import BLOCK, Pattern

SHORTEST = 512  # keys; below, one dense call is as quick
SHARE = 0.6  # of the dense work, above which the dense kernel is quicker
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def pattern_of(mask: Mask, sizes: Sizes) -> Pattern | None:
    """How the mask is computed block by block; None where its cover is everything."""
    cover = mask.cover(sizes)
    block = cover.block or BLOCK
    if cover.before >= sizes.k and cover.after >= sizes.k:
        return None
    before, after = min(cover.before, sizes.k + sizes.q), min(cover.after, sizes.k + sizes.q)
    return Pattern(mask, sizes, cover._replace(before=before, after=after), block, mask.core(sizes))


def work(pattern: Pattern) -> float:
    """The share of the dense work that is left."""
    extra = 0 if pattern.cover.keys is None else pattern.cover.keys.shape[-1]
    rows = 0 if pattern.cover.queries is None else len(pattern.cover.queries)
    return (pattern.width + extra) / max(1, pattern.sizes.k) + rows / max(1, pattern.sizes.q)


def serves(q: Tensor, mask: Mask | None, sizes: Sizes) -> Pattern | None:
    """The pattern, where computing it by strips is right and pays."""
    if mask is None or q.device.type != "cpu" or q.dtype not in DTYPES or sizes.k < SHORTEST or sizes.q < 2 * BLOCK:
        return None
    pattern = pattern_of(mask, sizes)
    return pattern if pattern is not None and work(pattern) < SHARE else None


def attend_banded(
    q: Float[Tensor, "b h q d"],
    k: Float[Tensor, "b g k d"],
    v: Float[Tensor, "b g k d"],
    pattern: Pattern,
    scale: float,
) -> Float[Tensor, "b h q d"]:
    """The mix over the cells of a pattern, exactly; q, k and v have one width."""
    dilated = dilation_of(pattern)
    if k.shape[1] != q.shape[1]:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    if dilated is None:
        return BandedAttention.apply(q, k, v, pattern, scale)
    return attend_dilated(q, k, v, dilated, pattern.sizes, scale)


def dilation_of(pattern: Pattern) -> Window | None:
    """The dilated window, where the mask is nothing else."""
    mask = pattern.mask
    return mask if isinstance(mask, Window) and mask.dilation > 1 and not mask.keep_first else None


def attend_dilated(q: Tensor, k: Tensor, v: Tensor, window: Window, sizes: Sizes, scale: float) -> Tensor:
    """Tokens that are a multiple of the dilation apart see only each other: as many plain windows side by side."""
    step = window.dilation
    near = Window(window.before // step, window.after // step, 1, 0)
    mix = torch.empty_like(q)
    for first in range(min(step, sizes.q)):
        keys = slice(
            (first + sizes.offset) % step, None, step
        )  # their last one is where the last of the queries stands
        some = q[:, :, first::step], k[:, :, keys], v[:, :, keys]
        pattern = pattern_of(near, Sizes(sizes.lead, some[0].shape[2], some[1].shape[2]))
        if pattern is None:  # the window is wider than what there is
            mix[:, :, first::step] = F.scaled_dot_product_attention(*some, scale=scale)
        else:
            mix[:, :, first::step] = BandedAttention.apply(*some, pattern, scale)
    return mix

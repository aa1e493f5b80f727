"""Grouped heads: several query heads share one key head, in the order of `repeat_interleave`."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.select import Index


def compare_grouped(
    compare: Callable[[Tensor, Tensor], Tensor], a: Float[Tensor, "*_b r _x"], b: Float[Tensor, "*_c _y _z"]
) -> Float[Tensor, "*_d r _w"]:
    """`compare(a, b)` where a may have more heads than b: the heads of a group become rows of one product.

    Serves scores (`compare` of q and k) and the mix (the product of weights and v) alike; b is never copied.
    """
    if a.ndim < 3 or b.ndim < 3 or a.shape[-3] <= b.shape[-3]:
        return compare(a, b)
    rows = a.shape[-2]
    folded = a.unflatten(-3, (b.shape[-3], -1)).flatten(-3, -2)  # … hk (g r) x
    return compare(folded, b).unflatten(-2, (a.shape[-3] // b.shape[-3], rows)).flatten(-4, -3)


def multiply_grouped(a: Float[Tensor, "*_b r _x"], b: Float[Tensor, "*_c _x _z"]) -> Float[Tensor, "*_d r _z"]:
    """a @ b where a may have more heads than b."""
    return compare_grouped(torch.matmul, a, b)


def pick_key_heads(index: Index, heads: int, kv_heads: int) -> Index:
    """Which key heads the chosen query heads use."""
    group = heads // kv_heads
    if isinstance(index, int):
        return index // group
    if isinstance(index, slice):
        if index == slice(None):
            return index
        index = torch.arange(*index.indices(heads))
    return torch.div(index, group, rounding_mode="floor")


def choose_key_heads(chosen: tuple[Index, ...], lead: tuple[int, ...], kv_heads: int) -> tuple[Index, ...]:
    """A choice of batch entries and query heads as a choice of what has `kv_heads` heads: each stands for a group."""
    if not chosen or len(chosen) < len(lead) or kv_heads in (1, lead[-1]):
        return chosen
    return (*chosen[:-1], pick_key_heads(chosen[-1], lead[-1], kv_heads))


def match_heads(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """k and v in the same number of heads, where one of them has a single head for all."""
    heads = max(k.shape[1], v.shape[1])
    return k.expand(-1, heads, -1, -1), v.expand(-1, heads, -1, -1)

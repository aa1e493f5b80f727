"""Grouped heads: several query heads share one key head, in the order of `repeat_interleave`."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from regard.errors import ShapeError


def grouped(
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


def untile_heads(x: Float[Tensor, "*b h t d"], groups: int) -> Float[Tensor, "*b h t d"]:
    """Heads from tiled order (key head = head mod `groups`) to ours (key head = head // (h / groups)).

    >>> import torch
    >>> untile_heads(torch.arange(6.0).view(6, 1, 1), 2).flatten()
    tensor([0., 2., 4., 1., 3., 5.])
    """
    heads = x.shape[-3]
    if groups < 1 or heads % groups:
        raise ShapeError(f"{heads} heads do not split into {groups} groups; choose groups that divide {heads}")
    return x.unflatten(-3, (-1, groups)).transpose(-4, -3).flatten(-4, -3)


def times(a: Tensor, b: Tensor) -> Tensor:
    return a @ b

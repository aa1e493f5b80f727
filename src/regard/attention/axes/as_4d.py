"""Tensors with other axes than (b, h, ., .), brought to these four."""

import math

from torch import Tensor

from regard.attention.axes.sizes import Sizes


def as_4d(x: Tensor, heads: int | None = None) -> Tensor:
    """q, k, v, weights or a mix as (b, h, n, d).

    Three axes are (b · h, n, d) where `heads` divides the first, else (b, n, d) with one head. More than four lead
    with several batch axes, which become one. Nested tensors stay as they are.

    >>> import torch
    >>> as_4d(torch.zeros(6, 5, 4), heads=3).shape, as_4d(torch.zeros(6, 5, 4)).shape
    (torch.Size([2, 3, 5, 4]), torch.Size([6, 1, 5, 4]))
    """
    if x.ndim == 4 or x.is_nested:
        return x
    if x.ndim > 4:
        return x.flatten(0, -4)
    if x.ndim == 2:
        return x[None, None]
    return x.unflatten(0, (-1, heads)) if heads and x.shape[0] % heads == 0 else x.unsqueeze(1)


def broadcast_4d(x: Tensor, sizes: Sizes) -> Tensor:
    """A mask or a bias as (b|1, h|1, q|1, k|1): what broadcasts against a map of these sizes, however many axes lead.

    >>> import torch
    >>> broadcast_4d(torch.zeros(5, 7), Sizes((2, 3), 5, 7)).shape
    torch.Size([1, 1, 5, 7])
    """
    x = add_leading_axes(x, max(2, len(sizes.lead)))
    if x.dim() == 4:
        return x
    lead = x.shape[:-3]
    if lead != sizes.batch and math.prod(lead) != 1:
        x = x.expand(*sizes.batch, *x.shape[-3:])
    return x.flatten(0, -4)


def expand_4d(x: Tensor, sizes: Sizes) -> Tensor:
    """q, k, v or a mask as (b, h|1, ., .): as `broadcast_4d`, with every entry of the batch."""
    x = broadcast_4d(x, sizes)
    batch = sizes.lead[0] if len(sizes.lead) == 2 else math.prod(sizes.batch)
    return x if x.shape[0] == batch else x.expand(batch, -1, -1, -1)


def add_leading_axes(t: Tensor, lead: int) -> Tensor:
    """`t` with at least `lead` axes before its last two, the new ones of size 1."""
    return t if t.ndim >= lead + 2 else t[(None,) * (lead + 2 - t.ndim)]

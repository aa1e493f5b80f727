"""The axes before the last two: which batch entries and which heads are meant."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.mask.base import Cells, Mask, Sizes

Index = int | slice | Tensor
Where = slice | Tensor


class LeadingIndex(NamedTuple):
    """Batch entry and head of every map there is, as indices that broadcast to the leading axes."""

    shape: tuple[int, ...]
    b: Int[Tensor, "..."]
    h: Int[Tensor, "..."]

    def pick(self, chosen: tuple[Index, ...]) -> "LeadingIndex":
        """The part that `chosen` picks, one index per leading axis."""
        b, h = pick(self.b, chosen), pick(self.h, chosen)
        shape = []
        for size, index in zip(self.shape, chosen):
            if isinstance(index, slice):
                shape.append(len(range(*index.indices(size))))
            elif isinstance(index, Tensor):
                shape.append(index.shape[0])
        return LeadingIndex((*shape, *self.shape[len(chosen) :]), b, h)


def whole(sizes: Sizes, device: torch.device | str | None) -> LeadingIndex:
    """All batch entries and all heads. Batch axes are counted as one."""
    lead = sizes.lead
    zero = torch.zeros((1,) * len(lead), dtype=torch.long, device=device)
    if not lead:
        return LeadingIndex((), zero, zero)
    h = torch.arange(lead[-1], device=device).view((1,) * (len(lead) - 1) + (-1,))
    if len(lead) == 1:
        return LeadingIndex(lead, zero, h)
    count = 1
    for size in sizes.batch:
        count *= size
    return LeadingIndex(lead, torch.arange(count, device=device).view(*sizes.batch, 1), h)


def pick(t: Tensor, chosen: tuple[Index, ...], *, offset: int = 0) -> Tensor:
    """`t` at one index per axis, starting at axis `offset`; an axis of size 1 stands for all its indices."""
    axis = offset
    for index in chosen:
        broadcast = t.shape[axis] == 1
        if isinstance(index, int):
            t = t.select(axis, 0 if broadcast else index)
            continue
        if not broadcast:
            if isinstance(index, slice):
                t = t[(slice(None),) * axis + (index,)]
            else:
                t = t.index_select(axis, index.to(t.device))
        axis += 1
    return t


def places(where: Where, length: int, device: torch.device | str | None) -> Int[Tensor, " n"]:
    """The positions that `where` names."""
    if isinstance(where, slice):
        return torch.arange(*bounds(where, length), device=device)
    return where.to(device)


def bounds(where: slice, length: int) -> tuple[int, int, int]:
    """Start, stop and step of a slice; the whole of a length that a compiler keeps open stays open."""
    if where == slice(None):
        return 0, length, 1
    start, stop, step = where.indices(length)
    return start, max(start, stop) if step > 0 else min(start, stop), step


def tile(
    mask: Mask, sizes: Sizes, lead: LeadingIndex, rows: Where = slice(None), columns: Where = slice(None)
) -> Bool[Tensor, "..."]:
    """The mask at these rows and columns, broadcasting against the leading axes."""
    device = lead.b.device
    q = places(rows, sizes.q, device)
    k = places(columns, sizes.k, device)
    at = Cells(lead.b[..., None, None], lead.h[..., None, None], q[:, None], k[None, :])
    return mask.cell(at, sizes)

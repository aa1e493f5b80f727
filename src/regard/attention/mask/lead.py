"""The axes before the last two: which batch entries and which heads are meant."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.axes.select import Index, Where, pick, places
from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Mask


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


def tile(
    mask: Mask, sizes: Sizes, lead: LeadingIndex, rows: Where = slice(None), columns: Where = slice(None)
) -> Bool[Tensor, "..."]:
    """The mask at these rows and columns, broadcasting against the leading axes."""
    device = lead.b.device
    q = places(rows, sizes.q, device)
    k = places(columns, sizes.k, device)
    at = Cells(lead.b[..., None, None], lead.h[..., None, None], q[:, None], k[None, :])
    return mask.cell(at, sizes)

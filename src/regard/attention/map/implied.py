"""A map that a mechanism without a matrix amounts to."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.select import Index, Where, places, take
from regard.attention.axes.sizes import Sizes
from regard.attention.map.source import WeightsSource, widen_dtype
from regard.attention.mask.base import Mask
from regard.attention.mask.lead import LeadingIndex, whole

if TYPE_CHECKING:
    from regard.attention.map.computed import Computed

Implying = Callable[[tuple[Index, ...], Where], Tensor]


class Implied(WeightsSource):
    """Weights that an approximation amounts to; `imply(chosen, rows)` gives whole rows of them.

    `mask` is what the mechanism honoured, `exact` the map that it stands in for, both where they are known.
    """

    kind = "implied"

    def __init__(
        self,
        imply: Implying,
        sizes: Sizes,
        *,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
        chosen: tuple[Index, ...] = (),
        lead: LeadingIndex | None = None,
        mask: Mask | None = None,
        exact: "Computed | None" = None,
    ) -> None:
        self.mask, self.exact = mask, exact
        self.imply, self.sizes, self.device, self.dtype, self.chosen = imply, sizes, device, widen_dtype(dtype), chosen
        self.lead = whole(sizes, device) if lead is None else lead

    def pick(self, chosen: tuple[Index, ...]) -> "Implied":
        """Picks of a pick reach `imply` as one pick of the whole."""
        lead = self.chosen + (slice(None),) * (len(self.sizes.lead) - len(self.chosen))
        open_axes = [axis for axis, index in enumerate(lead) if not isinstance(index, int)]
        both = list(lead)
        for axis, index in zip(open_axes, chosen):
            was = lead[axis]
            if isinstance(was, slice) and was == slice(None):
                both[axis] = index
                continue
            known = places(was, self.sizes.lead[axis], "cpu")  # type: ignore[arg-type]
            both[axis] = int(known[index]) if isinstance(index, int) else known[index]
        return Implied(
            self.imply,
            self.sizes,
            device=self.device,
            dtype=self.dtype,
            chosen=tuple(both),
            lead=self.lead.pick(chosen),
            mask=self.mask,
            exact=None if self.exact is None else self.exact.pick(chosen),
        )

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        return take(self.imply(self.chosen, rows), -1, columns).to(self.dtype)

"""Maps that were not asked: weights that somebody stored, and weights that a mechanism implies."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.map.asked import Asked, take, wide
from regard.attention.mask import Mask, Sizes
from regard.attention.mask.lead import Index, LeadingIndex, Where, pick, places, tile, whole
from regard.eager import version
from regard.errors import MapError, ShapeError, Stale


class Stored:
    """Weights as somebody kept them, with the mask they were made under where it is known."""

    kind = "stored"

    def __init__(
        self, kept: Float[Tensor, "*_b q k"], mask: Mask | None = None, lead: LeadingIndex | None = None
    ) -> None:
        if kept.ndim < 2:
            raise ShapeError(f"stored weights have shape {tuple(kept.shape)}; give (…, q, k)")
        self.kept, self.mask = kept, mask
        self.sizes = Sizes(tuple(kept.shape[:-2]), kept.shape[-2], kept.shape[-1])
        if mask is not None and lead is None:
            mask.check(self.sizes)
        self.lead = whole(self.sizes, kept.device) if lead is None else lead
        self.version = version(kept)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.version = version(self.kept)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.kept.shape)

    @property
    def device(self) -> torch.device:
        return self.kept.device

    @property
    def dtype(self) -> torch.dtype:
        return wide(self.kept.dtype)

    def pick(self, chosen: tuple[Index, ...]) -> "Stored":
        return Stored(pick(self.kept, chosen), self.mask, self.lead.pick(chosen))

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        if self.version is not None and version(self.kept) != self.version:
            raise Stale("the stored weights were written to after the map was made; make a map of a copy")
        return take(take(self.kept, -2, rows), -1, columns).to(self.dtype)

    def scores(self, rows: Where = slice(None), columns: Where = slice(None)) -> Tensor:
        raise MapError(f"this map is {self.kind}, so its scores are not known; ask for weights")

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."] | None:
        return None if self.mask is None else tile(self.mask, self.sizes, self.lead, rows, columns)

    def span(self, first: int, stop: int) -> tuple[int, int]:
        return 0, self.sizes.k


Implying = Callable[[tuple[Index, ...], Where], Tensor]


class Implied:
    """Weights that a mechanism without a matrix amounts to; `imply(chosen, rows)` gives whole rows of them.

    `mask` is what the mechanism honoured, `exact` the map that it stands in for, both where they are known.
    """

    kind = "implied"
    mask: Mask | None = None
    exact: Asked | None = None

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
        exact: Asked | None = None,
    ) -> None:
        self.mask, self.exact = mask, exact
        self.imply, self.sizes, self.device, self.dtype, self.chosen = imply, sizes, device, wide(dtype), chosen
        self.lead = whole(sizes, device) if lead is None else lead

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.lead.shape, self.sizes.q, self.sizes.k)

    def pick(self, chosen: tuple[Index, ...]) -> "Implied":
        """Picks of a pick are told to `imply` as one pick of the whole."""
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

    def scores(self, rows: Where = slice(None), columns: Where = slice(None)) -> Tensor:
        raise MapError(f"this map is {self.kind}, so it has no scores; ask for weights")

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."] | None:
        return None if self.mask is None else tile(self.mask, self.sizes, self.lead, rows, columns)

    def span(self, first: int, stop: int) -> tuple[int, int]:
        return 0, self.sizes.k

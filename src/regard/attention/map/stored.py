"""A map of weights that somebody already has."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.select import Index, Where, pick, take
from regard.attention.axes.sizes import Sizes
from regard.attention.map.source import WeightsSource, widen_dtype
from regard.attention.mask.base import Mask
from regard.attention.mask.lead import LeadingIndex, whole
from regard.eager import version
from regard.errors import ShapeError, Stale


class Stored(WeightsSource):
    """Weights as somebody kept them, with the mask they were made under where it is known."""

    kind = "stored"
    kept: Tensor
    version: int | None

    def __init__(
        self, kept: Float[Tensor, "*_b q k"], mask: Mask | None = None, lead: LeadingIndex | None = None
    ) -> None:
        if kept.ndim < 2:
            raise ShapeError(f"stored weights have shape {tuple(kept.shape)}; give (…, q, k)")
        self.hold(kept, mask, lead)
        self.version = version(kept)

    def hold(self, kept: Any, mask: Mask | None, lead: LeadingIndex | None) -> None:
        """Keep these weights, a tensor or what one is read from."""
        self.kept, self.mask, self.version = kept, mask, None
        self.sizes = Sizes(tuple(kept.shape[:-2]), kept.shape[-2], kept.shape[-1])
        if mask is not None and lead is None:
            mask.check(self.sizes)
        self.lead = whole(self.sizes, kept.device) if lead is None else lead

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.version = version(self.kept)

    @property
    def stored(self) -> "Stored":  # type: ignore[override]
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.kept.shape)

    @property
    def device(self) -> torch.device:
        return self.kept.device

    @property
    def dtype(self) -> torch.dtype:
        return widen_dtype(self.precision)

    @property
    def precision(self) -> torch.dtype:  # type: ignore[override]
        return self.kept.dtype

    def expire(self) -> None:
        """Raise from now on: what was written to is no longer what was kept."""
        self.version = -1

    def pick(self, chosen: tuple[Index, ...]) -> "Stored":
        return Stored(pick(self.kept, chosen), self.mask, self.lead.pick(chosen))

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        if self.version is not None and version(self.kept) != self.version:
            raise Stale("the stored weights were written to after the map was made; make a map of a copy")
        return take(take(self.kept, -2, rows), -1, columns).to(self.dtype)

    def copy(self) -> "Stored":
        return Stored(self.weights().clone(), self.mask, self.lead)

    def detach(self) -> "Stored":
        return Stored(self.kept.detach(), self.mask, self.lead)

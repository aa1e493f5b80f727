"""What an `AttentionMap` needs of where its numbers come from."""

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.axes.select import Index, Where
from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Mask
from regard.attention.mask.lead import LeadingIndex, tile
from regard.errors import MapError

if TYPE_CHECKING:
    from regard.attention.map.computed import Computed
    from regard.attention.map.stored import Stored


class MapPiece(NamedTuple):
    """Some rows of a map that are computed from q and k: the first of them, and the column of their first key.

    `v` are the values of these keys, where they are known.
    """

    source: "Computed"
    column: int = 0
    v: Tensor | None = None
    row: int = 0

    @property
    def rows(self) -> slice:
        return slice(self.row, self.row + self.source.sizes.q)

    @property
    def columns(self) -> slice:
        return slice(self.column, self.column + self.source.sizes.k)


@runtime_checkable
class Source(Protocol):
    """Where the weights of a map come from: computed from q and k, stored, or implied by another mechanism.

    `sizes` are those of the whole map, of which batch entries and heads may have been picked; `shape` is what is left.
    """

    kind: str  # "computed", "stored", "implied", or what was done to such a map

    @property
    def sizes(self) -> Sizes: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def dtype(self) -> torch.dtype:
        """What weights are computed in."""

    @property
    def precision(self) -> torch.dtype | None:
        """What q and k, or the weights, are held in; None where neither is held."""

    @property
    def mask(self) -> Mask | None:
        """What may be looked at, where a mask of the whole map says so."""

    @property
    def computed(self) -> "Computed | None":
        """All that decides the weights, where one q and one k do."""

    @property
    def stored(self) -> "Stored | None":
        """The weights that are held, where they are."""

    @property
    def exact(self) -> "Computed | None":
        """What exact attention computes from the same q and k, where these are known."""

    def pieces(self) -> tuple[MapPiece, ...]:
        """What the rows are computed from, in order; nothing where that is not known of all of them."""

    def leading_index(self) -> LeadingIndex:
        """Which batch entries and heads of the whole map these are."""

    def pick(self, chosen: tuple[Index, ...]) -> "Source":
        """The same for some batch entries and heads: one index per leading axis, from the first on."""

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        """The weights of these rows; `columns` may leave out only keys that none of them sees."""

    def scores(self, rows: Where = slice(None), columns: Where = slice(None)) -> Float[Tensor, "*_b r c"]:
        """The scores before the mask; raises `MapError` where they are not known."""

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."] | None:
        """Where these queries may look; broadcasts against weights. None: everywhere, as far as is known."""

    def span(self, first: int, stop: int) -> tuple[int, int]:
        """The range of keys outside of which these queries see nothing."""

    def dense(self) -> Float[Tensor, "..."]:
        """All weights, with their graph; broadcasts to the shape."""

    def copy(self) -> "Source":
        """The same from copies, which nothing written later can touch."""

    def detach(self) -> "Source":
        """The same without a graph behind it."""

    def describe(self) -> str:
        """The kind, and what else there is to know on one line."""


class WeightsSource:
    """A source that can give whole rows of weights and knows neither q nor k: what most answers then are."""

    kind: str
    sizes: Sizes
    lead: LeadingIndex
    mask: Mask | None = None
    precision: torch.dtype | None = None
    computed: "Computed | None" = None
    stored: "Stored | None" = None
    exact: "Computed | None" = None

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.lead.shape, self.sizes.q, self.sizes.k)

    def leading_index(self) -> LeadingIndex:
        return self.lead

    def pieces(self) -> tuple[MapPiece, ...]:
        return ()

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        raise NotImplementedError

    def scores(self, rows: Where = slice(None), columns: Where = slice(None)) -> Tensor:
        raise MapError(f"this map is {self.kind}, so its scores are not known; ask for weights")

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."] | None:
        return None if self.mask is None else tile(self.mask, self.sizes, self.lead, rows, columns)

    def span(self, first: int, stop: int) -> tuple[int, int]:
        return 0, self.sizes.k

    def dense(self) -> Float[Tensor, "..."]:
        return self.weights()

    def copy(self) -> "Source":
        return self  # type: ignore[return-value]

    def detach(self) -> "Source":
        return self  # type: ignore[return-value]

    def describe(self) -> str:
        mask = "" if self.mask is None else repr(self.mask)
        return f"{self.kind}, {mask}" if 0 < len(mask) < 80 else self.kind


def widen_dtype(dtype: torch.dtype) -> torch.dtype:
    """What to compute in: float32 or better, because sums are never taken in half precision."""
    return dtype if dtype == torch.float64 else torch.float32

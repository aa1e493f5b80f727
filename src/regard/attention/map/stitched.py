"""One map from several: rows that were computed with different keys, one below the other."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from regard.attention.axes.select import Index, Where, places, take
from regard.attention.axes.sizes import Sizes
from regard.attention.map.computed import Computed
from regard.attention.map.source import MapPiece, WeightsSource
from regard.errors import ShapeError


class StitchedSource(WeightsSource):
    """Rows of several computed maps as one map; a row knows nothing of keys that it was not computed with.

    >>> x, y = torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 1, 3)
    >>> first, second = Computed(x, x, Sizes((1, 1), 2, 2)), Computed(y, y, Sizes((1, 1), 1, 1))
    >>> StitchedSource([MapPiece(first, 0), MapPiece(second, 2)]).weights()
    tensor([[[[0.5000, 0.5000, 0.0000],
              [0.5000, 0.5000, 0.0000],
              [0.0000, 0.0000, 1.0000]]]])
    """

    kind = "computed"

    def __init__(self, pieces: Sequence[MapPiece], *, width: int | None = None) -> None:
        if not pieces or len({piece.source.shape[:-2] for piece in pieces}) > 1:
            raise ShapeError("a stitched map needs parts of one batch and one number of heads; give at least one part")
        height, placed = 0, []
        for piece in pieces:
            placed.append(piece._replace(row=height))
            height += piece.source.sizes.q
        first = pieces[0].source
        least = max(piece.columns.stop for piece in pieces)
        self._pieces = tuple(placed)
        self.sizes = Sizes(first.sizes.lead, height, least if width is None else width)
        self.device, self.dtype, self.precision = first.device, first.dtype, first.precision
        self.lead = first.leading_index()

    def pieces(self) -> tuple[MapPiece, ...]:
        return self._pieces

    def pick(self, chosen: tuple[Index, ...]) -> "StitchedSource":
        picked = [MapPiece(piece.source.pick(chosen), piece.column) for piece in self._pieces]
        return StitchedSource(picked, width=self.sizes.k)

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        return take(self.fill(rows, self.dtype, lambda source, some: source.weights(some)), -1, columns)

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."]:
        """Where each row might look; nowhere outside the keys that it was computed with."""
        return take(self.fill(rows, torch.bool, lambda source, some: source.allowed(some)), -1, columns)

    def fill(
        self, rows: Where, dtype: torch.dtype, ask: Callable[[Computed, Tensor], Tensor | None]
    ) -> Shaped[Tensor, "*_b r k"]:
        """Whole rows, each as its own piece answers, True where one answers None; 0 at keys that are not its own."""
        wanted = places(rows, self.sizes.q, "cpu")
        filled = torch.zeros((*self.shape[:-2], len(wanted), self.sizes.k), dtype=dtype, device=self.device)
        for piece in self._pieces:
            here = (wanted >= piece.row) & (wanted < piece.rows.stop)
            if bool(here.any()):
                answer = ask(piece.source, wanted[here] - piece.row)
                filled[..., here, piece.columns] = True if answer is None else answer
        return filled

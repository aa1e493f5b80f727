"""One map from several: rows that were computed with different keys, one below the other."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from regard.attention.axes.select import Index, Where, places, take
from regard.attention.map import Asked
from regard.attention.map.implied import Implied
from regard.attention.mask import Sizes
from regard.errors import ShapeError


class Stitch(NamedTuple):
    """Some rows, at which column of the whole their first key stands, and the values of their keys, for the proof."""

    source: Asked
    column: int
    v: Tensor | None = None


class Stitched(Implied):
    """Rows of several asked maps as one map; a row knows nothing of keys that it was not computed with.

    >>> x, y = torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 1, 3)
    >>> first, second = Asked(x, x, Sizes((1, 1), 2, 2)), Asked(y, y, Sizes((1, 1), 1, 1))
    >>> Stitched([Stitch(first, 0), Stitch(second, 2)]).weights()
    tensor([[[[0.5000, 0.5000, 0.0000],
              [0.5000, 0.5000, 0.0000],
              [0.0000, 0.0000, 1.0000]]]])
    """

    kind = "asked"

    def __init__(self, parts: Sequence[Stitch], *, width: int | None = None) -> None:
        if not parts or len({part.source.shape[:-2] for part in parts}) > 1:
            raise ShapeError("a stitched map needs parts of one batch and one number of heads; give at least one part")
        first = parts[0].source
        least = max(part.column + part.source.sizes.k for part in parts)
        height = sum(part.source.sizes.q for part in parts)
        self.parts = tuple(parts)
        self.sizes = Sizes(first.sizes.lead, height, least if width is None else width)
        self.device, self.dtype, self.lead, self.chosen = first.device, first.dtype, first.where(), ()

    def pick(self, chosen: tuple[Index, ...]) -> "Stitched":
        picked = [Stitch(part.source.pick(chosen), part.column) for part in self.parts]
        return Stitched(picked, width=self.sizes.k)

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        return take(self.filled(rows, self.dtype, lambda source, some: source.weights(some)), -1, columns)

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."]:
        """Where each row might look; nowhere outside the keys that it was computed with."""
        return take(self.filled(rows, torch.bool, lambda source, some: source.allowed(some)), -1, columns)

    def filled(
        self, rows: Where, dtype: torch.dtype, ask: Callable[[Asked, Tensor], Tensor | None]
    ) -> Shaped[Tensor, "*_b r k"]:
        """Whole rows, each as its own part answers, True where a part answers None; 0 at keys that are not its own."""
        wanted = places(rows, self.sizes.q, "cpu")
        found = torch.zeros((*self.shape[:-2], len(wanted), self.sizes.k), dtype=dtype, device=self.device)
        first = 0
        for source, column, _ in self.parts:
            here = (wanted >= first) & (wanted < first + source.sizes.q)
            if bool(here.any()):
                answer = ask(source, wanted[here] - first)
                found[..., here, column : column + source.sizes.k] = True if answer is None else answer
            first += source.sizes.q
        return found

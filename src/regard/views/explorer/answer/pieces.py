"""The scores behind a map, where they are known: of one asked map, or of several that were stitched."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.map.asked import Asked
from regard.attention.map.blocks import Source
from regard.trace.capture.stitched import Stitched


class Piece(NamedTuple):
    """Some rows of a map, from `first` on, whose keys begin at `column`."""

    first: int
    column: int
    source: Asked

    @property
    def columns(self) -> slice:
        return slice(self.column, self.column + self.source.sizes.k)


def pieces_of(source: Source) -> list[Piece]:
    """What the rows were asked from, in order; nothing where scores are not known."""
    if isinstance(source, Asked):
        return [Piece(0, 0, source)]
    found, first = [], 0
    for part in source.parts if isinstance(source, Stitched) else ():
        found.append(Piece(first, part.column, part.source))
        first += part.source.sizes.q
    return found


def touching(pieces: list[Piece], rows: Tensor) -> Iterator[tuple[Piece, Tensor, Tensor]]:
    """The pieces that hold some of these rows: which of the rows (places in `rows`), and their numbers in the piece."""
    for piece in pieces:
        here = ((rows >= piece.first) & (rows < piece.first + piece.source.sizes.q)).nonzero().flatten()
        if len(here):
            yield piece, here, (rows[here] - piece.first).to(piece.source.device)


def scores_at(source: Source, rows: Tensor) -> Float[Tensor, "r k"] | None:
    """The scores of whole rows before the mask; None where they are not known.

    NaN stands where a row and a key never met: a step of a generation was not computed with later keys.
    """
    pieces = pieces_of(source)
    if not pieces:
        return None
    found = torch.full((len(rows), source.shape[-1]), torch.nan, dtype=source.dtype)
    for piece, here, at in touching(pieces, rows):
        found[here, piece.columns] = piece.source.scores(at).cpu()
    return found


def allowed_at(source: Source, rows: Tensor | slice, columns: slice = slice(None)) -> Bool[Tensor, "r c"]:
    """Where these rows may look."""
    q, k = source.shape[-2:]
    height = len(range(*rows.indices(q))) if isinstance(rows, slice) else len(rows)
    found = source.allowed(rows if isinstance(rows, slice) else rows.to(source.device), columns)
    found = torch.ones((), dtype=torch.bool) if found is None else found.cpu()
    return found.expand(height, len(range(*columns.indices(k))))

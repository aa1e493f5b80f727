"""The scores behind a map, where they are known: of one computed map, or of several that were stitched."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.map.source import MapPiece, Source


def pieces_touching(pieces: Sequence[MapPiece], rows: Tensor) -> Iterator[tuple[MapPiece, Tensor, Tensor]]:
    """The pieces that hold some of these rows: which of the rows (places in `rows`), and their numbers in the piece."""
    for piece in pieces:
        here = ((rows >= piece.row) & (rows < piece.rows.stop)).nonzero().flatten()
        if len(here):
            yield piece, here, (rows[here] - piece.row).to(piece.source.device)


def scores_at(source: Source, rows: Tensor) -> Float[Tensor, "r k"] | None:
    """The scores of whole rows before the mask; None where they are not known.

    NaN stands where a row and a key never met: a step of a generation was not computed with later keys.
    """
    pieces = source.pieces()
    if not pieces:
        return None
    scores = torch.full((len(rows), source.shape[-1]), torch.nan, dtype=source.dtype)
    for piece, here, at in pieces_touching(pieces, rows):
        scores[here, piece.columns] = piece.source.scores(at).cpu()
    return scores


def allowed_at(source: Source, rows: Tensor | slice, columns: slice = slice(None)) -> Bool[Tensor, "r c"]:
    """Where these rows may look."""
    q, k = source.shape[-2:]
    height = len(range(*rows.indices(q))) if isinstance(rows, slice) else len(rows)
    allowed = source.allowed(rows if isinstance(rows, slice) else rows.to(source.device), columns)
    allowed = torch.ones((), dtype=torch.bool) if allowed is None else allowed.cpu()
    return allowed.expand(height, len(range(*columns.indices(k))))

"""The map that an edited model really used: that of its own scores, with the edits in it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.axes.select import Index, Where, places, take
from regard.attention.map.implied import Implied
from regard.attention.map.source import Source
from regard.trace.change.edited_rows import base_of_map, edited_rows
from regard.trace.change.edits import Block, Placed, Rows


class Part(NamedTuple):
    """The edits of one call, and where its rows and its keys begin in the whole map."""

    edits: list[Placed]
    row: int
    rows: int
    column: int


class Edited(Implied):
    """A map with edits: rows that none of them is for are the other map's, the rest is computed when asked."""

    def __init__(self, source: Source, changes: Sequence[Part]) -> None:
        self.source, self.changes = source, tuple(changes)
        self.sizes, self.device, self.dtype, self.chosen = source.sizes, source.device, source.dtype, ()
        lead = source.where() if hasattr(source, "where") else source.lead
        assert lead is not None
        self.lead = lead

    def pick(self, chosen: tuple[Index, ...]) -> "Edited":
        return Edited(self.source.pick(chosen), self.changes)

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        wanted = places(rows, self.sizes.q, "cpu")
        found = self.source.weights(wanted.to(self.device))
        found = found.expand(*self.shape[:-2], *found.shape[-2:]).clone()
        for part, here, at in self.touched(wanted):
            found[..., here, :] = self.changed(part, at, wanted[here]).to(found.dtype)
        return take(found, -1, columns)

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."] | None:
        """Where the mask lets a query look and nothing was blocked, and wherever an edit put weight."""
        wanted = places(rows, self.sizes.q, "cpu")
        seen = self.source.allowed(wanted.to(self.device))
        touched = list(self.touched(wanted))
        if not touched:
            return seen if seen is None or seen.shape[-1] == 1 else take(seen, -1, columns)
        shape = (*self.shape[:-2], len(wanted), self.sizes.k)
        found = torch.ones(shape, dtype=torch.bool, device=self.device) if seen is None else seen.expand(shape).clone()
        for part, here, at in touched:
            for placed in part.edits:
                if isinstance(placed.edit, Block):
                    cells = placed.columns(self.sizes.k, part.column).to(self.device)
                    found[..., here, :] &= ~(placed.meant(at)[..., None] & cells)
            found[..., here, :] |= self.changed(part, at, wanted[here]) > 0
        return take(found, -1, columns)

    def changed(self, part: Part, at: Rows, rows: Tensor) -> Tensor:
        """Rows after the edits of one part."""
        return edited_rows(base_of_map(self.source), at, part.edits, rows.to(self.device))

    def touched(self, wanted: Tensor) -> Iterator[tuple[Part, Tensor, Rows]]:
        """Which of the wanted rows each part changes, and whose rows they are."""
        for part in self.changes:
            queries = wanted - part.row
            meant = torch.cat([placed.queries for placed in part.edits])
            here = torch.isin(queries, meant) & (queries < part.rows)
            if bool(here.any()):
                at = queries[here].to(self.device)
                yield part, here.to(self.device), Rows(self.lead.b, self.lead.h, at, self.sizes.k, part.column)

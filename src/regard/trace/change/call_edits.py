"""The edits of one call, as changes of the map that holds its rows."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.map.source import Source
from regard.trace.change.edited_rows import base_of_map, blocked_cells, edit_rows
from regard.trace.change.edits import Block, EditRows, PlacedEdit


class CallEdits(NamedTuple):
    """The edits of one call, and where its rows and its keys begin in the whole map; a `MapChange`."""

    edits: list[PlacedEdit]
    row: int
    rows: int
    column: int

    def touches(self, rows: Tensor) -> Tensor:
        """Which of these rows of the map some edit is for."""
        queries = rows - self.row
        meant = torch.cat([placed.queries for placed in self.edits])
        return torch.isin(queries, meant) & (queries < self.rows)

    def weights(self, source: Source, rows: Tensor) -> Tensor:
        """Rows of the map after the edits."""
        at = self.rows_at(source, rows)
        return edit_rows(base_of_map(source), at, self.edits, rows.to(source.device))

    def hidden(self, source: Source, rows: Tensor) -> Tensor | None:
        """The cells of these rows that were blocked."""
        blocks = [placed for placed in self.edits if isinstance(placed.edit, Block)]
        return blocked_cells(blocks, self.rows_at(source, rows))

    def rows_at(self, source: Source, rows: Tensor) -> EditRows:
        """Whose rows these are."""
        lead, queries = source.leading_index(), (rows - self.row).to(source.device)
        return EditRows(lead.b, lead.h, queries, source.sizes.k, self.column)

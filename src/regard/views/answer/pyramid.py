"""One head from far above: one walk over its map gives the cells of a base level, and from these come all coarser."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.views.answer.fold import highest, lengths, opened, share, sums
from regard.views.answer.lines import Lines, scratch_for
from regard.views.answer.pack import Answer

CELLS = 1 << 22  # of the base level


@dataclass(frozen=True)
class Cells:
    """Cells of one level, `size` weights on a side, fewer at the lower and right edge."""

    size: int
    max: Float[Tensor, "r c"]
    sum: Float[Tensor, "r c"]
    open: Int[Tensor, "r c"]  # how many of its weights may be looked at

    @property
    def nbytes(self) -> int:
        shared = self.sum is self.max
        return self.max.nbytes * (1 if shared else 2) + self.open.nbytes


def base_of(q: int, k: int) -> int:
    """The finest level that is kept whole.

    >>> base_of(2048, 2048), base_of(16384, 16384)
    (0, 3)
    """
    level = 0
    while -(-q >> level) * -(-k >> level) > CELLS:
        level += 1
    return level


def cells_of(lines: Lines, rows: slice, columns: slice, size: int) -> Cells:
    """Some rows and columns as cells, computed strip by strip. Both begin at the edge of a cell."""
    shape = (-(-(rows.stop - rows.start) // size), -(-(columns.stop - columns.start) // size))
    source = lines.source
    kind = torch.int16 if size * size < 1 << 15 else torch.int32
    most, total = torch.zeros(shape, dtype=torch.float32), None
    count = torch.zeros(shape, dtype=kind)
    if size > 1:
        total = torch.zeros_like(most)
    with scratch_for(source) as scratch:
        for some in lines.strips(rows, size):
            low, high = (min(max(end, columns.start), columns.stop) for end in source.span(some.start, some.stop))
            if low >= high:
                continue
            first, stop = (low - columns.start) // size, -(-(high - columns.start) // size)
            seen = slice(columns.start + first * size, min(columns.stop, columns.start + stop * size))
            up, down = (some.start - rows.start) // size, -(-(some.stop - rows.start) // size)
            here = (slice(up, down), slice(first, stop))
            weights = lines.weights(some, seen, scratch)
            most[here] = highest(weights, size, size)
            count[here] = opened(source, some, seen, size)
            if total is not None:
                total[here] = sums(weights, size, size)
    return Cells(size, most, most if total is None else total, count)


def pyramid(lines: Lines) -> Cells:
    """The base level of a whole map; the sums of all its rows are known afterwards."""
    return cells_of(lines, slice(0, lines.q), slice(0, lines.k), 1 << base_of(lines.q, lines.k))


def coarser(base: Cells, rows: slice, columns: slice, size: int) -> Cells:
    """Cells of `size` for some rows and columns of the map, from those of a finer level."""
    here = tuple(slice(where.start // base.size, -(-where.stop // base.size)) for where in (rows, columns))
    most, total, count = base.max[here], base.sum[here], base.open[here]
    by = size // base.size
    if by == 1:
        return Cells(size, most, total, count)
    return Cells(size, highest(most, by, by), sums(total, by, by), sums(count, by, by))


def told(cells: Cells, rows: slice, columns: slice) -> Answer:
    """Cells as the answer to a question for a tile."""
    tall, wide = (lengths(where.stop - where.start, cells.size) for where in (rows, columns))
    arrays = {
        "max": cells.max,
        "mean": cells.sum / cells.open.clamp_min(1),
        "allowed": share(cells.open, tall[:, None] * wide),
    }
    return Answer({"rows": len(tall), "columns": len(wide), "sampled": 0}, arrays)

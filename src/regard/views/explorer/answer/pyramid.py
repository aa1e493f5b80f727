"""One head from far above: one walk over its map gives the cells of a base level, and from these come all coarser."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.views.explorer.answer import walk
from regard.views.explorer.answer.fold import allowed_share, cell_lengths, count_allowed, fold_max, fold_sum
from regard.views.explorer.answer.head_rows import HeadRows, scratch_for
from regard.views.explorer.answer.hidden_weight import may_stray, mean_allowed, split_hidden
from regard.views.explorer.answer.pack import Answer

CELLS = 1 << 22  # of the base level


@dataclass(frozen=True)
class TileCells:
    """Cells of one level, `size` weights on a side, fewer at the lower and right edge."""

    size: int
    max: Float[Tensor, "r c"]
    sum: Float[Tensor, "r c"]
    open: Int[Tensor, "r c"]  # how many of its weights may be looked at
    stray: Float[Tensor, "r c"] | None = None  # what went where nobody may look; not in `sum`

    @property
    def nbytes(self) -> int:
        shared = self.sum is self.max
        stray = 0 if self.stray is None else self.stray.nbytes
        return self.max.nbytes * (1 if shared else 2) + self.open.nbytes + stray


def base_of(q: int, k: int) -> int:
    """The finest level that is kept whole.

    >>> base_of(2048, 2048), base_of(16384, 16384)
    (0, 3)
    """
    level = 0
    while -(-q >> level) * -(-k >> level) > CELLS:
        level += 1
    return level


def cells_of(head: HeadRows, rows: slice, columns: slice, size: int, *, cores: bool = False) -> TileCells:
    """Some rows and columns as cells, computed strip by strip, on all cores where that is wanted.

    Both begin at the edge of a cell.
    """
    shape = (-(-(rows.stop - rows.start) // size), -(-(columns.stop - columns.start) // size))
    source, quick = head.source, walk.can_walk(head, size)
    kind = torch.int16 if size * size < 1 << 15 else torch.int32
    most = torch.zeros(shape, dtype=torch.float32)
    strays = may_stray(head, rows, columns)
    total = torch.zeros_like(most) if size > 1 or strays else most
    count = torch.zeros(shape, dtype=kind)
    stray = torch.zeros_like(most) if strays else None

    def strip(some: slice) -> None:
        low, high = (min(max(end, columns.start), columns.stop) for end in source.span(some.start, some.stop))
        if low >= high:
            return
        first, stop = (low - columns.start) // size, -(-(high - columns.start) // size)
        seen = slice(columns.start + first * size, min(columns.stop, columns.start + stop * size))
        up, down = (some.start - rows.start) // size, -(-(some.stop - rows.start) // size)
        here = (slice(up, down), slice(first, stop))
        count[here] = count_allowed(source, some, seen, size)
        with scratch_for(source) as scratch:
            if quick:
                most[here], total[here] = walk.walk_cells(head, some, seen, size, scratch)
                return
            weights = head.weights(some, seen, scratch)
            most[here] = fold_max(weights, size, size)
            if stray is not None:
                weights, hidden = split_hidden(source, some, seen, weights)
                stray[here] = fold_sum(hidden, size, size)
            if total is not most:
                total[here] = fold_sum(weights, size, size)

    if quick and cores:
        walk.run_on_cores(strip, walk.strips(rows, size))
    else:
        for some in walk.strips(rows, size) if quick else head.strips(rows, size):
            strip(some)
    return TileCells(size, most, total, count, stray)


def make_base(head: HeadRows) -> TileCells:
    """The base level of a whole map; the sums of all its rows are known afterwards."""
    return cells_of(head, slice(0, head.q), slice(0, head.k), 1 << base_of(head.q, head.k), cores=True)


def coarsen(base: TileCells, rows: slice, columns: slice, size: int) -> TileCells:
    """Cells of `size` for some rows and columns of the map, from those of a finer level."""
    here = tuple(slice(where.start // base.size, -(-where.stop // base.size)) for where in (rows, columns))
    most, total, count = base.max[here], base.sum[here], base.open[here]
    stray = None if base.stray is None else base.stray[here]
    by = size // base.size
    if by == 1:
        return TileCells(size, most, total, count, stray)
    stray = None if stray is None else fold_sum(stray, by, by)
    return TileCells(size, fold_max(most, by, by), fold_sum(total, by, by), fold_sum(count, by, by), stray)


def make_answer(cells: TileCells, rows: slice, columns: slice) -> Answer:
    """Cells as the answer to a question for a tile."""
    tall, wide = (cell_lengths(where.stop - where.start, cells.size) for where in (rows, columns))
    arrays = {
        "max": cells.max,
        "mean": cells.max
        if cells.size == 1
        else mean_allowed(cells.sum, cells.open, cells.stray, tall[:, None] * wide),
        "allowed": allowed_share(cells.open, tall[:, None] * wide),
    }
    return Answer({"rows": len(tall), "columns": len(wide), "sampled": 0}, arrays)

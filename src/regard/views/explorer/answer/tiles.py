"""Tiles of a map, as of a street map, and small pictures of all heads of a layer."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from regard.errors import TraceError
from regard.views.explorer.answer import questions
from regard.views.explorer.answer.fold import add_up, allowed_share, cell_lengths, count_allowed, fold
from regard.views.explorer.answer.head_rows import HeadRows
from regard.views.explorer.answer.hidden_weight import may_stray, split_hidden
from regard.views.explorer.answer.hidden_weight import mean_allowed as mean_of
from regard.views.explorer.answer.pack import Answer
from regard.views.explorer.answer.pyramid import TileCells, base_of, cells_of, coarsen, make_answer

TILE = 256  # cells on a side
AT_ONCE = 1 << 19  # weights of single rows: few enough to stay in a processor's own memory
WHOLE = 1 << 22  # weights of a layer up to which its small pictures are made of all of them


def answer_tile(head: HeadRows, base: Callable[[], TileCells], at: questions.TileQuestion) -> Answer:
    """One tile: max, mean over what may be looked at, and how much of it that is.

    Levels from the base on are folded from `base()`; a finer tile needs only its own rows and columns, so it does not
    wait for a walk over the whole map. A coarse one shows one query of every 2^level, the middle one, at once.
    """
    size = 1 << at.level
    rows, columns = (
        slice(number * TILE * size, min(length, (number + 1) * TILE * size))
        for number, length in ((at.row, head.q), (at.column, head.k))
    )
    if rows.start >= head.q or columns.start >= head.k:
        down, right = (-(-length // (TILE * size)) for length in (head.q, head.k))
        raise TraceError(
            f"tile ({at.row}, {at.column}) of level {at.level} was asked for, but that level has {down} × {right} "
            "tiles; count from 0"
        )
    if at.coarse and at.level:
        return sample_rows(head, rows, columns, size)
    if at.level < base_of(head.q, head.k):
        return make_answer(cells_of(head, rows, columns, size), rows, columns)
    return make_answer(coarsen(base(), rows, columns, size), rows, columns)


def sample_rows(head: HeadRows, rows: slice, columns: slice, size: int) -> Answer:
    """TileCells of which each shows one query: exact weights of few rows."""
    queries = middle_queries(rows, size)
    wide = cell_lengths(columns.stop - columns.start, size)
    shape = (len(queries), len(wide))
    most, mean_allowed, seen = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape, dtype=torch.uint8)
    done = 0
    for some in queries.split(max(1, AT_ONCE // max(1, head.k))):
        here = slice(done, done + len(some))
        weights = head.single_rows(some, columns)
        count = count_allowed(head.source, some, columns, size)
        most[here] = fold(weights, size, -1, torch.amax)
        stray = None
        if may_stray(head, some, columns):
            weights, hidden = split_hidden(head.source, some, columns, weights)
            stray = fold(hidden, size, -1, add_up).cpu()
        mean_allowed[here] = mean_of(fold(weights, size, -1, add_up).cpu(), count, stray, wide[None])
        seen[here] = allowed_share(count, wide.expand(len(some), -1))
        done += len(some)
    arrays = {"max": most, "mean": mean_allowed, "allowed": seen}
    return Answer({"rows": shape[0], "columns": shape[1], "sampled": size}, arrays)


def middle_queries(rows: slice, size: int) -> Tensor:
    """The query in the middle of each row of cells."""
    starts = torch.arange(rows.start, rows.stop, size)
    return starts + cell_lengths(rows.stop - rows.start, size).long() // 2


def answer_thumbs(heads: Sequence[HeadRows], size: int) -> Answer:
    """All heads of a layer, at most `size` cells on a side: of all weights where these are few, else sampled."""
    q, k = heads[0].q, heads[0].k
    level = 0
    while max(-(-q >> level), -(-k >> level)) > size:
        level += 1
    rows, columns, cell = slice(0, q), slice(0, k), 1 << level
    exact = q * k * len(heads) <= WHOLE or not level
    answers = [
        make_answer(cells_of(head, rows, columns, cell), rows, columns)
        if exact
        else sample_rows(head, rows, columns, cell)
        for head in heads
    ]
    arrays: dict[str, Tensor | None] = {}
    for name in ("max", "allowed"):
        arrays[name] = torch.stack([some for one in answers if (some := one.arrays[name]) is not None])
    return Answer({**answers[0].facts, "heads": len(heads)}, arrays)

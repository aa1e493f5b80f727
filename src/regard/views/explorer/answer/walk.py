"""Cells of a softmax in blocks so small that a core's own memory holds their scores until they are cells.

A block lies turned, (keys, queries): then what goes over keys goes over whole lines, many queries at once, and a weight
is divided by the sum of its row only after the keys of its cell are one number.
"""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.map.blocks import Scratch
from regard.attention.map.cores import count_cores, map_on_cores
from regard.attention.map.product import multiply
from regard.attention.map.softmax_strips import exp_, finite_maximum, hide_keys, is_product, scale_queries
from regard.views.explorer.answer.fold import add_up, fold
from regard.views.explorer.answer.head_rows import HeadRows

QUERIES, KEYS = 256, 1024  # of one block: 1 MB of scores
HELPERS = 4  # threads of one walk at most


def can_walk(head: HeadRows, size: int) -> bool:
    """Whether cells of this size are made here: single weights gain nothing, and another device wants large blocks."""
    return head.soft and size > 1 and head.source.device.type == "cpu"


def strips(rows: slice, size: int) -> list[slice]:
    """These rows in strips of one block, whole cells each; the last ones, which see most under a causal mask, first."""
    height = fill_cells(QUERIES, size)
    return [slice(first, min(rows.stop, first + height)) for first in range(rows.start, rows.stop, height)][::-1]


def fill_cells(length: int, size: int) -> int:
    """As much of a length as cells fill, one cell at least."""
    return max(size, length // size * size)


def walk_cells(head: HeadRows, rows: slice, columns: slice, size: int, scratch: Scratch) -> tuple[Tensor, Tensor]:
    """The largest weight and the sum of each cell of one strip; `columns` begin at the edge of a cell.

    Where the sums of its rows are not known, all that they see is walked once, and they are known afterwards.
    """
    known = bool(head.known[rows].all())
    if not known:
        low, high = head.source.span(rows.start, rows.stop)
        if low < columns.start or columns.stop < high:
            walk_cells(head, rows, slice(low, high), size, scratch)
            known = True
    shape = (-(-(columns.stop - columns.start) // size), rows.stop - rows.start)
    device, dtype = head.source.device, head.source.dtype
    most, total = scratch("most", shape, dtype, device), scratch("total", shape, dtype, device)
    tops: list[tuple[slice, Tensor]] = []
    width = fill_cells(KEYS, size)
    for first in range(columns.start, columns.stop, width):
        keys = slice(first, min(columns.stop, first + width))
        here = slice((first - columns.start) // size, -(-(keys.stop - columns.start) // size))
        powers = block_scores(head, rows, keys, scratch)
        if known:
            top = head.top[rows]
        else:
            tops.append((here, powers.amax(0)))
            top = finite_maximum(tops[-1][1])
        exp_(powers.sub_(top))
        most[here], total[here] = fold(powers, size, -2, torch.amax), fold(powers, size, -2, add_up)
    if not known:
        learn(head, rows, tops, most, total)
    by = head.total[rows].reciprocal()
    return fold(most.mul_(by), size, -1, torch.amax).mT, fold(total.mul_(by), size, -1, add_up).mT


def block_scores(head: HeadRows, rows: slice, keys: slice, scratch: Scratch) -> Float[Tensor, "c r"]:
    """The scores of a block, −inf where its queries may not look; to be written to."""
    source = head.source.computed
    assert source is not None
    if is_product(source):
        scores = multiply(source.keys(keys).to(source.dtype).contiguous(), scale_queries(source, rows))
    else:
        shape = (keys.stop - keys.start, rows.stop - rows.start)
        scores = source.scores_into(scratch("scores", shape, source.dtype, source.device).mT, rows, keys).mT
    hide_keys(scores, source, rows, keys)
    return scores


def learn(head: HeadRows, rows: slice, tops: list[tuple[slice, Tensor]], most: Tensor, total: Tensor) -> None:
    """Bring blocks, each relative to a maximum of its own, to that of the whole row, and keep maximum and sum."""
    source = head.source.computed
    assert source is not None
    nowhere = torch.full((rows.stop - rows.start,), -torch.inf, dtype=source.dtype)
    highest = torch.stack([nowhere, *(top for _, top in tops)]).amax(0)
    blind = highest == -torch.inf
    sink = None if source.sink is None else source.sink.to(source.dtype).reshape(())
    top = finite_maximum(highest if sink is None else torch.maximum(highest, sink).masked_fill(blind, -torch.inf))
    for here, its in tops:
        factor = (its - top).exp_()
        most[here].mul_(factor)
        total[here].mul_(factor)
    sums = total.sum(0)
    if sink is not None:
        sums += (sink - top).exp()
    head.keep(rows, top, sums.masked_fill_(blind, torch.inf))


def run_on_cores(work: Callable[[slice], None], parts: Iterable[slice]) -> None:
    """Do it for every part, on all cores; whoever calls this waits."""
    for _ in map_on_cores(work, parts, min(count_cores(), HELPERS)):
        pass

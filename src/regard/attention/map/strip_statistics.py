"""Statistics of a long softmax: each strip of rows goes over its keys once, on all cores."""

from bisect import bisect_left, bisect_right
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.axes.select import Where
from regard.attention.map.blocks import MapBlock, Scratch
from regard.attention.map.softmax_strips import (
    FAR,
    KEYS,
    LOG2E,
    HeadStrips,
    SoftmaxSums,
    bound_rows,
    exp_,
    walk_strips,
)
from regard.attention.map.source import Source

Place = tuple[int | slice, ...]


class RowNumbers(NamedTuple):
    """Of each row of a strip: the entropy in nats and the log-normaliser; 0 and −inf where it sees nothing."""

    entropy: Float[Tensor, " r"]
    log_normaliser: Float[Tensor, " r"]


class CellStrip(NamedTuple):
    """A strip folded into the cells of an overview: what they hold of each row of cells that it touches."""

    first: int  # the first row of cells
    cells: slice  # the columns of cells
    highest: Float[Tensor, "r c"]
    sums: Float[Tensor, "r c"]
    seen: Int[Tensor, "r c"]  # how many weights of each cell may be looked at


def number_rows(head: HeadStrips, rows: Where) -> RowNumbers:
    """Entropy and log-normaliser of these rows, in rising order, by one walk over all that they see."""
    around = bound_rows(rows)
    height = around.stop - around.start if isinstance(rows, slice) else len(rows)
    tops, seen, drifts, scratch = [], [], [], Scratch()
    for block in head.blocks(rows, head.span(rows)):
        shifted = block.shifted.clamp_min_(-FAR)
        powers = torch.mul(shifted, LOG2E, out=scratch("powers", tuple(shifted.shape), shifted.dtype, shifted.device))
        tops.append(block.top)
        seen.append(powers.exp2_().sum(0))
        drifts.append(powers.mul_(shifted).sum(0))
    return number_sums(head.sums(tops, seen, height), seen, drifts)


def number_sums(sums: SoftmaxSums, seen: list[Tensor], drifts: list[Tensor]) -> RowNumbers:
    """The numbers of rows from the sums of their blocks: of e to the score, and of that times the score."""
    if not seen:
        return RowNumbers(sums.top, sums.top - torch.inf)
    ours = torch.stack(seen).double() * sums.scales
    drift = (torch.stack(drifts).double() * sums.scales + ours * sums.gaps).sum(0)  # Σ exp(s − top) (s − top)
    log = sums.total.log()
    blind = sums.total == torch.inf
    entropy = ((sums.seen * log.masked_fill(blind, 0.0) - drift) / sums.total).masked_fill_(blind, 0.0)
    return RowNumbers(entropy, (sums.top + log).masked_fill_(blind, -torch.inf))


def number_all(source: Source) -> RowNumbers:
    """The same of every row of every head."""
    found = RowNumbers(*(torch.zeros(source.shape[:-1], dtype=source.dtype, device=source.device) for _ in range(2)))
    for index, rows, numbers in walk_strips(source, number_rows):
        here: Place = (*index, rows)
        found.entropy[here] = numbers.entropy.to(source.dtype)
        found.log_normaliser[here] = numbers.log_normaliser.to(source.dtype)
    return found


def even_edges(length: int, cells: int) -> list[int]:
    """Where each of so many cells begins, and where the last one ends: place i is in cell i · cells // length."""
    return [-(-cell * length // cells) for cell in range(cells + 1)]


def block_edges(length: int, size: int) -> list[int]:
    """The same for cells of one size, of which the last may be smaller."""
    return [*range(0, length, size), length]


class KeyCells:
    """Keys in cells with these edges, in runs of whole cells that a block holds."""

    def __init__(self, edges: list[int]) -> None:
        self.edges = edges
        self.each = max(1, KEYS // max(1, edges[1] - edges[0]))

    def runs(self, span: slice) -> list[slice]:
        """The cells that these keys touch, a block's worth at a time."""
        if span.start >= span.stop:
            return []
        first, stop = bisect_right(self.edges, span.start) - 1, bisect_left(self.edges, span.stop)
        return [slice(cell, min(stop, cell + self.each)) for cell in range(first, stop, self.each)]

    def keys(self, cells: slice) -> slice:
        return slice(self.edges[cells.start], self.edges[cells.stop])

    def edges_of(self, cells: slice) -> list[int]:
        """Where these cells begin, and where the last of them ends."""
        return self.edges[cells.start : cells.stop + 1]

    def widths(self, cells: slice) -> list[int]:
        """How many keys each of these cells has."""
        return [stop - first for first, stop in pairwise(self.edges_of(cells))]

    def fold(self, values: Float[Tensor, "c r"], cells: slice) -> tuple[Tensor, Tensor]:
        """The largest and the sum of each cell, (cells, r)."""
        edges = self.edges_of(cells)
        widths = {stop - first for first, stop in pairwise(edges)}
        if len(widths) == 1:
            whole = values.unflatten(0, (-1, widths.pop()))
            return whole.amax(1), whole.sum(1)
        parts = [values[first - edges[0] : stop - edges[0]] for first, stop in pairwise(edges)]
        return torch.stack([part.amax(0) for part in parts]), torch.stack([part.sum(0) for part in parts])


def fold_strip(head: HeadStrips, rows: slice, *, lines: Int[Tensor, " _n"], cells: KeyCells) -> CellStrip:
    """One strip of an overview; `lines` are the edges of its rows of cells."""
    to = line_of(torch.arange(rows.start, rows.stop), lines)
    first, height = int(to[0]), int(to[-1] - to[0]) + 1
    to = to - first
    runs = cells.runs(head.span(rows))
    if not runs:
        none = torch.zeros(height, 0, dtype=head.part.dtype)
        return CellStrip(first, slice(0, 0), none, none, none.long())
    queries = head.queries(rows)
    touched = slice(runs[0].start, runs[-1].stop)
    most = torch.empty(touched.stop - touched.start, rows.stop - rows.start, dtype=head.part.dtype)
    total = torch.empty_like(most)
    tall = torch.bincount(to, minlength=height)
    open_ = tall[:, None] * torch.tensor(cells.edges[touched.start : touched.stop + 1]).diff()
    tops, seen, places = [], [], []
    for run in runs:
        keys, here = cells.keys(run), slice(run.start - touched.start, run.stop - touched.start)
        block = head.block(rows, keys, queries)
        most[here], total[here] = cells.fold(exp_(block.shifted), run)
        tops.append(block.top)
        seen.append(total[here].sum(0))
        places.append(here)
        take_hidden(open_[:, here], head, rows, keys, to, [edge - keys.start for edge in cells.edges_of(run)])
    sums = head.sums(tops, seen, rows.stop - rows.start)
    for here, scale in zip(places, sums.scales, strict=True):
        share = (scale / sums.total).to(most.dtype)
        most[here] *= share
        total[here] *= share
    highest = most.new_zeros(height, len(most)).scatter_reduce_(0, to[:, None].expand_as(most.mT), most.mT, "amax")
    return CellStrip(first, touched, highest, torch.zeros_like(highest).index_add_(0, to, total.mT), open_)


def take_hidden(
    count: Int[Tensor, "r c"], head: HeadStrips, rows: slice, keys: slice, to: Int[Tensor, " n"], edges: list[int]
) -> None:
    """Take from the counts of cells what may not be looked at; only where the mask may hide any is it asked."""
    for side in MapBlock((), head.part, rows, keys, Scratch()).fringe:
        allowed = head.part.allowed(rows, side)
        if allowed is None:
            continue
        hidden = (~allowed).expand(len(to), side.stop - side.start)
        start, stop = side.start - keys.start, side.stop - keys.start
        for cell, (low, high) in enumerate(pairwise(edges)):
            if low < stop and start < high:
                inside = hidden[:, max(low, start) - start : min(high, stop) - start]
                count[:, cell].index_add_(0, to, inside.sum(-1), alpha=-1)


class CellSums(NamedTuple):
    """An overview before its means: the largest weight, the sum, and how many may be looked at, of each cell."""

    highest: Float[Tensor, "*b r c"]
    sums: Float[Tensor, "*b r c"]
    seen: Int[Tensor, "*b r c"]


def line_of(rows: Int[Tensor, " n"], edges: Int[Tensor, " _m"]) -> Int[Tensor, " n"]:
    """In which row of cells each of these rows is."""
    return torch.bucketize(rows, edges[1:], right=True)


def fold_all(source: Source, lines: list[int], columns: list[int]) -> CellSums:
    """All heads in cells with these edges."""
    shape = (*source.shape[:-2], len(lines) - 1, len(columns) - 1)
    most, sums = (torch.zeros(shape, dtype=source.dtype) for _ in range(2))
    found = CellSums(most, sums, torch.zeros(shape, dtype=torch.long))
    work = partial(fold_strip, lines=torch.tensor(lines), cells=KeyCells(columns))
    for index, _, strip in walk_strips(source, work):
        here: Place = (*index, slice(strip.first, strip.first + len(strip.highest)), strip.cells)
        found.highest[here] = torch.maximum(found.highest[here], strip.highest)
        found.sums[here] += strip.sums
        found.seen[here] += strip.seen
    return found

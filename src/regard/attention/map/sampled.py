"""A look at some rows of a long map, each exactly, and how much the rows that were not looked at may differ.

Rows are drawn at random from each band, the rows of one line of cells. Both bounds hold for any weights:

- At most a share p of the queries of a band hold a larger weight in a cell than the r drawn ones show. Were there more,
  all draws would miss them with a probability of (1 − p)^r at most.
- The mean of numbers between 0 and m over all rows is that over the drawn ones up to m · sqrt(ln(2 / δ) Σ w² / 2), with
  w the share of rows that each stands for (Hoeffding 1963, theorem 2, and section 6 for draws without replacement).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.map.cores import map_on_cores
from regard.attention.map.deadline import check_time
from regard.attention.map.softmax_strips import FAR, LOG2E, QUERIES, HeadStrips, has_strips
from regard.attention.map.source import Source
from regard.attention.map.strip_statistics import KeyCells, Place, block_edges, line_of, number_sums
from regard.errors import ShapeError

CONFIDENCE = 0.95
AT_ONCE = 1 << 22  # weights of whole rows, where no strip is walked


@dataclass(frozen=True, eq=False)
class SampledMap:
    """`SampledMap` is a map from far, by some queries of each line of cells: `largest` and `entropy`, with bounds.

    Each bound holds with a probability of `CONFIDENCE`, 95 %, for any one cell or head.
    """

    largest: Float[Tensor, "*b r c"]  # of each cell: the largest weight of the drawn queries; −inf where all is hidden
    beyond: float  # of the queries of a cell, at most this share holds a larger one
    entropy: Float[Tensor, "*b"]  # mean over all queries, in nats
    error: float  # by how much it may differ from that of all queries; infinite where the map is no softmax
    queries: int  # how many were drawn of each line of cells
    block: tuple[int, int]  # queries and keys of one cell

    @property
    def exact(self) -> bool:
        """Whether all queries were looked at."""
        return self.queries >= self.block[0]

    def describe(self) -> str:
        """What one cell shows, and how sure that is.

        >>> some = SampledMap(torch.zeros(1, 1), 0.17, torch.zeros(()), 0.2, 16, (256, 256))
        >>> some.describe()
        'sampled: the largest of 16 of 256 queries × 256 keys; at most 17 % of the queries hold more (95 % sure)'
        """
        high, wide = self.block
        if self.exact:
            return f"each cell is the largest of {high} × {wide}"
        return (
            f"sampled: the largest of {self.queries} of {high} queries × {wide} keys; at most {self.beyond:.0%} of the "
            f"queries hold more ({CONFIDENCE:.0%} sure)"
        ).replace("%", " %")


class SampledStrip(NamedTuple):
    """Drawn rows of some bands of one head."""

    cells: slice
    largest: Float[Tensor, "r c"]
    entropy: Float[Tensor, " r"]


@torch.no_grad()
def sample(source: Source, rows: int, columns: int, queries: int, seed: int) -> SampledMap:
    """Some queries of each of at most `rows` lines, in at most `columns` cells of keys."""
    if min(rows, columns, queries) < 1:
        raise ShapeError(f"sample({rows}, {columns}, queries={queries}) asks for no cells; give at least 1 of each")
    *lead, q, k = source.shape
    if not q or not k:
        raise ShapeError(f"a map of {q} queries and {k} keys has nothing to look at")
    block = (-(-q // rows), -(-k // columns))
    lines, cells = block_edges(q, block[0]), KeyCells(block_edges(k, block[1]))
    drawn = draw_rows(lines, queries, seed)
    largest = torch.full((*lead, len(lines) - 1, len(cells.edges) - 1), -torch.inf, dtype=source.dtype)
    entropy = torch.zeros(tuple(lead), dtype=torch.float64)
    sizes = torch.tensor(lines).diff()
    stand_for = (sizes / sizes.clamp_max(queries))[line_of(drawn, torch.tensor(lines))].double() / q
    for index in product(*(range(size) for size in lead)):
        part = source.pick(index) if index else source
        done = 0
        for strip in look_at(part, drawn, cells):
            some = slice(done, done + len(strip.entropy))
            to = line_of(drawn[some], torch.tensor(lines))[:, None].expand_as(strip.largest)
            place: Place = (*index, slice(None), strip.cells)
            here = largest[place]
            here.scatter_reduce_(0, to, strip.largest.to(here), "amax")
            entropy[index] += strip.entropy.double().cpu() @ stand_for[some]
            done = some.stop
        show_what_is_open(largest[index], part, lines, cells)
    most = math.log(k) if source.computed is not None and source.computed.is_softmax else math.inf
    error = most * math.sqrt(math.log(2 / (1 - CONFIDENCE)) / 2 * float(stand_for.square().sum()))
    beyond = share_beyond(sizes.tolist(), queries)
    return SampledMap(largest, beyond, entropy, error if queries < block[0] else 0.0, queries, block)


def draw_rows(edges: list[int], count: int, seed: int) -> Int[Tensor, " n"]:
    """So many rows of each band, in rising order: drawn without replacement, the same for the same seed."""
    chance = torch.Generator().manual_seed(seed)
    drawn = [
        start + torch.randperm(stop - start, generator=chance)[:count].sort().values for start, stop in pairwise(edges)
    ]
    return torch.cat(drawn)


def share_beyond(sizes: list[int], count: int) -> float:
    """The largest share of a band that all draws may miss, with a probability of 1 − `CONFIDENCE` at most."""
    worst = 0.0
    for size in set(sizes):
        missed, chance = 0, 1.0
        while count < size and chance > 1 - CONFIDENCE and missed < size - count:
            chance *= (size - count - missed) / (size - missed)  # that no draw is among one row more
            missed += 1
        worst = max(worst, (missed if chance > 1 - CONFIDENCE else missed - 1) / size if count < size else 0.0)
    return worst


def look_at(source: Source, rows: Int[Tensor, " n"], cells: KeyCells) -> Iterator[SampledStrip]:
    """These rows of one head, strip by strip."""
    if has_strips(source):
        assert source.computed is not None
        head = HeadStrips(source.computed)
        yield from map_on_cores(lambda some: sample_strip(head, some, cells), rows.split(QUERIES))
        return
    wide = torch.tensor(cells.edges).diff().tolist()
    for some in rows.split(max(1, AT_ONCE // source.shape[-1])):
        check_time()
        weights = source.weights(some.to(source.device)).expand(len(some), source.shape[-1])
        entropy = torch.special.entr(weights).sum(-1)
        allowed = source.allowed(some.to(source.device), slice(None))
        seen = weights if allowed is None else weights.masked_fill(~allowed, -torch.inf)
        largest = torch.stack([part.amax(-1) for part in seen.split(wide, -1)], -1)
        yield SampledStrip(slice(0, len(wide)), largest.cpu(), entropy)


def sample_strip(head: HeadStrips, rows: Int[Tensor, " n"], cells: KeyCells) -> SampledStrip:
    """Some rows, in rising order, by one walk over all that they see."""
    runs = cells.runs(head.span(rows))
    if not runs:
        return SampledStrip(slice(0, 0), torch.zeros(len(rows), 0), torch.zeros(len(rows)))
    queries, touched = head.queries(rows), slice(runs[0].start, runs[-1].stop)
    largest = torch.empty(touched.stop - touched.start, len(rows), dtype=head.part.dtype)
    tops, seen, drifts, places = [], [], [], []
    for run in runs:
        block = head.block(rows, cells.keys(run), queries)
        here = slice(run.start - touched.start, run.stop - touched.start)
        largest[here] = torch.stack([part.amax(0) for part in block.shifted.split(cells.widths(run))])
        shifted = block.shifted.clamp_min_(-FAR)
        powers = (shifted * LOG2E).exp2_()
        tops.append(block.top)
        seen.append(powers.sum(0))
        drifts.append(powers.mul_(shifted).sum(0))
        places.append(here)
    sums = head.sums(tops, seen, len(rows))
    for here, gap in zip(places, sums.gaps, strict=True):
        hidden = largest[here] == -torch.inf
        weights = (largest[here].double() + gap).exp() / sums.total
        largest[here] = weights.to(largest.dtype).masked_fill_(hidden, -torch.inf)
    return SampledStrip(touched, largest.mT, number_sums(sums, seen, drifts).entropy)


def show_what_is_open(largest: Float[Tensor, "r c"], source: Source, lines: list[int], cells: KeyCells) -> None:
    """Write 0 into cells where a query that was not drawn may look, and no drawn one."""
    for line, (first, stop) in enumerate(pairwise(lines)):
        low, high = source.span(first, stop)
        for run in cells.runs(slice(low, high)):
            for cell in range(run.start, run.stop):
                if largest[line, cell] > -torch.inf:
                    continue
                allowed = source.allowed(slice(first, stop), slice(cells.edges[cell], cells.edges[cell + 1]))
                if allowed is None or bool(allowed.any()):
                    largest[line, cell] = 0.0

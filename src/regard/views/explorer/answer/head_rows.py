"""The weights of one head, any rows and columns of them, with what was once learned of its rows."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.map.blocks import MapBlock, Scratch
from regard.attention.map.deadline import check_time
from regard.attention.map.source import Source
from regard.attention.map.statistics import computed_part, is_softmax, mask_scores, soften
from regard.views.explorer.answer.fold import fringe

STRIP = 1 << 21  # cells of whole rows that are computed at once
SPARE = 2  # scratches that wait for the next question

spare: dict[tuple[torch.dtype, torch.device], deque[Scratch]] = {}


@contextmanager
def scratch_for(source: Source) -> Iterator[Scratch]:
    """Memory for one question; fresh pages for each would cost more than the sums."""
    waiting = spare.setdefault((source.dtype, source.device), deque(maxlen=SPARE))
    try:
        scratch = waiting.pop()
    except IndexError:
        scratch = Scratch()
    yield scratch
    waiting.append(scratch)


class HeadRows:
    """One head, (q, k). Of a softmax, the maximum and the sum of every row are kept once they are known: then any
    part of the map needs only its own scores. They stay apart, so that large scores cost no precision.

    Threads may use one at the same time: a row is marked as known after its numbers are written.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.q, self.k = source.shape
        self.soft = is_softmax(source)
        kept = self.q if self.soft else 0
        self.top = torch.zeros(kept, dtype=source.dtype, device=source.device)
        self.total = torch.zeros_like(self.top)
        self.known = torch.zeros(kept, dtype=torch.bool)

    @property
    def nbytes(self) -> int:
        return self.top.nbytes * 2 + self.known.nbytes

    @property
    def height(self) -> int:
        """How many whole rows are computed at once."""
        return max(1, STRIP // max(1, self.k))

    def strips(self, rows: slice, size: int = 1) -> Iterator[slice]:
        """These rows in strips, whole cells each."""
        height = max(size, self.height // size * size)
        for first in range(rows.start, rows.stop, height):
            check_time()
            yield slice(first, min(rows.stop, first + height))

    def weights(self, rows: slice, columns: slice, scratch: Scratch) -> Float[Tensor, "r c"]:
        """Some rows and columns. To be read before the scratch is used again."""
        source = self.source
        if source.stored is not None:
            return source.weights(rows, columns)
        if not self.soft:
            return source.weights(rows).expand(rows.stop - rows.start, self.k)[:, columns]
        low, high = source.span(rows.start, rows.stop)
        if not bool(self.known[rows].all()):
            if columns.start <= low and high <= columns.stop:
                return spread(self.learn(rows, columns, scratch), columns, columns)
            for some in self.strips(rows):
                if not bool(self.known[some].all()):
                    self.learn(some, slice(*source.span(some.start, some.stop)), scratch)
        seen = slice(max(low, columns.start), min(high, columns.stop))
        if seen.start >= seen.stop:
            return self.top.new_zeros(rows.stop - rows.start, columns.stop - columns.start)
        scores = mask_scores(MapBlock((), source, rows, seen, scratch))
        return spread(self.normalise(scores, rows), seen, columns)

    def single_rows(self, rows: Tensor, columns: slice) -> Float[Tensor, "r c"]:
        """Single rows, in rising order, and some columns."""
        source = self.source
        if not self.soft:
            weights = source.weights(rows.to(source.device))
            return weights.expand(len(rows), self.k)[:, columns]
        low, high = source.span(int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        known = bool(self.known[rows].all())
        if known:
            low, high = max(low, columns.start), min(high, columns.stop)
        if low >= high:
            return self.top.new_zeros(len(rows), columns.stop - columns.start)
        at, seen = rows.to(source.device), slice(low, high)
        scores = source.scores(at, seen)
        for side in fringe(source, rows, seen):
            allowed = source.allowed(at, side)
            if allowed is not None:
                scores[:, side.start - low : side.stop - low].masked_fill_(~allowed, -torch.inf)
        if known:
            return spread(self.normalise(scores, rows), seen, columns)
        block = MapBlock((), source, slice(0, len(rows)), seen, Scratch())
        return spread(self.soften_rows(block, scores, rows), seen, columns)

    def learn(self, rows: slice, columns: slice, scratch: Scratch) -> Float[Tensor, "r c"]:
        """The weights of whole rows, all that they see being in `columns`; from now on their sums are known."""
        source = self.source
        block = MapBlock((), source, rows, columns, scratch)
        scores = mask_scores(block)
        computed = computed_part(block)
        plain = computed.sink is None and computed.bias is None
        if plain and block.is_sighted():  # a bias may blind
            top = scores.amax(-1)
            weights = torch.softmax(scores, -1, out=block.room("weights"))
            self.keep(rows, top, weights.amax(-1).reciprocal())  # the largest weight is 1 / total
            return weights
        return self.soften_rows(block, scores, rows)

    def soften_rows(self, block: MapBlock, scores: Tensor, rows: slice | Tensor) -> Float[Tensor, "r c"]:
        """The weights of whole rows from their scores, which are written over; their sums are kept."""
        shifted, top, extra, blind = soften(block, scores)
        powers = shifted.exp_()
        total = (powers.sum(-1, keepdim=True) + extra).masked_fill_(blind, torch.inf)
        self.keep(rows, top.squeeze(-1), total.squeeze(-1))
        return powers.div_(total)

    def keep(self, rows: slice | Tensor, top: Tensor, total: Tensor) -> None:
        self.top[rows], self.total[rows] = top, total
        self.known[rows] = True

    def normalise(self, scores: Tensor, rows: slice | Tensor) -> Tensor:
        """Masked scores of known rows as weights, in place; a row that sees nothing has an infinite sum."""
        return scores.sub_(self.top[rows, None]).exp_().div_(self.total[rows, None])


def spread(weights: Tensor, known: slice, columns: slice) -> Tensor:
    """The columns that are asked for, 0 where nothing is seen."""
    low, high = max(known.start, columns.start), min(known.stop, columns.stop)
    if low >= high:
        return weights.new_zeros(weights.shape[0], columns.stop - columns.start)
    weights = weights[:, low - known.start : high - known.start]
    if (low, high) == (columns.start, columns.stop):
        return weights
    return torch.nn.functional.pad(weights, (low - columns.start, columns.stop - high))

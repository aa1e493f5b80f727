"""Rows of a softmax in blocks so small that a core's own memory holds their scores until they are sums.

A block lies turned, (keys, queries): then what goes over keys goes over whole lines, many queries at once. Each block
takes off the maximum of its own part of a row; parts are brought to that of the whole row when all are known, in
float64.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.select import Where, take
from regard.attention.map.blocks import MapBlock, Scratch
from regard.attention.map.computed import Computed
from regard.attention.map.cores import map_on_cores
from regard.attention.map.product import multiply
from regard.attention.map.source import Source
from regard.eager import is_transformed

QUERIES, KEYS = 256, 1024  # of one block: 1 MB of scores
LEAST = 1 << 23  # weights of a head from which on strips gain more than they cost
LOG2E = 1 / math.log(2)
FAR = 1e4  # e to the −10,000 is 0 in every precision, and 0 · −10,000 is 0 where 0 · −inf would be NaN

Result = TypeVar("Result")
Rows = TypeVar("Rows", bound=Where)


class KeyBlock(NamedTuple):
    """Some keys of a strip, of which the caller may write to the scores."""

    keys: slice
    shifted: Float[Tensor, "c r"]  # score − top; −inf where hidden
    top: Float[Tensor, " r"]  # the largest score of each query among these keys, −inf where it sees none


class SoftmaxSums(NamedTuple):
    """What each row of a strip comes to after all its keys, in float64, and how its blocks come to the same terms."""

    top: Float[Tensor, " r"]  # row maximum, the sink in it; 0 where the row sees nothing
    total: Float[Tensor, " r"]  # Σ exp(score − top), the sink in it; infinite where the row sees nothing
    seen: Float[Tensor, " r"]  # the same without the sink; 0 where the row sees nothing
    gaps: Float[Tensor, "blocks r"]  # what each block took off − top
    scales: Float[Tensor, "blocks r"]  # e to that: what the sums of a block are multiplied by


class HeadStrips:
    """One head of a softmax that is computed from q and k, ready to be walked in strips of rows."""

    def __init__(self, part: Computed, index: tuple[int, ...] = ()) -> None:
        part.check_fresh()
        self.part, self.index = part, index  # which of the leading axes it is
        self.q, self.k = part.shape
        self.keys = part.keys(slice(None)).to(part.dtype).contiguous() if is_product(part) else None

    def strips(self, height: int = 0) -> list[slice]:
        """All rows, strip by strip."""
        height = height or QUERIES
        return [slice(first, min(self.q, first + height)) for first in range(0, self.q, height)]

    def span(self, rows: Where) -> slice:
        """The keys outside of which these rows, in rising order, see nothing."""
        around = bound_rows(rows)
        return slice(*self.part.span(around.start, around.stop))

    def blocks(self, rows: Where, columns: slice, width: int = 0, *, known: Tensor | None = None) -> Iterator[KeyBlock]:
        """These rows over these keys, block by block; rows are in rising order."""
        queries = self.queries(rows)
        width = width or KEYS
        for first in range(columns.start, columns.stop, width):
            yield self.block(rows, slice(first, min(columns.stop, first + width)), queries, known)

    def queries(self, rows: Where) -> Float[Tensor, "r d"] | None:
        """q at these rows, scaled, where scores are plain products."""
        return None if self.keys is None else scale_queries(self.part, rows)

    def block(self, rows: Where, keys: slice, queries: Tensor | None, known: Tensor | None = None) -> KeyBlock:
        """These rows over some keys; `known` is what to take off their scores, else it is their largest here."""
        if self.keys is None or queries is None:
            scores = self.part.scores(rows, keys).mT.expand(keys.stop - keys.start, -1).contiguous()
        else:
            scores = multiply(take(self.keys, -2, keys), queries)  # c r
        hide_keys(scores, self.part, rows, keys)
        if known is not None:
            return KeyBlock(keys, scores.sub_(known), known)
        top = scores.amax(0)
        return KeyBlock(keys, scores.sub_(finite_maximum(top)), top)

    def sums(self, tops: list[Tensor], seen: list[Tensor], rows: int) -> SoftmaxSums:
        """What the blocks of a strip come to: their maxima, and the sums of their powers."""
        part = self.part
        if not tops:
            nothing = torch.zeros(rows, dtype=torch.float64, device=part.device)
            return SoftmaxSums(nothing, nothing + torch.inf, nothing, nothing[None, :][:0], nothing[None, :][:0])
        maxima = torch.stack(tops).double()
        highest = maxima.amax(0)
        blind = highest == -torch.inf
        sink = None if part.sink is None else part.sink.to(part.dtype).double().reshape(())
        top = finite_maximum(highest if sink is None else torch.maximum(highest, sink).masked_fill(blind, -torch.inf))
        gaps = (maxima - top).clamp_min_(-FAR)
        scales = gaps.exp()
        shown = (torch.stack(seen).double() * scales).sum(0).masked_fill_(blind, 0.0)
        total = shown if sink is None else shown + (sink - top).exp()
        return SoftmaxSums(top, total.masked_fill(blind, torch.inf), shown, gaps, scales)


def is_product(part: Computed) -> bool:
    """Whether the scores are products of q and k, and nothing else."""
    return part.is_dot and part.softcap is None and part.bias is None and part.q.ndim == part.k.ndim == 2


def scale_queries(part: Computed, rows: Where) -> Float[Tensor, "r d"]:
    """q at these rows, such that its products with k are scores."""
    return (part.queries(rows).to(part.dtype) * part.scale).contiguous()


def hide_keys(scores: Float[Tensor, "c r"], part: Computed, rows: Where, keys: slice) -> None:
    """Write −inf where these queries may not look; only where the mask may hide any is it asked."""
    for side in MapBlock((), part, bound_rows(rows), keys, Scratch()).fringe:
        allowed = part.allowed(rows, side)
        if allowed is not None:
            scores[side.start - keys.start : side.stop - keys.start].masked_fill_(~allowed.mT, -torch.inf)


def exp_(x: Tensor) -> Tensor:
    """e to the x, in place: torch computes powers of 2 four times as fast as those of e."""
    return x.mul_(LOG2E).exp2_()


def bound_rows(rows: Where) -> slice:
    """The range that these rows, in rising order, lie in."""
    return rows if isinstance(rows, slice) else slice(int(rows[0]), int(rows[-1]) + 1) if len(rows) else slice(0, 0)


def finite_maximum(top: Tensor) -> Tensor:
    """What to take off the scores of each row: its maximum, 0 where nothing is seen."""
    return top.masked_fill(top == -torch.inf, 0.0)


def has_strips(source: Source) -> bool:
    """Whether a map is walked in strips: a large softmax of scores that are known, in the memory of the processor."""
    computed = source.computed
    if computed is None or not computed.is_softmax or source.device.type != "cpu":
        return False
    if torch.compiler.is_compiling() or is_transformed():
        return False
    return source.shape[-2] * source.shape[-1] >= LEAST


def walk_strips(
    source: Source, work: Callable[[HeadStrips, slice], Result]
) -> Iterator[tuple[tuple[int, ...], slice, Result]]:
    """What comes of each strip of each head, in order, computed on as many cores as torch may use."""
    return walk_rows(source, work, HeadStrips.strips)


def walk_rows(
    source: Source, work: Callable[[HeadStrips, Rows], Result], choose: Callable[[HeadStrips], Sequence[Rows]]
) -> Iterator[tuple[tuple[int, ...], Rows, Result]]:
    """The same of the strips that `choose` gives for a head: any rows, in rising order."""
    for index in product(*(range(size) for size in source.shape[:-2])):
        part = source.pick(index).computed
        assert part is not None
        head = HeadStrips(part, index)
        strips = choose(head)
        for rows, result in zip(strips, map_on_cores(partial(work, head), strips), strict=True):
            yield index, rows, result

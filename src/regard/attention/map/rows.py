"""Some weights of a map: whole rows, in blocks, cut to the columns that were asked for."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.axes.select import Where, bounds, take
from regard.attention.map import statistics
from regard.attention.map.blocks import BUDGET, MapBlock, Scratch
from regard.attention.map.source import Source


def weights_at(source: Source, rows: Where, columns: Where) -> Float[Tensor, "*_b r c"]:
    """Some rows and columns. A weight needs its whole row, so rows are computed in blocks, then cut."""
    *lead, q, k = source.shape
    per_row = max(1, k)
    for size in lead:
        per_row *= max(1, size)
    height = max(1, BUDGET // per_row)
    start, stop, step = bounds(rows, q) if isinstance(rows, slice) else (0, rows.shape[0], 1)
    count = len(range(start, stop, step))
    found, done, parts = None, 0, []
    scratch = Scratch()
    for some in split_runs(rows, q, height):
        if isinstance(some, slice):
            seen = slice(*source.span(some.start, some.stop))
            part = cut_columns(weights_of_rows(source, some, seen, scratch), seen, columns, k)
        else:
            part = take(source.weights(some.to(source.device)), -1, columns)
        if part.shape[-2] == count:
            return part.expand(*lead, *part.shape[-2:])
        if part.requires_grad or torch.compiler.is_compiling():
            parts.append(part)
            continue
        if found is None:  # written into, because views would keep whole blocks and small copies fragment the heap
            found = part.new_empty((*lead, count, part.shape[-1]))
        found[..., done : done + part.shape[-2], :] = part
        done += part.shape[-2]
    if found is None:
        found = torch.cat(parts, -2)
    return found.expand(*lead, *found.shape[-2:])


def weights_of_rows(source: Source, rows: slice, columns: slice, scratch: Scratch) -> Tensor:
    """Whole rows; where no gradient is wanted, in memory that the next block uses again."""
    computed = source.computed
    if computed is None or not computed.is_softmax or torch.compiler.is_compiling():
        return source.weights(rows, columns)
    if torch.is_grad_enabled() and computed.may_need_gradient():
        return source.weights(rows, columns)
    block = MapBlock((), source, rows, columns, scratch)
    return statistics.weights_of(block)


def split_runs(rows: Where, length: int, height: int) -> Iterator[Where]:
    """The rows in runs of at most `height`, as slices where they follow each other."""
    if isinstance(rows, slice):
        start, stop, step = bounds(rows, length)
        if step == 1:
            for first in range(start, max(stop, start + 1), height):
                yield slice(first, min(stop, first + height))
            return
        rows = torch.arange(start, stop, step)
    yield from rows.split(height)


def cut_columns(weights: Tensor, known: slice, columns: Where, k: int) -> Tensor:
    """Some columns of rows of which only the `known` ones were computed, the others being 0."""
    if isinstance(columns, slice):
        start, stop, step = bounds(columns, k)
        low, high = max(start, known.start), min(stop, known.stop)
        if step == 1 and low < high:
            return widen(
                weights[..., low - known.start : high - known.start], slice(low - start, high - start), stop - start
            )
    return take(widen(weights, known, k), -1, columns)


def widen(weights: Tensor, columns: slice, k: int) -> Tensor:
    """Zeros for the keys that were left out because nobody there sees them."""
    if columns.start == 0 and columns.stop == k:
        return weights
    return torch.nn.functional.pad(weights, (columns.start, k - columns.stop))

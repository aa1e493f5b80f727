"""Weights folded into cells, `size` on a side; the last cell of a line holds what is left."""

from collections.abc import Callable

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from regard.attention.map.blocks import MapBlock, Scratch
from regard.attention.map.source import Source


def fold(x: Tensor, size: int, axis: int, how: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Every `size` numbers along the last axis (−1), or the one before it (−2), as one.

    >>> fold(torch.arange(5), 2, -1, torch.amax)
    tensor([1, 3, 4])
    """
    if size == 1:
        return x
    length = x.shape[axis]
    whole = length // size * size
    parts = []
    if whole:
        parts.append(how(x.narrow(axis, 0, whole).unflatten(axis, (-1, size)), axis))
    if whole < length:
        parts.append(how(x.narrow(axis, whole, length - whole).unsqueeze(axis - 1), axis))
    return parts[0] if len(parts) == 1 else torch.cat(parts, axis) if parts else x


def fold_max(x: Tensor, rows: int, columns: int) -> Tensor:
    """The largest of each cell. Rows first: whole lines are compared at once, and little is left for the columns."""
    return fold(fold(x, rows, -2, torch.amax), columns, -1, torch.amax)


def fold_sum(x: Tensor, rows: int, columns: int) -> Tensor:
    return fold(fold(x, rows, -2, add_up), columns, -1, add_up)


def add_up(x: Tensor, axis: int) -> Tensor:
    return x.sum(axis) if x.is_floating_point() else x.sum(axis, dtype=torch.int32)


def cell_lengths(length: int, size: int) -> Int[Tensor, " cells"]:
    """How many of `length` lie in each cell.

    >>> cell_lengths(5, 2)
    tensor([2, 2, 1], dtype=torch.int32)
    """
    counts = torch.full((-(-length // size),), min(size, length), dtype=torch.int32)
    if length % size:
        counts[-1] = length % size
    return counts


def count_allowed(source: Source, rows: slice | Tensor, columns: slice, size: int) -> Int[Tensor, "r c"]:
    """How many weights of each cell may be looked at. Only where the mask may hide something is it asked.

    Single rows, in rising order, are each a row of cells.
    """
    if isinstance(rows, slice):
        tall, by = cell_lengths(rows.stop - rows.start, size), size
    else:
        tall, by = torch.ones(len(rows), dtype=torch.int32), 1
    counts = tall[:, None] * cell_lengths(columns.stop - columns.start, size)
    for side in fringe(source, rows, columns):
        first, stop = (side.start - columns.start) // size, -(-(side.stop - columns.start) // size)
        where = slice(columns.start + first * size, min(columns.stop, columns.start + stop * size))
        allowed = source.allowed(rows if isinstance(rows, slice) else rows.to(source.device), where)
        if allowed is None:
            continue
        allowed = allowed.expand(-1, where.stop - where.start).cpu()
        if allowed.shape[0] == 1:  # the same for all rows
            counts[:, first:stop] = tall[:, None] * fold_sum(allowed, 1, size).to(torch.int32)
        else:
            counts[:, first:stop] = fold_sum(allowed, by, size)
    return counts


def fringe(source: Source, rows: slice | Tensor, columns: slice) -> list[slice]:
    """The columns of which a mask may hide something from some of these rows."""
    if not isinstance(rows, slice):
        rows = slice(int(rows[0]), int(rows[-1]) + 1)
    return MapBlock((), source, rows, columns, Scratch()).fringe


def allowed_share(open_: Int[Tensor, "*r c"], all_: Int[Tensor, "*_r _c"]) -> UInt8[Tensor, "*r c"]:
    """How much of each cell may be looked at: 0 only for nothing, 255 only for all of it."""
    whole = open_ == all_
    if bool(whole.all()):  # most tiles: nothing is hidden there
        return torch.full(open_.shape, 255, dtype=torch.uint8)
    some = (open_ * 255.0).div_(all_).add_(0.5).floor_().clamp_(1, 254).to(torch.uint8)
    return some.masked_fill_(open_ == 0, 0).masked_fill_(whole, 255)

"""Some entries along some axes, by number, slice or list of numbers."""

import torch
from jaxtyping import Int
from torch import Tensor

Index = int | slice | Tensor
Where = slice | Tensor


def pick(t: Tensor, chosen: tuple[Index, ...], *, offset: int = 0) -> Tensor:
    """`t` at one index per axis, starting at axis `offset`; an axis of size 1 stands for all its indices."""
    axis = offset
    for index in chosen:
        broadcast = t.shape[axis] == 1
        if isinstance(index, int):
            t = t.select(axis, 0 if broadcast else index)
            continue
        if not broadcast:
            if isinstance(index, slice):
                t = t[(slice(None),) * axis + (index,)]
            else:
                t = t.index_select(axis, index.to(t.device))
        axis += 1
    return t


def take(t: Tensor, axis: int, where: Where) -> Tensor:
    """Some entries along one axis."""
    if isinstance(where, slice):
        if where == slice(None):
            return t
        start, stop, step = bounds(where, t.shape[axis])
        if step == 1:
            return t.narrow(axis, start, stop - start)
        where = torch.arange(start, stop, step)
    return t.index_select(axis, where.to(t.device))


def places(where: Where, length: int, device: torch.device | str | None) -> Int[Tensor, " n"]:
    """The positions that `where` names."""
    if isinstance(where, slice):
        return torch.arange(*bounds(where, length), device=device)
    return where.to(device)


def bounds(where: slice, length: int) -> tuple[int, int, int]:
    """Start, stop and step of a slice; the whole of a length that a compiler keeps open stays open."""
    if where == slice(None):
        return 0, length, 1
    start, stop, step = where.indices(length)
    return start, max(start, stop) if step > 0 else min(start, stop), step

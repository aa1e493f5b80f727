"""What stands between the brackets of map[...]."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.axes.select import Index, Where

NAMES = ("query", "key")


class MapIndex(NamedTuple):
    """The index of every leading axis, and of queries and keys where they were touched."""

    lead: tuple[Index, ...]
    rows: Index | None
    columns: Index | None


def parse(item: object, shape: tuple[int, ...]) -> MapIndex:
    """One index per axis: a number, a slice, a list or tensor of numbers or of booleans, or …"""
    items = list(item) if isinstance(item, tuple) else [item]
    dots = [i for i, x in enumerate(items) if x is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index holds '...' once at most")
    touched = len(items) if not dots else len(shape)
    if dots:
        missing = len(shape) - (len(items) - 1)
        ends_in_dots = dots[0] == len(items) - 1
        touched = len(items) - 1 if ends_in_dots else len(shape)
        items[dots[0] : dots[0] + 1] = [slice(None)] * max(0, missing)
    if len(items) > len(shape):
        raise IndexError(f"{len(items)} indices were given, but the map has {len(shape)} axes: {shape}")
    found = [parse_one(x, size, axis, len(shape)) for axis, (x, size) in enumerate(zip(items, shape))]
    lead = len(shape) - 2
    rest = found[lead:] + [None] * (2 - len(found[lead:]))
    if touched <= lead:
        return MapIndex(tuple(found[:lead]), None, None)
    return MapIndex(tuple(found[:lead]), rest[0], rest[1])


def parse_one(x: object, size: int, axis: int, rank: int) -> Index:
    name = NAMES[axis - rank] if axis >= rank - 2 else f"entry along axis {axis}"
    if isinstance(x, slice):
        return x
    if isinstance(x, bool) or x is None:
        raise IndexError(f"{x} is no index of a map; give a number, a slice or a list of numbers")
    if isinstance(x, Tensor | Sequence) or hasattr(x, "__array__"):
        if isinstance(x, Tensor) and x.ndim == 0 and x.dtype != torch.bool:
            return parse_one(int(x), size, axis, rank)
        many = torch.as_tensor(x)
        if many.dtype == torch.bool:
            if many.shape != (size,):
                raise IndexError(f"a boolean index of shape {tuple(many.shape)} does not fit {size} along axis {axis}")
            many = many.nonzero().squeeze(-1)
        if many.ndim != 1 or many.is_floating_point():
            raise IndexError(f"a map is indexed by whole numbers in one line, not by {many.dtype} {tuple(many.shape)}")
        many = many.long()
        bad = (many < -size) | (many >= size)
        if many.numel() and bool(bad.any()):
            raise IndexError(f"there is no {name} {int(many[bad][0])}: the map has {size}")
        return torch.where(many < 0, many + size, many)
    try:
        number = int(x.__index__())  # type: ignore[attr-defined]
    except AttributeError:
        raise IndexError(f"a map is not indexed by {type(x).__name__}; give a number, a slice or a list") from None
    if not -size <= number < size:
        raise IndexError(f"there is no {name} {number}: the map has {size}")
    return number % size


def as_where(index: Index | None) -> tuple[Where, bool]:
    """Rows or columns to compute, and whether that axis is to go again."""
    if index is None:
        return slice(None), False
    if isinstance(index, int):
        return slice(index, index + 1), True
    return index, False

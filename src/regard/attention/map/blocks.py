"""A map in blocks that fit a small, fixed budget, whatever its length."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from regard.attention.map.asked import Asked
from regard.attention.map.given import Implied, Stored

Source = Asked | Stored | Implied

BUDGET = 1 << 19  # cells of one block: 2 MB in float32, which stays in the cache


class Block(NamedTuple):
    """Some rows of one map, or of several: `lead` picks them, `part` is the source for that pick."""

    lead: tuple[int, ...]
    part: Source
    rows: slice
    columns: slice  # none of the rows sees a key outside of it


def blocks(source: Source, budget: int = BUDGET) -> Iterator[Block]:
    """All of the map, block by block: whole rows, few enough to hold at most `budget` cells at once.

    Leading axes are walked one by one only as far as the budget demands.
    """
    *lead, q, k = source.shape
    if not q:
        return
    walked = 0
    while walked < len(lead) and _cells(lead[walked:]) * q * max(k, 1) > budget:
        walked += 1
    height = max(1, budget // max(1, _cells(lead[walked:]) * max(k, 1)))
    for index in product(*(range(size) for size in lead[:walked])):
        part = source.pick(index) if index else source
        for first in range(0, q, height):
            stop = min(q, first + height)
            yield Block(index, part, slice(first, stop), slice(*part.span(first, stop)))


def _cells(sizes: list[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count

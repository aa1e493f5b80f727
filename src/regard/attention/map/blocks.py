"""A map in blocks that fit a small, fixed budget, whatever its length."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import torch
from torch import Tensor

from regard.attention.map.deadline import check_time
from regard.attention.map.source import Source

BUDGET = 1 << 20  # cells of one block: 4 MB in float32


class Scratch:
    """Memory that one walk over a map uses again and again: fresh pages for every block cost more than the sums."""

    def __init__(self) -> None:
        self.kept: dict[str, Tensor] = {}

    def __call__(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """An uninitialised tensor of this shape, which the next call for `name` may overwrite."""
        size = math.prod(shape)
        if name not in self.kept or self.kept[name].numel() < size:
            self.kept[name] = torch.empty(size, dtype=dtype, device=device)
        return self.kept[name][:size].view(shape)


@dataclass(frozen=True, eq=False)
class MapBlock:
    """Some rows of one map, or of several: `lead` picks them, `part` is the source for that pick."""

    lead: tuple[int, ...]
    part: Source
    rows: slice
    columns: slice  # none of the rows sees a key outside of it
    scratch: Scratch

    @property
    def shape(self) -> tuple[int, ...]:
        """The leading axes that are still together, rows, columns."""
        height, width = self.rows.stop - self.rows.start, self.columns.stop - self.columns.start
        return (*self.part.shape[:-2], height, width)

    @cached_property
    def fringe(self) -> list[slice]:
        """The columns that a mask may hide from some of the rows, on both sides of those that all of them see."""
        start, stop = self.columns.start, self.columns.stop
        computed = self.part.computed
        if computed is None:
            return [self.columns]
        if computed.mask is None:
            return []
        low, high = computed.mask.clear(self.rows.start, self.rows.stop, computed.sizes)
        low, high = max(low, start), min(high, stop)
        if low >= high:
            return [self.columns]
        return [side for side in (slice(start, low), slice(high, stop)) if side.start < side.stop]

    def is_sighted(self) -> bool:
        """Whether every row is known to see something."""
        return sum(side.stop - side.start for side in self.fringe) < self.columns.stop - self.columns.start

    def room(self, name: str) -> Tensor:
        """Scratch of the block's shape."""
        return self.scratch(name, self.shape, self.part.dtype, self.part.device)


def walk_blocks(source: Source, budget: int = BUDGET) -> Iterator[MapBlock]:
    """All of the map, block by block: whole rows, few enough to hold at most `budget` cells at once.

    Leading axes are walked one by one only as far as the budget demands.
    """
    *lead, q, k = source.shape
    if not q:
        return
    walked = 0
    while walked < len(lead) and math.prod(lead[walked:]) * q * max(k, 1) > budget:
        walked += 1
    scratch = Scratch()
    height = max(1, budget // max(1, math.prod(lead[walked:]) * max(k, 1)))
    for index in product(*(range(size) for size in lead[:walked])):
        part = source.pick(index) if index else source
        for first in range(0, q, height):
            stop = min(q, first + height)
            check_time()
            yield MapBlock(index, part, slice(first, stop), slice(*part.span(first, stop)), scratch)

"""The cells of an overview: which keys each of them holds, and how rows of weights fold into them."""

from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.map.blocks import MapBlock


class FoldedRows(NamedTuple):
    """Rows folded into cells: which cells, their largest weight and their sum."""

    cells: slice
    highest: Float[Tensor, "*b r cells"]
    sums: Float[Tensor, "*b r cells"]


class PoolGrid:
    """`k` keys in `columns` cells, as even as can be: key j lies in cell j · columns // k."""

    def __init__(self, k: int, columns: int, device: torch.device) -> None:
        self.k, self.columns, self.device = k, columns, device
        self.edges = -(-torch.arange(columns + 1, device=device) * k // columns)  # cell i begins at ⌈i k / columns⌉
        self.width = k // columns if k % columns == 0 else 0  # 0: the cells differ
        width = int((self.edges[1:] - self.edges[:-1]).max())
        index = self.edges[:-1, None] + torch.arange(width, device=device)
        self.keys = index.masked_fill(index >= self.edges[1:, None], k)  # columns × width, filled up with k

    def cell(self, key: int) -> int:
        return key * self.columns // self.k

    def count_inside(self, where: slice) -> Int[Tensor, " columns"]:
        """How many of these keys lie in each cell."""
        edges = self.edges.clamp(where.start, max(where.start, where.stop))
        return edges[1:] - edges[:-1]

    def fold(self, weights: Float[Tensor, "*b r c"], where: slice) -> FoldedRows:
        """Rows of which these columns are known, as cells."""
        if where.start >= where.stop:
            none = weights.new_zeros((*weights.shape[:-1], 0))
            return FoldedRows(slice(0, 0), none, none)
        first, stop = self.cell(where.start), self.cell(where.stop - 1) + 1
        parts = [self.gather_cells(weights, where, first, stop)] if not self.width else self.split_even(weights, where)
        highest = [part.amax(-1) for part in parts]
        sums = [part.sum(-1) for part in parts]
        if len(parts) == 1:
            return FoldedRows(slice(first, stop), highest[0], sums[0])
        return FoldedRows(slice(first, stop), torch.cat(highest, -1), torch.cat(sums, -1))

    def split_even(self, weights: Tensor, where: slice) -> list[Tensor]:
        """Cells of one width are a view of the rows; only what is left at either end stands alone."""
        start, width = where.start, self.width
        low, high = -(-start // width) * width, where.stop // width * width
        if low >= high:  # within one cell, or across one edge
            cuts = [start, low, where.stop] if start < low < where.stop else [start, where.stop]
            return [weights[..., a - start : b - start].unsqueeze(-2) for a, b in pairwise(cuts)]
        body = weights[..., low - start : high - start].unflatten(-1, (-1, width))
        head, tail = weights[..., : low - start].unsqueeze(-2), weights[..., high - start :].unsqueeze(-2)
        return [part for part in (head, body, tail) if part.shape[-1]]

    def gather_cells(self, weights: Tensor, where: slice, first: int, stop: int) -> Tensor:
        keys = self.keys[first:stop] - where.start
        none = where.stop - where.start
        keys = keys.masked_fill((keys < 0) | (keys >= none), none)
        padded = torch.nn.functional.pad(weights, (0, 1))
        return padded[..., keys.flatten()].unflatten(-1, tuple(keys.shape))

    def count_seen(self, block: MapBlock, shape: torch.Size) -> Tensor:
        """How many keys of every cell each row may see, (…, r, columns)."""
        found = self.count_inside(block.columns).expand(*shape[:-1], self.columns)
        for side in block.fringe:
            allowed = block.part.allowed(block.rows, side)
            if allowed is None:
                continue
            hidden = (~allowed).expand(*shape[:-1], side.stop - side.start)
            to = torch.arange(side.start, side.stop, device=self.device) * self.columns // self.k
            found = found.clone().scatter_add_(-1, to.expand(hidden.shape), -hidden.to(found.dtype))
        return found

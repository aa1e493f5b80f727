"""Which cells of a map can be seen at all: a band beside the diagonal, some keys for all, some queries that see all."""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor


class Cover(NamedTuple):
    """Every cell that a mask allows lies in the band, in a column of `keys` or in a row of `queries`.

    The band of a block of queries reaches from `before` keys before its first to `after` keys after its last, ends
    aligned; there is none where one of them is negative. `keys` are places (h|1, blocks|1, g), −1 for none: the same
    for all queries, or for each block of `block` queries. `queries` are places of rows that may see anything.
    """

    before: int
    after: int
    keys: Int[Tensor, "h blocks g"] | None = None
    queries: Int[Tensor, " r"] | None = None
    block: int | None = None  # the size of blocks that the band and the keys are made for; None: any

    def intersect(self, other: "Cover") -> "Cover":
        """What is seen under both lies in both bands, or in what one of them adds."""
        return self.join(other, min(self.before, other.before), min(self.after, other.after))

    def unite(self, other: "Cover") -> "Cover":
        """What is seen under either."""
        return self.join(other, max(self.before, other.before), max(self.after, other.after))

    def join(self, other: "Cover", before: int, after: int) -> "Cover":
        if self.block is not None and other.block is not None and self.block != other.block:
            return EVERYTHING  # blocks of two sizes share no band
        queries = [rows for rows in (self.queries, other.queries) if rows is not None]
        return Cover(
            before,
            after,
            join_places(self.keys, other.keys),
            torch.cat(queries).unique() if queries else None,
            self.block if other.block is None else other.block,
        )


FAR = 1 << 60
EVERYTHING = Cover(FAR, FAR)


def join_places(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The keys of both."""
    if a is None or b is None:
        return b if a is None else a
    heads, blocks = max(a.shape[0], b.shape[0]), max(a.shape[1], b.shape[1])
    return torch.cat([x.expand(heads, blocks, -1) for x in (a, b)], -1)

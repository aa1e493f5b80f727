"""Blocks that see their neighbours, some blocks that see all, and some blocks drawn at random."""

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Core, Mask
from regard.attention.mask.cover import EVERYTHING, Cover
from regard.errors import MaskError


class BigBird(Mask):
    def __init__(self, block: int, window: int, first: int, last: int, random: int, seed: int, heads: int) -> None:
        self.block, self.window, self.first, self.last = block, window, first, last
        self.random, self.seed, self.heads = random, seed, heads
        self.drawn: tuple[int, int, Tensor] | None = None

    def choose_blocks(self, sizes: Sizes) -> Int[Tensor, "h blocks r"]:
        """The random blocks of keys for each block of queries, −1 where there is none left: the same for the same seed.

        Drawn among those that are neither neighbours nor global, without repetition.
        """
        count = -(-sizes.k // self.block)
        if self.drawn is not None and self.drawn[0] == count:
            return self.drawn[2]
        generator = torch.Generator().manual_seed(self.seed)
        places = torch.arange(count)
        free = (places[:, None] - places).abs() > self.window
        free &= (places >= self.first) & (places < count - self.last)
        order = torch.rand(self.heads, count, count, generator=generator).masked_fill(~free, -1.0)
        best, which = order.topk(min(self.random, count), -1)
        found = which.masked_fill(best < 0, -1)
        self.drawn = (count, self.heads, found)
        return found

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        count = -(-sizes.k // self.block)
        i, j = (at.q + sizes.offset).div(self.block, rounding_mode="floor"), at.k // self.block
        seen = (i - j).abs() <= self.window
        for side in (i, j):
            seen = seen | ((side >= 0) & (side < self.first)) | (side >= count - self.last)
        if self.random:
            linked = torch.zeros(self.heads, count, count + 1, dtype=torch.bool)
            chosen = self.choose_blocks(sizes)
            linked.scatter_(-1, chosen.masked_fill(chosen < 0, count), True)
            h = at.h if self.heads > 1 else torch.zeros_like(at.h)
            seen = seen | (linked.to(at.k.device)[h, i.clamp(0, count - 1), j] & (i >= 0))
        return seen

    def check(self, sizes: Sizes) -> None:
        if self.heads not in (1, sizes.heads):
            raise MaskError(
                f"bigbird drew for {self.heads} heads, but there are {sizes.heads}; give heads={sizes.heads}"
            )

    def is_in_step(self, sizes: Sizes) -> bool:
        """Whether blocks of queries are blocks of keys; otherwise each lies across two."""
        return sizes.offset >= 0 and sizes.offset % self.block == 0

    def cover(self, sizes: Sizes) -> Cover:
        block, count, offset = self.block, -(-sizes.k // self.block), sizes.offset
        if not self.is_in_step(sizes):
            return EVERYTHING
        inner = torch.arange(block)
        edge = torch.cat(
            [torch.arange(min(self.first, count)), torch.arange(max(self.first, count - self.last), count)]
        )
        keys = edge.reshape(1, 1, -1, 1) * block + inner  # 1 1 blocks block
        rows = -(-sizes.q // block)
        if self.random:
            chosen = self.choose_blocks(sizes)[:, offset // block :][:, :rows]  # h rows r
            places = chosen[..., None] * block + inner
            places = places.masked_fill(chosen[..., None] < 0, -1)
            keys = torch.cat([keys.expand(self.heads, rows, -1, -1), places], 2)
        keys = keys.flatten(-2)
        queries = (edge[:, None] * block + inner).flatten() - offset
        queries = queries[(queries >= 0) & (queries < sizes.q)]
        reach = self.window * block
        return Cover(reach, reach, keys.masked_fill(keys >= sizes.k, -1), queries, block)

    def core(self, sizes: Sizes) -> Core | None:
        return Core(adds=True) if self.is_in_step(sizes) else None  # all of the band of a block is seen

    def describe(self) -> str:
        return (
            f"blocks of {self.block} see themselves, {self.window} blocks on either side and {self.random} at random; "
            f"the first {self.first} and the last {self.last} blocks see all and are seen by all"
        )

    def __repr__(self) -> str:
        return (
            f"bigbird({self.block}, window={self.window}, first={self.first}, last={self.last}, "
            f"random={self.random}, seed={self.seed})"
        )


def bigbird(
    block: int = 64,
    *,
    window: int = 1,
    first: int = 1,
    last: int = 1,
    random: int = 3,
    heads: int = 1,
    seed: int = 0,
    generator: Generator | None = None,
) -> Mask:
    """Blocks of `block` tokens that see `window` blocks on either side, global blocks, and random ones (Zaheer 2020).

    The `first` and `last` blocks see all and are seen by all; each other block also sees `random` blocks, drawn from
    `seed` (or once from `generator`), for all heads alike or for each of `heads`. Drawing touches no global random
    state. The last block may be cut. `attend` computes it in O(n · block) time and memory.

    >>> print(bigbird(1, window=1, first=1, last=0, random=1, seed=3).text(6))
    ■ ■ ■ ■ ■ ■
    ■ ■ ■ ■ · ·
    ■ ■ ■ ■ · ■
    ■ ■ ■ ■ ■ ·
    ■ · ■ ■ ■ ■
    ■ ■ · · ■ ■
    """
    for name, size, least in (
        ("block", block, 1),
        ("window", window, 0),
        ("first", first, 0),
        ("last", last, 0),
        ("random", random, 0),
        ("heads", heads, 1),
    ):
        if size < least:
            raise ValueError(f"{name} is {size}, but it is at least {least}; give {least} or more")
    if generator is not None:
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    return BigBird(block, window, first, last, random, seed, heads)

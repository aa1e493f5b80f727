"""A sparse map cut into strips of query blocks, each with the keys that its blocks can see."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.mask import Mask, Sizes
from regard.attention.mask.base import Core
from regard.attention.mask.cover import Cover

ROOM = 1 << 20  # numbers that the gathered keys, or the mask, of one strip may have: about what a cache holds
BLOCK = 128  # queries of a block, where the mask does not say


class Pattern(NamedTuple):
    """A mask, and which of its cells are computed."""

    mask: Mask
    sizes: Sizes
    cover: Cover
    block: int
    core: Core | None

    @property
    def width(self) -> int:
        """How many keys the band of a whole block holds: none where `before` lies behind its last query."""
        return max(0, self.cover.before + self.block + self.cover.after)


class Strip(NamedTuple):
    """`blocks` of `height` queries from `first` on. Block i looks at keys from `start` + i · height on."""

    first: int
    blocks: int
    height: int
    start: int  # may not be negative: blocks at the edge stand alone, their band cut
    width: int


def strips(pattern: Pattern, room: int) -> Iterator[Strip]:
    """All queries: blocks whose band lies within the keys together, `room` numbers of a key at most; others alone."""
    q, k, offset = pattern.sizes.q, pattern.sizes.k, pattern.sizes.offset
    block, (before, after) = pattern.block, pattern.cover[:2]
    extra = 0 if pattern.cover.keys is None else pattern.cover.keys.shape[-1]
    together = max(1, room // max(1, pattern.width + extra))
    first = 0
    if not pattern.width:
        yield Strip(0, 1, q, 0, 0)
        return
    while first < q:
        start = first + offset - before
        inside = min((k - after - offset - first) // block, (q - first) // block) if start >= 0 else 0
        if inside >= 1:
            count = min(inside, together)
            yield Strip(first, count, block, start, pattern.width)
            first += count * block
            continue
        height = min(block, q - first)
        low, high = max(0, min(k, start)), max(0, min(k, first + height + offset + after))
        yield Strip(first, 1, height, low, max(0, high - low))
        first += height


def keys_of(x: Float[Tensor, "n k d"], strip: Strip) -> Float[Tensor, "n s w d"]:
    """The bands of a strip: a view, in which neighbours overlap."""
    stop = strip.start + (strip.blocks - 1) * strip.height + strip.width
    return x[:, strip.start : stop].unfold(1, strip.width, strip.height).mT if strip.width else x[:, None, :0]


def columns_of(strip: Strip) -> Int[Tensor, "s w"]:
    """Where the keys of each band stand."""
    return strip.start + torch.arange(strip.blocks)[:, None] * strip.height + torch.arange(strip.width)


def add_keys(total: Float[Tensor, "n k d"], part: Float[Tensor, "n s w d"], strip: Strip) -> None:
    """The other way: what each band has for its keys is added up."""
    height = strip.height
    for left in range(0, strip.width, height):
        some = min(height, strip.width - left)
        at = strip.start + left
        if some == height:
            total[:, at : at + strip.blocks * height].unflatten(1, (strip.blocks, height)).add_(
                part[:, :, left : left + height]
            )
        else:  # the last piece of a band is narrower than a block
            for i in range(strip.blocks):
                total[:, at + i * height : at + i * height + some] += part[:, i, left : left + some]


def extra_of(pattern: Pattern, strip: Strip) -> Int[Tensor, "h s g"] | None:
    """The keys that the blocks of a strip see beside their bands, −1 for none."""
    keys = pattern.cover.keys
    if keys is None:
        return None
    if keys.shape[1] == 1:
        return keys.expand(-1, strip.blocks, -1)
    first = strip.first // pattern.block
    return keys[:, first : first + strip.blocks]

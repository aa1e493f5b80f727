"""What is added to the scores of a strip: 0 where a query may look, −∞ where not."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.mask import Mask
from regard.attention.mask.base import Cells
from regard.attention.sparse.strips import Pattern, Strip, extra_of


class Places(NamedTuple):
    """Indices of a strip's cells: batch, head, query and key, (b, 1, 1, 1, 1), (h, 1, 1, 1), (s, r, 1), (s, 1, w)."""

    b: Int[Tensor, "b 1 1 1 1"]
    h: Int[Tensor, "h 1 1 1"]
    rows: Int[Tensor, "s r 1"]
    columns: Int[Tensor, "s 1 w"]


class Masked:
    """Makes them, (b|1, h|1, s|1, r, c), extra keys first. Where blocks are alike, one stands for all."""

    def __init__(self, pattern: Pattern, lead: tuple[int, int], dtype: torch.dtype) -> None:
        self.pattern, self.lead, self.dtype = pattern, lead, dtype
        self.known: dict[tuple[int, ...], Tensor] = {}
        keys = pattern.cover.keys
        self.extra: Tensor | None = None  # h blocks k + 1: whether a key is an extra one; the last column takes the −1s
        if keys is not None:
            marks = torch.zeros(*keys.shape[:2], pattern.sizes.k + 1, dtype=torch.bool)
            self.extra = marks.scatter_(-1, keys.masked_fill(keys < 0, pattern.sizes.k), True)

    def __call__(self, strip: Strip) -> Float[Tensor, "b h s r c"]:
        at = self.places(strip)
        core = self.pattern.core
        again = self.again(strip, at)  # keys of the band that are gathered as extra ones
        extra = extra_of(self.pattern, strip)
        if core is None:
            band = self.asked((self.pattern.mask,), at, at.columns)
            band = band if again is None else band & ~again
            return self.beside(self.front(extra, at), self.added(band))
        seen = None if again is None or not bool(again.any()) else ~again
        for mask in core.by_key:
            more = mask.cell(Cells(at.b, at.h[:1], at.rows[:, :1], at.columns), self.pattern.sizes)
            seen = more if seen is None else seen & more
        free = extra is None or (core.over == () and bool((extra >= 0).all()))
        if seen is None and free:
            return self.shared(strip, at, 0 if extra is None else extra.shape[-1])
        band = self.shared(strip, at, 0)
        return self.beside(self.front(extra, at), band if seen is None else band + self.added(seen))

    def places(self, strip: Strip) -> Places:
        blocks = torch.arange(strip.blocks)[:, None, None] * strip.height
        return Places(
            torch.arange(self.lead[0]).reshape(-1, 1, 1, 1, 1),
            torch.arange(self.lead[1]).reshape(-1, 1, 1, 1),
            strip.first + blocks + torch.arange(strip.height)[:, None],
            strip.start + blocks + torch.arange(strip.width),
        )

    def asked(self, masks: tuple[Mask, ...], at: Places, columns: Tensor) -> Bool[Tensor, "b h s r c"]:
        """What these masks say of all rows of a strip and some keys."""
        shape = torch.broadcast_shapes(at.rows.shape, columns.shape)
        seen = torch.ones(shape, dtype=torch.bool)
        for mask in masks:
            seen = seen & mask.cell(Cells(at.b, at.h, at.rows, columns), self.pattern.sizes)
        while seen.dim() < 5:
            seen = seen.unsqueeze(0)
        return seen

    def shared(self, strip: Strip, at: Places, extra: int) -> Tensor:
        """What depends on key − query alone, after `extra` columns that all may see: one block stands for all."""
        core = self.pattern.core
        assert core is not None
        key = (strip.start - strip.first, strip.height, strip.width, extra)
        if key not in self.known:
            zero = torch.zeros((), dtype=torch.long)
            one = at._replace(b=zero, h=zero, rows=at.rows[:1])
            band = self.added(self.asked(core.even, one, at.columns[:1]))
            self.known[key] = self.beside(band.new_zeros(*band.shape[:-1], extra), band)
        return self.known[key]

    def again(self, strip: Strip, at: Places) -> Bool[Tensor, "h s 1 w"] | None:
        """Which keys of each band are extra ones, too: they are counted once."""
        if self.extra is None:
            return None
        first = 0 if self.extra.shape[1] == 1 else strip.first // self.pattern.block
        marks = self.extra[:, first : first + strip.blocks].expand(-1, strip.blocks, -1)
        columns = at.columns[:, 0].expand(marks.shape[0], -1, -1)
        return marks.gather(-1, columns)[:, :, None]

    def front(self, extra: Int[Tensor, "h s g"] | None, at: Places) -> Tensor | None:
        """The columns of extra keys."""
        if extra is None:
            return None
        core, places = self.pattern.core, extra[:, :, None]  # h s 1 g
        over = (self.pattern.mask,) if core is None or core.over is None else core.over
        heads = at.h if extra.shape[0] == 1 else at.h[: extra.shape[0]]
        seen = self.asked(over, at._replace(h=heads), places.clamp_min(0)) & (places >= 0)
        if core is None or core.over is None:  # two masks may have added the same key
            seen = seen & first_of_each(places)
        return self.added(seen)

    def beside(self, front: Tensor | None, band: Tensor) -> Tensor:
        if front is None or not front.shape[-1]:
            return band
        shape = torch.broadcast_shapes(front.shape[:-1], band.shape[:-1])
        return torch.cat([front.expand(*shape, -1), band.expand(*shape, -1)], -1)

    def added(self, seen: Bool[Tensor, "..."]) -> Tensor:
        return torch.zeros(seen.shape, dtype=self.dtype).masked_fill_(~seen, -torch.inf)

    def of_queries(self) -> Tensor | None:
        """The same for the queries that see all, (b|1, h|1, r, k); None where nothing holds them back."""
        rows, sizes, core = self.pattern.cover.queries, self.pattern.sizes, self.pattern.core
        assert rows is not None
        over = (self.pattern.mask,) if core is None or core.over is None else core.over
        if not over:
            return None
        b, h = torch.arange(self.lead[0]).reshape(-1, 1, 1, 1), torch.arange(self.lead[1]).reshape(-1, 1, 1)
        at = Cells(b, h, rows[:, None], torch.arange(sizes.k))
        seen = torch.ones(1, 1, len(rows), sizes.k, dtype=torch.bool)
        for mask in over:
            seen = seen & mask.cell(at, sizes)
        return self.added(seen)


def first_of_each(places: Int[Tensor, "h s 1 g"]) -> Bool[Tensor, "h s 1 g"]:
    """True where a place stands for the first time."""
    order = places.sort(dim=-1, stable=True)
    fresh = torch.ones_like(places, dtype=torch.bool)
    fresh[..., 1:] = order.values[..., 1:] != order.values[..., :-1]
    return torch.empty_like(fresh).scatter_(-1, order.indices, fresh)

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


class MaskCells:
    """Makes them, (b|1, h|1, s|1, r|1, c), extra keys first. Where blocks, or rows, are alike, one stands for all."""

    def __init__(self, pattern: Pattern, lead: tuple[int, int], dtype: torch.dtype) -> None:
        self.pattern, self.lead, self.dtype = pattern, lead, dtype
        self.known: dict[tuple[int, ...], Tensor] = {}
        self.rows: Tensor | None = None  # whether a query is one that sees all
        if pattern.cover.queries is not None and len(pattern.cover.queries):
            self.rows = torch.zeros(pattern.sizes.q, dtype=torch.bool).index_fill_(0, pattern.cover.queries, True)

    def __call__(self, strip: Strip) -> Float[Tensor, "b h s r c"]:
        at = self.locate(strip)
        core = self.pattern.core
        extra = extra_of(self.pattern, strip)
        again, front = self.find_repeated(extra, at), self.find_front(extra, at)
        if core is None:
            band = self.cells_of((self.pattern.mask,), at, at.columns)
            return self.join_front(front, self.as_added(band if again is None else band & ~again))
        seen = None if again is None else ~again
        for mask in core.by_key:
            more = mask.cell(Cells(at.b, at.h[:1], at.rows[:, :1], at.columns), self.pattern.sizes)
            seen = more if seen is None else seen & more
        if seen is not None and bool(seen.all()):
            seen = None
        if seen is None and (front is None or bool(front.all())):
            return self.share_band(strip, at, 0 if front is None else front.shape[-1])
        band = self.share_band(strip, at, 0)
        return self.join_front(front, band if seen is None else band + self.as_added(seen))

    def locate(self, strip: Strip) -> Places:
        blocks = torch.arange(strip.blocks)[:, None, None] * strip.height
        return Places(
            torch.arange(self.lead[0]).reshape(-1, 1, 1, 1, 1),
            torch.arange(self.lead[1]).reshape(-1, 1, 1, 1),
            strip.first + blocks + torch.arange(strip.height)[:, None],
            strip.start + blocks + torch.arange(strip.width),
        )

    def cells_of(self, masks: tuple[Mask, ...], at: Places, columns: Tensor) -> Bool[Tensor, "b h s r c"]:
        """What these masks say of all rows of a strip and some keys."""
        shape = torch.broadcast_shapes(at.rows.shape, columns.shape)
        seen = torch.ones(shape, dtype=torch.bool)
        for mask in masks:
            seen = seen & mask.cell(Cells(at.b, at.h, at.rows, columns), self.pattern.sizes)
        while seen.dim() < 5:
            seen = seen.unsqueeze(0)
        return seen

    def share_band(self, strip: Strip, at: Places, extra: int) -> Tensor:
        """What depends on key − query alone, after `extra` columns that all may see: one block stands for all."""
        core = self.pattern.core
        assert core is not None
        key = (strip.start - strip.first, strip.height, strip.width, extra)
        if key not in self.known:
            zero = torch.zeros((), dtype=torch.long)
            one = at._replace(b=zero, h=zero, rows=at.rows[:1] if core.even else at.rows[:1, :1])
            band = self.as_added(self.cells_of(core.even, one, at.columns[:1]))
            self.known[key] = self.join_front(torch.ones(*band.shape[:-1], extra, dtype=torch.bool), band)
        return self.known[key]

    def find_repeated(self, extra: Int[Tensor, "h s g"] | None, at: Places) -> Bool[Tensor, "h s 1 w"] | None:
        """Which keys of each band are extra ones, too: they are counted once."""
        if extra is None or not at.columns.shape[-1]:
            return None
        width = at.columns.shape[-1]
        ahead = extra - at.columns[:, :, 0]  # h s g, counted from the first key of the band
        inside = (ahead >= 0) & (ahead < width) & (extra >= 0)
        if not bool(inside.any()):
            return None
        marks = torch.zeros(*extra.shape[:2], width + 1, dtype=torch.bool)  # the last column takes the others
        return marks.scatter_(-1, ahead.masked_fill(~inside, width), True)[:, :, None, :width]

    def find_front(self, extra: Int[Tensor, "h s g"] | None, at: Places) -> Bool[Tensor, "b h s r g"] | None:
        """Who sees the extra keys. For queries that see all this is not read: they go another way."""
        if extra is None:
            return None
        core, places = self.pattern.core, extra[:, :, None]  # h s 1 g
        over = (self.pattern.mask,) if core is None or core.over is None else core.over
        heads = at.h if extra.shape[0] == 1 else at.h[: extra.shape[0]]
        if not over:
            return (places >= 0)[None]
        seen = self.cells_of(over, at._replace(h=heads), places.clamp_min(0)) & (places >= 0)
        if core is None or core.over is None:  # two masks may have added the same key
            seen = seen & first_of_each(places)
        return seen if self.rows is None else seen | self.rows[at.rows]

    def join_front(self, front: Bool[Tensor, "b h s r g"] | None, band: Tensor) -> Tensor:
        if front is None or not front.shape[-1]:
            return band
        shape = torch.broadcast_shapes(front.shape[:-1], band.shape[:-1])
        return torch.cat([self.as_added(front).expand(*shape, -1), band.expand(*shape, -1)], -1)

    def as_added(self, seen: Bool[Tensor, "..."]) -> Tensor:
        return torch.zeros(seen.shape, dtype=self.dtype).masked_fill_(~seen, -torch.inf)

    def add_to_queries(self) -> Tensor | None:
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
        return self.as_added(seen)

    def is_blind(self, added: Tensor | None) -> bool:
        """Whether none of the queries that may see all sees anything."""
        return added is not None and not bool((added > -torch.inf).any())


def first_of_each(places: Int[Tensor, "h s 1 g"]) -> Bool[Tensor, "h s 1 g"]:
    """True where a place stands for the first time."""
    order = places.sort(dim=-1, stable=True)
    fresh = torch.ones_like(places, dtype=torch.bool)
    fresh[..., 1:] = order.values[..., 1:] != order.values[..., :-1]
    return torch.empty_like(fresh).scatter_(-1, order.indices, fresh)

"""One interval of keys per query: the small form of causal, padding, window, prefix and packed documents."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Mask
from regard.eager import readable
from regard.errors import MaskError


class SpanMask(Mask):
    """Each query sees the keys start … stop − 1 and no other; a query whose stop is its start sees nothing.

    `start` and `stop` are (b, h, q), of size 1 where they are the same for all; int32. They belong to the mask.

    >>> print(SpanMask(torch.tensor([[[0, 0, 1]]]), torch.tensor([[[1, 2, 3]]])).text(3))
    ■ · ·
    ■ ■ ·
    · ■ ■
    """

    def __init__(self, start: Int[Tensor, "_b _h _q"], stop: Int[Tensor, "_b _h _q"]) -> None:
        if start.shape != stop.shape:
            raise MaskError(
                f"spans start in shape {tuple(start.shape)} and stop in {tuple(stop.shape)}; give both as (b, h, q)"
            )
        self.start, self.stop = start.to(torch.int32), stop.to(torch.int32)
        self.edges: tuple[Tensor, Tensor] | None = None

    def check(self, sizes: Sizes) -> None:
        fits_axes("spans", tuple(self.start.shape), sizes)
        most = int(self.stop.max()) if readable(self.stop) and self.stop.numel() else 0
        if most > sizes.k:
            raise MaskError(f"a span ends at key {most}, but there are only {sizes.k} keys; cut the spans to them")

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        device = at.k.device
        where = tuple(i if size > 1 else torch.zeros_like(i) for i, size in zip(at, self.start.shape))
        k = at.k.to(torch.int32)  # few numbers, and the comparison below has many
        return (k >= self.start.to(device)[where]) & (k < self.stop.to(device)[where])

    def span(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        """The smallest start and the largest stop of these queries, over all batch entries and heads."""
        if not readable(self.start):
            return 0, sizes.k
        if self.edges is None:
            empty = self.stop <= self.start
            low = self.start.masked_fill(empty, torch.iinfo(torch.int32).max).flatten(0, 1)
            high = self.stop.masked_fill(empty, 0).flatten(0, 1)
            self.edges = (low.amin(0), high.amax(0)) if low.numel() else (low[:0].flatten(), high[:0].flatten())
        rows = slice(0, 1) if self.edges[0].shape[0] == 1 else slice(first, stop)
        low, high = (edge[rows] for edge in self.edges)
        if not high.numel() or not (most := int(high.max())):
            return 0, 0
        return min(int(low.min()), sizes.k), min(most, sizes.k)

    def clear(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        """From the largest start to the smallest stop of these queries."""
        rows = slice(0, 1) if self.start.shape[-1] == 1 else slice(first, stop)
        start, end = self.start[..., rows], self.stop[..., rows]
        if not readable(start) or not start.numel():
            return 0, 0
        low, high = int(start.max()), int(end.min())
        return (low, high) if low < high else (0, 0)

    def describe(self) -> str:
        return "each query sees one run of keys, from where its own begins to where it ends"

    def __repr__(self) -> str:
        return f"spans(of shape {tuple(self.start.shape)})"


def fits_axes(what: str, shape: tuple[int, ...], sizes: Sizes) -> None:
    """Raise unless (b, h, q) of a small mask are each 1 or what the map has; several batch axes count as one."""
    batch = 1
    for size in sizes.batch:
        batch *= size
    want = (batch, sizes.heads, sizes.q)
    if any(a not in (1, b) for a, b in zip(shape, want)):
        raise MaskError(f"{what} are for (b, h, q) of {shape}, but the map has {want}; each must be equal or 1")

"""Two kinds of rows in one map: tokens that look near, and global tokens that look far."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.axes.select import Index, Where
from regard.attention.axes.sizes import Sizes
from regard.attention.map.source import Source, WeightsSource
from regard.attention.mask.base import Cells, Core, Mask
from regard.attention.mask.cover import FAR, Cover
from regard.attention.mask.longformer import LongformerMask


class NearRowsMask(Mask):
    """The rows of tokens that are not global: a window, and the global tokens."""

    def __init__(self, pattern: LongformerMask) -> None:
        self.pattern, self.fixed = pattern, pattern.fixed

    def check(self, sizes: Sizes) -> None:
        self.pattern.check(sizes)

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        return self.pattern.cell(at, sizes) & ~is_global(self.pattern, at, sizes)

    def cover(self, sizes: Sizes) -> Cover:
        return self.pattern.cover(sizes)

    def core(self, sizes: Sizes) -> Core | None:
        return Core(even=(self.pattern.near,), over=None, adds=True)

    def describe(self) -> str:
        return f"{self.pattern.near.describe()}, and the global tokens; global tokens look nowhere"

    def __repr__(self) -> str:
        return f"near({self.pattern!r})"


class GlobalRowsMask(Mask):
    """The rows of global tokens: everything."""

    def __init__(self, pattern: LongformerMask) -> None:
        self.pattern, self.fixed = pattern, pattern.fixed

    def check(self, sizes: Sizes) -> None:
        self.pattern.check(sizes)

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        looks = is_global(self.pattern, at, sizes)
        return looks.expand(torch.broadcast_shapes(looks.shape, at.k.shape))

    def cover(self, sizes: Sizes) -> Cover:
        return Cover(-FAR, -FAR, queries=self.pattern.cover(sizes).queries)  # there is no band

    def core(self, sizes: Sizes) -> Core | None:
        return Core(over=None, adds=True)

    def describe(self) -> str:
        return "global tokens see everything; the others look nowhere"

    def __repr__(self) -> str:
        return f"far({self.pattern!r})"


def is_global(pattern: LongformerMask, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
    """Whether the query of each cell is a global token."""
    marks = pattern.mark_globals(sizes, at.k.device)
    b = at.b if marks.shape[0] > 1 else torch.zeros_like(at.b)
    stands = at.q + sizes.offset
    return marks[b, stands.clamp(0, max(0, sizes.k - 1))] & (stands >= 0)


class JoinedSource(WeightsSource):
    """Two maps of the same sizes as one, where every row looks nowhere in one of them: their sum."""

    kind = "computed"

    def __init__(self, near: Source, far: Source) -> None:
        self.near, self.far, self.sizes = near, far, near.sizes
        self.device, self.dtype, self.precision = near.device, near.dtype, near.precision
        self.lead = near.leading_index()

    def pick(self, chosen: tuple[Index, ...]) -> "JoinedSource":
        return JoinedSource(self.near.pick(chosen), self.far.pick(chosen))

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        return self.near.weights(rows, columns) + self.far.weights(rows, columns)

    def scores(self, rows: Where = slice(None), columns: Where = slice(None)) -> Tensor:
        seen = self.far.allowed(rows)
        far = self.far.scores(rows, columns)
        return far if seen is None else torch.where(seen.any(-1, keepdim=True), far, self.near.scores(rows, columns))

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."] | None:
        near, far = self.near.allowed(rows, columns), self.far.allowed(rows, columns)
        return None if near is None or far is None else near | far

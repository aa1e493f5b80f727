"""The one mask language: True where a query may look."""

from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.cover import EVERYTHING, Cover
from regard.eager import plain
from regard.errors import MaskError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from torch.nn.attention.flex_attention import BlockMask


class Core(NamedTuple):
    """A mask taken apart: what holds within its band, and what holds for all that its cover adds to the band.

    Each is the conjunction of some masks. `over` is None where only the mask itself can say.
    """

    even: "tuple[Mask, ...]" = ()  # in the band: these depend on key − query alone
    by_key: "tuple[Mask, ...]" = ()  # in the band: these depend on batch and key alone
    over: "tuple[Mask, ...] | None" = ()  # for extra keys, and for queries that see all
    adds: bool = False  # whether the cover adds anything to the band


REMEMBERED = 1 << 16  # cells; so that a mask used again and again on short sequences costs nothing


class Cells(NamedTuple):
    """Some cells of the map, as indices that broadcast against each other: batch, head, query, key."""

    b: Int[Tensor, "..."]
    h: Int[Tensor, "..."]
    q: Int[Tensor, "..."]
    k: Int[Tensor, "..."]


class Mask:
    """Who may look at whom. Lazy: a mask answers for the cells it is asked about and stores no matrix.

    A mask is a function of (batch, head, query, key); everything else follows from it. Masks combine with
    `&`, `|` and `~`, describe themselves, draw themselves, and turn into what other libraries want.

    >>> import regard
    >>> (regard.causal() & regard.window(1, 0)).dense(3, 3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    """

    fixed: bool = True  # whether the mask stays what it is: it holds no tensor and no function of somebody else's
    memo: tuple[Sizes, Tensor] | None = None

    def check(self, sizes: Sizes) -> None:
        """Raise `MaskError` where the mask does not fit `sizes`; silent otherwise."""

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        """Whether each of these cells may be looked at."""
        raise NotImplementedError

    def span(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        """A range of keys beyond which queries first…stop−1 see nothing (may be too wide, never too narrow)."""
        return 0, sizes.k

    def clear(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        """A range of keys all of which queries first…stop−1 see, every one of them (may be too narrow, or empty)."""
        return 0, 0

    def cover(self, sizes: Sizes) -> Cover:
        """Which cells can be seen at all (may be too many, never too few)."""
        return EVERYTHING

    def core(self, sizes: Sizes) -> "Core | None":
        """The same mask away from what its cover adds to the band, where that is simple; None where it is not."""
        return None

    def whole(self, sizes: Sizes, device: torch.device) -> Bool[Tensor, "..."]:
        """All of it in its small form: axes of size 1 where they say nothing. Small ones are remembered."""
        from regard.attention.mask.lead import tile, whole

        if torch.compiler.is_compiling():  # sizes may be open there, and comparing would close them
            return tile(self, sizes, whole(sizes, device))
        if self.memo is not None and self.memo[0] == sizes and self.memo[1].device == device:
            return self.memo[1]
        found = tile(self, sizes, whole(sizes, device))
        if self.fixed and found.numel() <= REMEMBERED and plain(found) and not found.is_inference():
            self.memo = (sizes, found)  # an inference tensor could not be kept for a backward pass later
        return found

    def describe(self) -> str:
        """The mask in words."""
        raise NotImplementedError

    def __and__(self, other: object) -> "Mask":
        return And(self, as_operand(other))

    def __or__(self, other: object) -> "Mask":
        return Or(self, as_operand(other))

    def __invert__(self) -> "Mask":
        return Not(self)

    # What the mask turns into. The arithmetic stands in convert.py.

    def dense(
        self,
        q: int,
        k: int | None = None,
        *,
        batch: int | None = None,
        heads: int | None = None,
        device: torch.device | str | None = None,
    ) -> Bool[Tensor, "*_lead q k"]:
        """The whole mask, True where a query may look: (q, k), led by batch and heads where given."""
        from regard.attention.mask.convert import dense, sizes_of

        seen = dense(self, sizes_of(q, k, batch, heads), device)
        return seen[:, 0] if batch is not None and heads is None else seen

    def to_sdpa(
        self,
        q: int,
        k: int | None = None,
        *,
        batch: int | None = None,
        heads: int | None = None,
        device: torch.device | str | None = None,
    ) -> dict[str, Tensor | bool | None]:
        """Arguments for `F.scaled_dot_product_attention`: the causal flag where it suffices, else a tensor."""
        from regard.attention.mask.convert import sizes_of, to_sdpa

        return to_sdpa(self, sizes_of(q, k, batch, heads), device)

    def to_flex(
        self,
        q: int,
        k: int | None = None,
        *,
        batch: int | None = None,
        heads: int | None = None,
        device: torch.device | str = "cpu",
        block: int = 128,
    ) -> "BlockMask":
        """A block mask for `flex_attention`."""
        from regard.attention.mask.convert import sizes_of, to_flex

        return to_flex(self, sizes_of(q, k, batch, heads), device, block)

    def to_additive(
        self,
        q: int,
        k: int | None = None,
        *,
        batch: int = 1,
        heads: int | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> Tensor:
        """The 4-D float mask of the `transformers` library: 0 where a query may look, finfo.min elsewhere."""
        from regard.attention.mask.convert import sizes_of, to_additive

        return to_additive(self, sizes_of(q, k, batch, heads or 1), dtype, device)

    def text(self, q: int, k: int | None = None, *, batch: int | None = None, heads: int | None = None) -> str:
        """A picture in characters: ■ where a query may look, · where not; one block per batch and head."""
        from regard.attention.mask.convert import sizes_of, text

        return text(self, sizes_of(q, k, batch, heads))

    def draw(
        self,
        q: int,
        k: int | None = None,
        *,
        batch: int | None = None,
        heads: int | None = None,
        to: "str | Path | None" = None,
    ) -> "Figure":
        """A picture of the mask: what may be looked at is filled, what may not is hatched."""
        from regard.attention.mask.convert import draw, sizes_of

        return draw(self, sizes_of(q, k, batch, heads), to)


def as_operand(other: object) -> Mask:
    """What stands beside `&` or `|`: a mask; a bare tensor has no axes there, so it is sent to `allowed`."""
    if isinstance(other, Mask):
        return other
    raise MaskError(
        f"a mask combines with masks, not with {type(other).__name__}; "
        "wrap a boolean tensor as regard.allowed(tensor), or regard.blocked(tensor) where True means hidden"
    )


class Both(Mask):
    """Two masks and what is common to their combinations."""

    sign: str

    def __init__(self, left: Mask, right: Mask) -> None:
        self.left, self.right = left, right
        self.fixed = left.fixed and right.fixed

    def check(self, sizes: Sizes) -> None:
        self.left.check(sizes)
        self.right.check(sizes)

    def __repr__(self) -> str:
        sides = (f"({side!r})" if isinstance(side, Both) else repr(side) for side in (self.left, self.right))
        return f" {self.sign} ".join(sides)


class And(Both):
    """Where both masks allow it."""

    sign = "&"

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        return self.left.cell(at, sizes) & self.right.cell(at, sizes)

    def span(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        a, b = self.left.span(first, stop, sizes), self.right.span(first, stop, sizes)
        low, high = max(a[0], b[0]), min(a[1], b[1])
        return (low, high) if low < high else (0, 0)

    def clear(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        a, b = self.left.clear(first, stop, sizes), self.right.clear(first, stop, sizes)
        low, high = max(a[0], b[0]), min(a[1], b[1])
        return (low, high) if low < high else (0, 0)

    def cover(self, sizes: Sizes) -> Cover:
        return self.left.cover(sizes).intersect(self.right.cover(sizes))

    def core(self, sizes: Sizes) -> Core | None:
        left, right = self.left.core(sizes), self.right.core(sizes)
        if left is None or right is None:
            return None
        over = None
        if left.over is not None and right.over is not None and not (left.adds and right.adds):
            over = left.over + right.over
        return Core(left.even + right.even, left.by_key + right.by_key, over, left.adds or right.adds)

    def describe(self) -> str:
        return f"{self.left.describe()}, and {self.right.describe()}"


class Or(Both):
    """Where either mask allows it."""

    sign = "|"

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        return self.left.cell(at, sizes) | self.right.cell(at, sizes)

    def span(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        a, b = self.left.span(first, stop, sizes), self.right.span(first, stop, sizes)
        return min(a[0], b[0]), max(a[1], b[1])

    def clear(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        a, b = self.left.clear(first, stop, sizes), self.right.clear(first, stop, sizes)
        return max(a, b, key=lambda range_: range_[1] - range_[0])

    def cover(self, sizes: Sizes) -> Cover:
        return self.left.cover(sizes).unite(self.right.cover(sizes))

    def describe(self) -> str:
        return f"either {self.left.describe()}, or {self.right.describe()}"


class Not(Mask):
    """Where the mask does not allow it."""

    def __init__(self, inner: Mask) -> None:
        self.inner = inner
        self.fixed = inner.fixed

    def check(self, sizes: Sizes) -> None:
        self.inner.check(sizes)

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        return ~self.inner.cell(at, sizes)

    def describe(self) -> str:
        return f"everything but this: {self.inner.describe()}"

    def __repr__(self) -> str:
        return f"~({self.inner!r})" if isinstance(self.inner, Both) else f"~{self.inner!r}"

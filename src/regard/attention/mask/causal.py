"""No query looks at a later key."""

from jaxtyping import Bool
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Core, Mask
from regard.attention.mask.cover import FAR, Cover


class Causal(Mask):
    def __init__(self, align: str) -> None:
        self.align = align

    def offset(self, sizes: Sizes) -> int:
        return sizes.offset if self.align == "last" else 0

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        return at.k <= at.q + self.offset(sizes)

    def span(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        return 0, min(sizes.k, max(0, stop + self.offset(sizes)))

    def clear(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        return 0, min(sizes.k, max(0, first + 1 + self.offset(sizes)))

    def cover(self, sizes: Sizes) -> Cover:
        return Cover(FAR, max(0, self.offset(sizes) - sizes.offset))

    def core(self, sizes: Sizes) -> Core | None:
        return Core(even=(self,), over=(self,))

    def describe(self) -> str:
        where = "" if self.align == "last" else " (the first query stands at the first key)"
        return f"each query sees itself and the keys before it{where}"

    def __repr__(self) -> str:
        return "causal()" if self.align == "last" else "causal(align='first')"


def causal(*, align: str = "last") -> Mask:
    """Each query sees itself and the keys before it.

    Where there are more keys than queries (a cache) the ends are aligned: the last query is the last key and
    sees all. With fewer keys than queries the leading queries therefore see nothing.
    `align="first"` is the other reading: the first query is the first key.

    >>> print(causal().text(2, 4))
    ■ ■ ■ ·
    ■ ■ ■ ■
    >>> print(causal(align="first").text(2, 4))
    ■ · · ·
    ■ ■ · ·
    """
    if align not in ("last", "first"):
        raise ValueError(f"align is 'last' or 'first', not {align!r}")
    return Causal(align)

"""A query looks only so far."""

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Core, Mask
from regard.attention.mask.cover import Cover


class Window(Mask):
    def __init__(self, before: int, after: int, dilation: int, keep_first: int) -> None:
        self.before, self.after, self.dilation, self.keep_first = before, after, dilation, keep_first

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        ahead = at.k - (at.q + sizes.offset)  # 0 at the position itself
        near = (ahead >= -self.before) & (ahead <= self.after)
        if self.dilation > 1:
            near = near & (ahead % self.dilation == 0)
        if self.keep_first:
            near = near | (at.k < self.keep_first)
        return near

    def span(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        low = max(0, min(sizes.k, first + sizes.offset - self.before))
        high = max(0, min(sizes.k, stop + sizes.offset + self.after))
        if self.keep_first:
            low, high = 0, max(high, min(self.keep_first, sizes.k))
        return low, high

    def clear(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        low = max(0, stop - 1 + sizes.offset - self.before)
        high = min(sizes.k, first + 1 + sizes.offset + self.after)
        return (low, high) if low < high and self.dilation == 1 else (0, 0)

    def cover(self, sizes: Sizes) -> Cover:
        first = min(self.keep_first, sizes.k)
        return Cover(self.before, self.after, torch.arange(first).reshape(1, 1, first) if first else None)

    def core(self, sizes: Sizes) -> Core | None:
        if not self.keep_first:
            return Core(even=(self,), over=(self,))
        return Core(even=(Window(self.before, self.after, self.dilation, 0),), adds=True)

    def describe(self) -> str:
        words = f"each query sees itself, {self.before} keys before it and {self.after} after it"
        if self.dilation > 1:
            words += f", of these every {self.dilation}th counted from itself"
        if self.keep_first:
            words += f", and always the first {self.keep_first} keys"
        return words

    def __repr__(self) -> str:
        more = f", dilation={self.dilation}" if self.dilation > 1 else ""
        more += f", keep_first={self.keep_first}" if self.keep_first else ""
        return f"window({self.before}, {self.after}{more})"


def window(before: int, after: int = 0, *, dilation: int = 1, keep_first: int = 0) -> Mask:
    """Keys at most `before` positions earlier or `after` positions later; the position itself always counts.

    So `window(2, 1)` shows 2 + 1 + 1 = 4 keys. With `dilation` only every so-manieth of them, counted from
    the position itself. `keep_first` keys at the start stay visible to all (attention sinks, Xiao et al.
    2023, §3). Where q and k differ in length the ends are aligned, as in `causal`. A window larger than
    the sequence shows all of it.

    >>> print(window(2, 1).text(4))
    ■ ■ · ·
    ■ ■ ■ ·
    ■ ■ ■ ■
    · ■ ■ ■
    """
    for name, size, least in (
        ("before", before, 0),
        ("after", after, 0),
        ("dilation", dilation, 1),
        ("keep_first", keep_first, 0),
    ):
        if size < least:
            raise ValueError(f"{name} is {size}, but a window reaches at least {least}; give {least} or more")
    return Window(before, after, dilation, keep_first)

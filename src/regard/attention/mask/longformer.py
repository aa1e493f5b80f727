"""A window, and some tokens that see everything and are seen by everybody."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Core, Mask
from regard.attention.mask.cover import Cover
from regard.attention.mask.window import Window, window
from regard.errors import DtypeError, MaskError


class LongformerMask(Mask):
    def __init__(self, near: Window, places: tuple[int, ...], flags: Bool[Tensor, "b k"] | None) -> None:
        self.near, self.places, self.flags = near, places, flags
        self.fixed = flags is None

    def check(self, sizes: Sizes) -> None:
        outside = next((place for place in self.places if not -sizes.k <= place < sizes.k), None)
        if outside is not None:
            raise MaskError(
                f"global token {outside} was asked for, but there are {sizes.k} keys; "
                f"give places from {-sizes.k} to {sizes.k - 1}"
            )
        if self.flags is not None and (len(sizes.lead) < 2 or self.flags.shape != (*sizes.batch, sizes.k)):
            raise MaskError(
                f"global_at has shape {tuple(self.flags.shape)}, but batch and keys are {(*sizes.batch, sizes.k)}; "
                "give True for each global key of each sequence, or a list of places for all"
            )

    def mark_globals(self, sizes: Sizes, device: torch.device) -> Bool[Tensor, "b k"]:
        """True for each global key, (b|1, k)."""
        if self.flags is not None:
            return self.flags.to(device)
        marks = torch.zeros(1, sizes.k, dtype=torch.bool, device=device)
        marks[0, list(self.places)] = True
        return marks

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        marks = self.mark_globals(sizes, at.k.device)
        b = at.b if marks.shape[0] > 1 else torch.zeros_like(at.b)
        stands = at.q + sizes.offset
        looks = marks[b, stands.clamp(0, max(0, sizes.k - 1))] & (stands >= 0) if sizes.k else marks.new_zeros(())
        return self.near.cell(at, sizes) | marks[b, at.k] | looks

    def span(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        if self.places or self.flags is not None:
            return 0, sizes.k
        return self.near.span(first, stop, sizes)

    def cover(self, sizes: Sizes) -> Cover:
        keys = self.mark_globals(sizes, torch.device("cpu")).any(0).nonzero().flatten()
        rows = keys - sizes.offset
        return Cover(self.near.before, self.near.after, keys.reshape(1, 1, -1), rows[rows >= 0])

    def core(self, sizes: Sizes) -> Core | None:
        return Core(even=(self.near,), over=() if self.flags is None else None, adds=True)

    def describe(self) -> str:
        which = "those marked in each sequence" if self.flags is not None else f"{list(self.places)}"
        return f"{self.near.describe()}; global tokens, {which}, see everything and are seen by all"

    def __repr__(self) -> str:
        at = f"{list(self.places)}" if self.flags is None else f"a mask of shape {tuple(self.flags.shape)}"
        more = f", dilation={self.near.dilation}" if self.near.dilation > 1 else ""
        return f"longformer({self.near.before}, {self.near.after}, global_at={at}{more})"


def longformer(
    before: int,
    after: int | None = None,
    *,
    global_at: Sequence[int] | Shaped[Tensor, "..."] = (0,),
    dilation: int = 1,
) -> Mask:
    """A window of `before` and `after` keys (after = before where left out), and global tokens (Beltagy et al. 2020).

    Tokens at `global_at` see everything and are seen by all: places that hold for every sequence (negative ones count
    from the end), or a boolean tensor (b, k) that marks them in each. `longformer(…) & causal()` and
    `& padding(lengths)` combine as all masks do. `attend` computes it in O(n · window) time and memory.

    >>> print(longformer(1, global_at=[0]).text(5))
    ■ ■ ■ ■ ■
    ■ ■ ■ · ·
    ■ ■ ■ ■ ·
    ■ · ■ ■ ■
    ■ · · ■ ■
    """
    near = window(before, before if after is None else after, dilation=dilation)
    assert isinstance(near, Window)
    if isinstance(global_at, Tensor):
        if global_at.dtype != torch.bool:
            raise DtypeError(
                f"global_at is a tensor of {global_at.dtype}; give a boolean one, (b, k), or a list of places"
            )
        return LongformerMask(near, (), global_at.detach().clone())
    return LongformerMask(near, tuple(int(place) for place in global_at), None)

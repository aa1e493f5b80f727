"""Sequences of unequal length in one batch."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Core, Mask
from regard.eager import readable
from regard.errors import DtypeError, MaskError


class Padding(Mask):
    """`known` are the lengths as plain numbers where they can be read, so that kernels may slice by them."""

    def __init__(self, lengths: Int[Tensor, "*b"], side: str) -> None:
        self.lengths, self.side = lengths, side
        self.known: list[int] | None = None
        self.most: int | None = None
        if readable(lengths):
            flat = lengths.flatten().tolist()
            self.most = max(flat, default=0)
            if min(flat, default=0) < 0:
                raise MaskError(f"a length is {min(flat)}, but lengths count keys; give 0 or more")
            if lengths.ndim == 1:
                self.known = flat

    def is_per_query(self, sizes: Sizes) -> bool:
        return self.lengths.ndim == len(sizes.batch) + 1

    def check(self, sizes: Sizes) -> None:
        shape = tuple(self.lengths.shape)
        if len(sizes.lead) < 2:
            axes = "(q, d)" if not sizes.lead else "(h, q, d)"
            raise MaskError(
                f"padding has lengths of shape {shape}, one per sequence, but q is {axes} and has no batch axis; "
                "make (b, q, d) into (b, 1, q, d) by q[:, None], and k and v likewise"
            )
        if shape not in (sizes.batch, (*sizes.batch, sizes.q)):
            raise MaskError(
                f"padding has lengths of shape {shape}, but the batch is {sizes.batch} with {sizes.q} queries; "
                f"give one length per sequence, {sizes.batch}, or one per query, {(*sizes.batch, sizes.q)}"
            )
        if self.most is not None and self.most > sizes.k:
            raise MaskError(
                f"a length is {self.most}, but there are only {sizes.k} keys; "
                f"clamp the lengths to {sizes.k} or give the keys they count"
            )

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        lengths = self.lengths.to(at.k.device)
        if self.is_per_query(sizes):
            length = lengths.reshape(-1, sizes.q)[at.b, at.q]
        else:
            length = lengths.reshape(-1)[at.b]
        return at.k < length if self.side == "right" else at.k >= sizes.k - length

    def span(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        if self.most is None:
            return 0, sizes.k
        most = min(self.most, sizes.k)
        return (0, most) if self.side == "right" else (sizes.k - most, sizes.k)

    def core(self, sizes: Sizes) -> Core | None:
        alone = self.lengths.ndim == 1  # one length per query depends on the query, too
        return Core(by_key=(self,), over=(self,)) if alone else None

    def describe(self) -> str:
        whose = "its sequence" if self.lengths.ndim == 1 else "it"
        which = "first" if self.side == "right" else "last"
        return f"each query sees the {which} keys only, as many as {whose} is allowed"

    def __repr__(self) -> str:
        shown = self.lengths.tolist() if readable(self.lengths) and self.lengths.numel() <= 16 else "…"
        return f"padding({shown})" if self.side == "right" else f"padding({shown}, side='left')"


def padding(
    lengths: Shaped[Tensor, "*b"] | Sequence[int] | Sequence[Sequence[int]],
    *,
    side: str = "right",
) -> Mask:
    """Only the first `lengths[b]` keys of each sequence are seen: the rest is padding.

    `lengths` is (b,), one per sequence, or (b, q), one per query. A length of 0 leaves nothing to look at:
    the mix is 0. A length beyond the keys, or below 0, is an error (on an accelerator, or while compiling,
    the values are not read: there a length beyond the keys counts as all of them).
    `side="left"` is for batches that are padded at the front: the last `lengths[b]` keys are seen.
    The lengths are copied, so changing the tensor later changes no mask.

    >>> print(padding([1, 3]).text(2, 3, batch=2))
    ■ · ·
    ■ · ·
    <BLANKLINE>
    ■ ■ ■
    ■ ■ ■
    """
    if side not in ("right", "left"):
        raise ValueError(f"side is 'right' or 'left', not {side!r}")
    counts = lengths.detach().clone() if isinstance(lengths, Tensor) else torch.tensor(lengths, device="cpu")
    if not isinstance(lengths, Tensor) and counts.numel() == 0:
        counts = counts.long()
    if counts.dtype == torch.bool or counts.is_floating_point() or counts.is_complex():
        raise DtypeError(
            f"lengths are {counts.dtype}, but lengths count keys; give integers, "
            "or regard.allowed(tensor, axes='b k') for a boolean tensor of the keys that may be seen"
        )
    if counts.ndim == 0:
        raise MaskError("padding got a single number; give one length per sequence, such as padding([3, 2])")
    return Padding(counts, side)

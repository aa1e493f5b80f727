"""A prompt that everybody may read, then text that is written from left to right."""

from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Mask
from regard.eager import readable
from regard.errors import DtypeError, MaskError


class Prefix(Mask):
    def __init__(self, length: int | Int[Tensor, " b"]) -> None:
        self.length = length

    def check(self, sizes: Sizes) -> None:
        if isinstance(self.length, int):
            return
        if len(sizes.lead) < 2 or tuple(self.length.shape) != sizes.batch:
            raise MaskError(
                f"prefix has lengths of shape {tuple(self.length.shape)}, but the batch is {sizes.batch}; "
                "give one length per sequence, or one number for all"
            )

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        if isinstance(self.length, int):
            length: int | Tensor = self.length
        else:
            length = self.length.to(at.k.device).reshape(-1)[at.b]
        return (at.k <= at.q + sizes.offset) | (at.k < length)

    def span(self, first: int, stop: int, sizes: Sizes) -> tuple[int, int]:
        if not isinstance(self.length, int):
            return 0, sizes.k
        return 0, max(0, min(sizes.k, max(stop + sizes.offset, self.length)))

    def describe(self) -> str:
        many = f"the first {self.length} keys" if isinstance(self.length, int) else "the prefix of its sequence"
        return f"each query sees {many}, itself and the keys before it"

    def __repr__(self) -> str:
        known = isinstance(self.length, int) or (readable(self.length) and self.length.numel() <= 16)
        if not known:
            return "prefix(…)"
        return f"prefix({self.length if isinstance(self.length, int) else self.length.tolist()})"


def prefix(length: int | Shaped[Tensor, " b"]) -> Mask:
    """The first `length` keys are seen by every query, the others causally (prefix language model).

    `length` is one number, or (b,) with one per sequence. Source: Raffel et al. 2020, figure 4.

    >>> print(prefix(2).text(4))
    ■ ■ · ·
    ■ ■ · ·
    ■ ■ ■ ·
    ■ ■ ■ ■
    """
    if isinstance(length, Tensor):
        if length.is_floating_point() or length.is_complex():
            raise DtypeError(f"prefix lengths are {length.dtype}, but lengths count keys; give integers")
        length = length.detach().clone()
    elif length < 0:
        raise MaskError(f"the prefix is {length} keys long, but lengths count keys; give 0 or more")
    return Prefix(length)

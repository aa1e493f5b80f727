"""One bit per cell: the small form of whatever is no single run of keys per query."""

import torch
from jaxtyping import Bool, UInt8
from torch import Tensor

from regard.attention.axes.sizes import Sizes
from regard.attention.mask.base import Cells, Mask
from regard.attention.mask.spans import fits_axes
from regard.errors import MaskError

GATHER = 0x0102040810204080  # as a factor it collects the lowest bit of each of 8 bytes in the highest byte


class Bits(Mask):
    """Query q sees key k where bit k % 8 of byte k // 8 in its row is 1.

    `bits` is (b, h, q, ⌈k / 8⌉), of size 1 in the first three where it is the same for all; it belongs to the mask.

    >>> print(Bits(torch.tensor([[[[0b101], [0b011]]]], dtype=torch.uint8)).text(2, 3))
    ■ · ■
    ■ ■ ·
    """

    def __init__(self, bits: UInt8[Tensor, "_b _h _q _bytes"]) -> None:
        self.bits = bits

    def check(self, sizes: Sizes) -> None:
        fits_axes("bits", tuple(self.bits.shape[:3]), sizes)
        want = -(-sizes.k // 8)
        if self.bits.shape[-1] != want:
            raise MaskError(f"bits have {self.bits.shape[-1]} bytes a row, but {sizes.k} keys need {want}")

    def cell(self, at: Cells, sizes: Sizes) -> Bool[Tensor, "..."]:
        bits = self.bits.to(at.k.device)
        rows = tuple(i if size > 1 else torch.zeros_like(i) for i, size in zip(at[:3], bits.shape))
        if at.k.ndim and at.k.numel() == at.k.shape[-1] and all(i.ndim and i.shape[-1] == 1 for i in rows):
            k = at.k.flatten()  # whole rows, then some columns of each: much faster than cell by cell
            found = bits[tuple(i.squeeze(-1) for i in rows)].index_select(-1, k >> 3)
            return (found >> (k & 7).to(torch.uint8)).bitwise_and_(1).bool()
        return ((bits[(*rows, at.k >> 3)] >> (at.k & 7).to(torch.uint8)) & 1).bool()

    def describe(self) -> str:
        return f"one bit per cell says what is seen, {tuple(self.bits.shape)} bytes of them"

    def __repr__(self) -> str:
        return f"bits(of shape {tuple(self.bits.shape)})"


def words(allowed: Bool[Tensor, "*_lead k"]) -> Tensor:
    """The same bytes eight at a time, (…, ⌈k / 8⌉) int64, filled up with 0; a view where memory allows it."""
    k = allowed.shape[-1]
    steps = (allowed.storage_offset(), *allowed.stride()[:-1])
    if k and k % 8 == 0 and allowed.stride(-1) == 1 and not any(step % 8 for step in steps):
        return allowed.view(torch.int64)
    padded = allowed.new_zeros((*allowed.shape[:-1], -(-k // 8) * 8))
    padded[..., :k] = allowed
    return padded.view(torch.int64)


def pack(allowed: Bool[Tensor, "*_lead k"]) -> UInt8[Tensor, "*_lead _bytes"]:
    """Eight keys to a byte, the first in its lowest bit.

    >>> pack(torch.tensor([True, False, True, False, False, False, False, False, True]))
    tensor([5, 1], dtype=torch.uint8)
    """
    return ((words(allowed) * GATHER) >> 56).to(torch.uint8)

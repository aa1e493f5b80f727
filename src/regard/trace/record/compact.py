"""Masks and biases in their small exact form: a run of keys per row, else bits; a number per diagonal, else as is.

Everything is read in blocks of rows, so that a mask of 8,192 × 8,192 cells costs a few megabytes on the way.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.axes.as_4d import broadcast_4d
from regard.attention.mask import And, Mask, Sizes
from regard.attention.mask.bits import Bits, pack, words
from regard.attention.mask.causal import Causal
from regard.attention.mask.lead import tile, whole
from regard.attention.mask.padding import Padding
from regard.attention.mask.prefix import Prefix
from regard.attention.mask.spans import SpanMask
from regard.attention.mask.tensor import TensorMask
from regard.attention.mask.window import Window
from regard.errors import MaskError
from regard.trace.record.diagonals import Diagonals
from regard.trace.record.even import WholeRows

BUDGET = 1 << 21  # cells read at once
ONES = 0x0101010101010101  # eight times True; as a factor it adds eight bytes up in the highest one

Blocks = Callable[[], Iterator[Bool[Tensor, "..."]]]  # rows of the mask in order, (b|1, h|1, r, k), as often as asked


class SplitBias(NamedTuple):
    """A float mask taken apart: who may be seen, what is added there, and whether a row that sees nobody is even."""

    mask: Mask | None
    bias: Tensor | Diagonals | None
    blind: bool


@torch.no_grad()
def compact_mask(allowed: Bool[Tensor, "_b _h _q _k"], sizes: Sizes) -> Mask | None:
    """The smallest mask that says the same: None where all is allowed, `SpanMask` where exact, else `Bits`.

    `allowed` broadcasts to the map. Axes that are only expanded are read once, and axes along which the answer
    does not change come out with size 1. Nothing of `allowed` is kept.

    >>> compact_mask(torch.ones(1, 1, 5, 5, dtype=torch.bool).tril(), Sizes((1, 1), 5, 5))
    spans(of shape (1, 1, 5))
    """
    seen = keys_whole(collapse(allowed, sizes), sizes.k)
    return gather(lambda: (part for _, part in row_blocks(seen)), sizes)


@torch.no_grad()
def compact_any_mask(mask: Mask | None, sizes: Sizes, device: torch.device | str = "cpu") -> Mask | None:
    """Any mask in its small form; those that are a run of keys by their nature are not even walked."""
    mask = mask.inner if isinstance(mask, WholeRows) else mask
    if mask is None or isinstance(mask, SpanMask | Bits):
        return mask
    mask.check(sizes)
    known = spans_of(mask, sizes, torch.device(device))
    if known is not None:
        return make_spans(*known, sizes.k)
    if isinstance(mask, TensorMask):
        given = mask.whole(sizes, mask.tensor.device)
        return compact_mask(broadcast_4d(given, sizes), sizes)
    lead = whole(sizes, device)
    probe = broadcast_4d(tile(mask, sizes, lead, slice(0, 1)), sizes)
    height = max(1, BUDGET // max(1, probe.shape[0] * probe.shape[1] * sizes.k))

    def blocks() -> Iterator[Tensor]:
        for first in range(0, sizes.q, height):
            part = broadcast_4d(tile(mask, sizes, lead, slice(first, first + height)), sizes)
            yield part.expand(-1, -1, min(height, sizes.q - first), sizes.k)

    return gather(blocks, sizes)


@torch.no_grad()
def split_bias(bias: Float[Tensor, "_b _h _q _k"], sizes: Sizes) -> SplitBias:
    """A float mask "to be added" as (mask, bias, blind).

    A cell is hidden where it holds −inf or a number near the lowest of its kind (≤ finfo.min / 2). What is left is
    the bias: None where it is 0, `Diagonals` where it depends on key − query alone, (b|1, h|1, 1, k) where it
    depends on the key alone, else the tensor in its small form, with 0 where hidden. It is the caller's own memory
    only where nothing was hidden. `blind` says that some row sees nothing and holds a finite number: adding makes
    that row even (uniform) in softmax, where a boolean mask makes it 0.

    >>> bias = torch.tensor([[0.0, -torch.inf], [2.0, 0.0]])[None, None]
    >>> split_bias(bias, Sizes((1, 1), 2, 2))
    SplitBias(mask=spans(of shape (1, 1, 2)), bias=Diagonals(h 1, 3 distances), blind=False)
    """
    small = collapse(bias, sizes)
    lowest = torch.finfo(bias.dtype).min / 2
    wide = keys_whole(small, sizes.k)
    found = {"rest": False, "blind": False}

    def blocks() -> Iterator[Tensor]:
        for _, part in row_blocks(wide):
            hidden = part <= lowest
            visible = ~hidden
            found["rest"] = found["rest"] or bool((visible & (part != 0)).any())
            if not found["blind"]:
                nothing = hidden.all(-1)
                found["blind"] = bool(nothing.any()) and bool((part[nothing] > -torch.inf).any())
            yield visible

    mask = gather(blocks, sizes)
    if not found["rest"]:
        return SplitBias(mask, None, found["blind"])
    return SplitBias(mask, compact_bias(small, lowest, sizes, hides=mask is not None), found["blind"])


def compact_bias(bias: Tensor, lowest: float, sizes: Sizes, *, hides: bool) -> Tensor | Diagonals:
    """What is added where one may look, in the smallest form that gives every such number exactly."""
    if bias.shape[-2] > 1 and bias.shape[-1] > 1:
        by_key, by_distance = Agreement(bias, "key"), Agreement(bias, "distance")
        for first, part in row_blocks(bias):
            hidden = part <= lowest
            by_key.see(first, part, hidden)
            by_distance.see(first, part, hidden)
            if not (by_key.holds or by_distance.holds):
                break
        if by_key.holds:
            return by_key.values()[:, :, None, :]
        if by_distance.holds:
            return Diagonals(by_distance.values()[0], keys=sizes.k, heads=sizes.heads)
    return drop_constant_axes(bias.masked_fill(bias <= lowest, 0.0) if hides else bias)


class Agreement:
    """Whether all visible cells of a column ("key"), or of a diagonal over all of a batch ("distance"), are equal.

    Largest and smallest are kept apart; where they are equal the number is known, where they differ it is over.
    """

    def __init__(self, bias: Tensor, by: str) -> None:
        b, h, self.q, self.k = bias.shape
        shape = (b, h, self.k) if by == "key" else (1, h, self.q + self.k - 1)
        self.by, self.holds = by, True
        self.most, self.least = bias.new_full(shape, -torch.inf), bias.new_full(shape, torch.inf)

    def see(self, first: int, part: Tensor, hidden: Tensor) -> None:
        """Take these rows into account."""
        if not self.holds:
            return
        high, low = part.masked_fill(hidden, -torch.inf), part.masked_fill(hidden, torch.inf)
        rows, at = part.shape[-2], slice(None)
        if self.by == "distance":
            high, low = (
                skew_rows(high.amax(0, keepdim=True), -torch.inf),
                skew_rows(low.amin(0, keepdim=True), torch.inf),
            )
            last = first + rows - 1
            at = slice(self.q - 1 - last, self.q - 1 - last + high.shape[-1])
        most = torch.maximum(self.most[..., at], high.amax(-2))
        least = torch.minimum(self.least[..., at], low.amin(-2))
        self.most[..., at], self.least[..., at] = most, least
        self.holds = agree(most, least)

    def values(self) -> Tensor:
        """The common numbers, once where all of a batch or all heads share them; 0 where nothing was visible."""
        most, least = self.most, self.least
        for axis in (0, 1):
            high, low = most.amax(axis, keepdim=True), least.amin(axis, keepdim=True)
            if agree(high, low):
                most, least = high, low
        return most.masked_fill(most == -torch.inf, 0.0)


def agree(most: Tensor, least: Tensor) -> bool:
    """Whether largest and smallest are equal wherever anything was seen; NaN equals nothing."""
    unseen = (most == -torch.inf) & (least == torch.inf)
    return bool(((most == least) | unseen).all())


def skew_rows(part: Float[Tensor, "b h r k"], fill: float) -> Float[Tensor, "b h r _n"]:
    """Each row moved right by its distance from the last one, so that a diagonal becomes a column."""
    b, h, r, k = part.shape
    width = k + r - 1
    room = part.new_full((b, h, r * width), fill)
    room.as_strided((b, h, r, k), (h * r * width, r * width, width - 1, 1), r - 1).copy_(part)
    return room.view(b, h, r, width)


def gather(blocks: Blocks, sizes: Sizes) -> Mask | None:
    """The small form of a mask that comes in blocks of rows."""
    if not sizes.q or not sizes.k:
        return None
    starts, stops = [], []
    for part in blocks():
        found = runs_of(part)
        if found is None:
            break
        starts.append(found[0])
        stops.append(found[1])
    else:
        return make_spans(torch.cat(starts, -1), torch.cat(stops, -1), sizes.k)
    return Bits(drop_constant_axes(torch.cat([pack(part) for part in blocks()], -2), axes=3))


def runs_of(part: Bool[Tensor, "b h r k"]) -> tuple[Tensor, Tensor] | None:
    """Where the one run of True of every row starts and stops, (b, h, r) each; None where a row has two runs."""
    eights = words(part)  # b h r k/8
    some = eights != 0
    place = torch.arange(eights.shape[-1], dtype=torch.int32, device=part.device)
    first = torch.where(some, place, place.shape[0]).amin(-1).long()
    last = torch.where(some, place, -1).amax(-1).long()
    empty = last < 0
    first = first.masked_fill(empty, 0)
    last = last.masked_fill(empty, 0)
    count = ((eights * ONES) >> 56).sum(-1)
    start = first * 8 + word_bytes(eights, first).argmax(-1)
    stop = last * 8 + 8 - word_bytes(eights, last).flip(-1).argmax(-1)
    start, stop = start.masked_fill(empty, 0), stop.masked_fill(empty, 0)
    if bool((stop - start != count).any()):
        return None
    return start.to(torch.int32), stop.to(torch.int32)


def word_bytes(eights: Tensor, which: Tensor) -> Tensor:
    """The eight cells of one word per row, (…, 8), as numbers."""
    return eights.gather(-1, which[..., None]).view(torch.uint8)


def make_spans(start: Tensor, stop: Tensor, k: int) -> SpanMask | None:
    """SpanMask of as few rows, heads and entries as say it all; None where every query sees every key."""
    if bool((start == 0).all()) and bool((stop == k).all()):
        return None
    both = drop_constant_axes(torch.stack([start, stop], -1), axes=3)
    return SpanMask(both[..., 0].contiguous(), both[..., 1].contiguous())


def spans_of(mask: Mask, sizes: Sizes, device: torch.device) -> tuple[Tensor, Tensor] | None:
    """The run of keys of every query, known from what kind of mask it is; (b|1, h|1, q|1) each."""
    q = torch.arange(sizes.q, dtype=torch.int32, device=device)[None, None]
    if isinstance(mask, And):
        left, right = spans_of(mask.left, sizes, device), spans_of(mask.right, sizes, device)
        if left is None or right is None:
            return None
        start, stop = torch.maximum(left[0], right[0]), torch.minimum(left[1], right[1])
    elif isinstance(mask, SpanMask):
        start, stop = mask.start.to(device), mask.stop.to(device)
    elif isinstance(mask, Causal):
        start, stop = torch.zeros_like(q), (q + 1 + mask.offset(sizes)).clamp(0, sizes.k)
    elif isinstance(mask, Window) and mask.dilation == 1 and not mask.keep_first:
        reach = sizes.q + sizes.k
        start = (q + sizes.offset - min(mask.before, reach)).clamp(0, sizes.k)
        stop = (q + sizes.offset + min(mask.after, reach) + 1).clamp(0, sizes.k)
    elif isinstance(mask, Prefix) and isinstance(mask.length, int):
        start, stop = torch.zeros_like(q), (q + 1 + sizes.offset).clamp(min(mask.length, sizes.k), sizes.k)
    elif isinstance(mask, Padding):
        axes = (-1, 1, sizes.q) if mask.is_per_query(sizes) else (-1, 1, 1)
        length = mask.lengths.to(device).reshape(axes).clamp(0, sizes.k).to(torch.int32)
        start, stop = torch.zeros_like(length), length
        if mask.side == "left":
            start, stop = sizes.k - length, torch.full_like(length, sizes.k)
    else:
        return None
    empty = stop <= start
    return start.masked_fill(empty, 0), stop.masked_fill(empty, 0)


def row_blocks(x: Tensor) -> Iterator[tuple[int, Tensor]]:
    """(first row, the rows from there) until all were there, few enough at once to stay in the cache."""
    b, h, q, k = x.shape
    height = max(1, BUDGET // max(1, b * h * k))
    for first in range(0, q, height):
        yield first, x[:, :, first : first + height]


def collapse(x: Tensor, sizes: Sizes) -> Tensor:
    """`x` without the axes that are only expanded: size 1 there; it must broadcast to the map."""
    want = (math.prod(sizes.batch), sizes.heads, sizes.q, sizes.k)
    if x.ndim != 4 or any(a not in (1, b) for a, b in zip(x.shape, want)):
        raise MaskError(f"the mask has shape {tuple(x.shape)}, but the map is {want}; each axis must be equal or 1")
    return drop_expanded_axes(x)


def drop_expanded_axes(x: Tensor) -> Tensor:
    """`x` with size 1 along axes that are only expanded."""
    for axis in range(x.ndim):
        if x.shape[axis] > 1 and x.stride(axis) == 0:
            x = x.narrow(axis, 0, 1)
    return x


def keys_whole(x: Tensor, k: int) -> Tensor:
    """All keys of every row, which runs and bits are counted in."""
    return x if x.shape[-1] == k else x.expand(-1, -1, -1, k)


def dense_of(mask: Mask | None, sizes: Sizes) -> Bool[Tensor, "_b _h q k"]:
    """Every row and key of a mask, (b|1, h|1, q, k), for masks of a few rows or of one step of a cache."""
    if mask is None:
        return torch.ones(1, 1, 1, 1, dtype=torch.bool).expand(1, 1, sizes.q, sizes.k)
    return broadcast_4d(mask.whole(sizes, torch.device("cpu")), sizes).expand(-1, -1, sizes.q, sizes.k)


def drop_constant_axes(x: Tensor, *, axes: int = 2) -> Tensor:
    """`x` with size 1 along each of its first axes along which it never changes."""
    for axis in range(axes):
        first = x.narrow(axis, 0, 1) if x.shape[axis] else x
        if x.shape[axis] > 1 and bool((x == first).all()):
            x = first
    return x.contiguous()

"""The axes of a tensor, recognised by its numbers: entries and heads are looked for in what they were made from.

What a module was given, or has a name for, still has its batch on an axis of its own, and its heads side by side in
the channels. Where the first entry of q, k or v stands in there, and where the next, says which axis is which,
however they were cut and put together: by view, reshape, cat, einops or another library. Nothing is run again but
linear layers, on two positions.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.axes.layout import Layout
from regard.trace.doors.surroundings import Surroundings

SLACK = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 4e-2}
LARGEST = 1 << 22  # numbers that one comparison may hold
LOOKED_AT = 8  # places at which a window may stand, where its numbers stand at several


class Projection(NamedTuple):
    """The weights of a linear layer, or of a convolution of single positions, which is one."""

    weight: Tensor  # out, in
    bias: Tensor | None


@dataclass(eq=False)
class Witness:
    """Numbers with a batch axis of their own, (b, n, m), and the linear layer that they may have gone through."""

    x: Tensor
    linear: "Projection | None" = None

    @property
    def width(self) -> int:
        return self.x.shape[-1] if self.linear is None else self.linear.weight.shape[0]

    @cached_property
    def ends(self) -> Tensor:
        """(b, 2, m): the first position and the last."""
        return self.through(self.x[:, [0, -1]])

    @cached_property
    def whole(self) -> Tensor:
        return self.through(self.x)

    def through(self, x: Tensor) -> Tensor:
        return x if self.linear is None else F.linear(x, self.linear.weight, self.linear.bias)


def witnesses(around: Surroundings) -> Iterator[Witness]:
    """What a call of a module has at hand, as it is and behind each of its linear layers; both orders of (b, n)."""
    plain, pictures = [], []
    for x in around.tensors:
        if x.ndim == 2:
            plain.append(x[None])
        elif x.ndim == 3:
            plain += [x, x.transpose(0, 1)] if x.shape[0] != 1 else [x]
        else:
            pictures += [x.flatten(1, -2), x.flatten(2).mT]  # with channels last, or first
    yield from map(Witness, plain)  # more axes may already be heads, so they count only where they are projected
    for module in inner_modules(around.module):
        linear = projection_of(module)
        if linear is not None:
            yield from (Witness(x, linear) for x in (*plain, *pictures) if x.shape[-1] == linear.weight.shape[1])


def projection_of(module: nn.Module) -> Projection | None:
    """What a module multiplies each position by, where that is all it does."""
    weight = getattr(module, "weight", None)
    if type(weight) not in (Tensor, nn.Parameter):  # packed, or split over devices
        return None
    if isinstance(module, nn.Linear):
        return Projection(module.weight, module.bias)
    if isinstance(module, nn.Conv1d | nn.Conv2d) and module.groups == 1 and set(module.stride) == {1}:
        return Projection(module.weight.flatten(1), module.bias) if set(module.kernel_size) == {1} else None
    return None


def inner_modules(module: nn.Module, depth: int = 2) -> Iterator[nn.Module]:
    """The modules in one, and those in them."""
    for child in module._modules.values():
        if child is not None:
            yield child
            if depth > 1:
                yield from inner_modules(child, depth - 1)


def recognise(tensors: Iterable[Tensor], readings: list[Layout], around: Surroundings) -> list[Layout]:
    """The readings of these tensors that their numbers agree with, by the first witness that tells them apart.

    One is what was looked for; several mean that the numbers cannot tell, as where all entries of a batch are alike.
    """
    by_batch: dict[int, list[Layout]] = {}
    for reading in readings:
        by_batch.setdefault(reading.batch, []).append(reading)
    known = [one for one in witnesses(around) if one.x.shape[0] in by_batch and one.x.shape[1]]
    several: list[Layout] = []
    for x in (x.detach() for x in tensors):
        for witness in known:
            fitting = readings_by(witness, x, by_batch[witness.x.shape[0]])
            if len(fitting) == 1:
                return fitting
            several = several or fitting
    return several


def readings_by(witness: Witness, x: Tensor, readings: list[Layout]) -> list[Layout]:
    """The readings of `x` that one witness agrees with."""
    try:
        whole = begins(x, witness)  # asked first: most witnesses are not what was looked for
        return [one for one in readings if (whole or one.windows > 1) and agrees(x, one, witness)]
    except Exception:  # another dtype or device: whatever it is, it is no witness then
        return []


def begins(x: Tensor, witness: Witness) -> bool:
    """Whether the very first entry, which is that of the first head however axes are read, is among the channels."""
    n, e, length = x.shape[-2], x.shape[-1], witness.x.shape[1]
    if witness.width % e or length > n or x.dtype not in SLACK:
        return False
    own = x[(0,) * (x.ndim - 2)][n - length]  # e
    line = witness.ends[0, 0].to(own.dtype)
    slack = slack_of(own)
    return any(bool(((own - parts).abs().amax(-1) <= slack).any()) for parts in (line.view(-1, e), line.view(e, -1).mT))


def agrees(x: Tensor, reading: Layout, witness: Witness) -> bool:
    """Whether the entries of `x`, read this way, stand in the witness: each head in channels of its own."""
    n, e, length, width = x.shape[-2], x.shape[-1], witness.x.shape[1], witness.width
    if width % e or x.dtype not in SLACK:
        return False
    if reading.windows > 1:
        return agrees_in_windows(x, reading, witness)
    if length > n:
        return False
    own = reading.split(
        x[..., [n - length, n - 1], :], grouped=True
    )  # b h 2 e; a cache may hold older positions before them
    if own.numel() * (width // e) > LARGEST:
        return False
    theirs = witness.ends.to(own.dtype)  # b 2 m
    return any(bool(heads_in(own, parts).any(1).all()) for parts in cut_channels(theirs, e))


def slack_of(own: Tensor) -> float:
    """How far numbers may be apart that were computed in another order."""
    return SLACK[own.dtype] * float(own.abs().max())


def cut_channels(x: Tensor, e: int) -> list[Tensor]:
    """(b, n, c, e): the channels cut into parts side by side, or one beside the other."""
    return [x.unflatten(-1, (-1, e)), x.unflatten(-1, (e, -1)).mT]


def heads_in(own: Tensor, parts: Tensor) -> Tensor:
    """(h, c): whether a head, (b, h, n, e), is this part of the channels, (b, n, c, e), in every entry."""
    apart = own.transpose(1, 2)[:, :, :, None] - parts[:, :, None]  # b n h c e
    return apart.abs().amax((0, 1, 4)) <= slack_of(own)


def agrees_in_windows(x: Tensor, reading: Layout, witness: Witness) -> bool:
    """The same where positions were cut into windows: the middle of some windows is looked for among all positions."""
    n, e, count = x.shape[-2], x.shape[-1], reading.windows
    side = math.isqrt(n)
    middle = n // 2 + (side // 2 if side * side == n else 0)  # of a line, or of a square with a rim around it
    if witness.x.shape[1] < count or witness.x.shape[1] * witness.width > LARGEST:
        return False
    own = reading.split(x[..., [middle], :]).unflatten(0, (-1, count))[:, :, :, 0]  # b w h e
    some = sample_windows(reading)
    return any(
        len(windows_in(own[:, some], parts)) == len(some) for parts in cut_channels(witness.whole.to(own.dtype), e)
    )


def sample_windows(reading: Layout) -> list[int]:
    """Some windows, among them the next along each of their axes: heads that are taken for windows share a place."""
    sizes = [size for role, size in reading.factors if role == "w" and size > 1]
    count = reading.windows
    steps = {math.prod(sizes[at + 1 :]) for at in range(len(sizes))}
    return sorted({0, count // 2, count - 1, *steps})


def windows_in(own: Tensor, parts: Tensor) -> set[int]:
    """Where positions of some windows, (b, w, h, e), stand among all, (b, n, c, e); nowhere if one is not there."""
    found, slack = set(), slack_of(own)
    for some in own.unbind(1):  # b h e
        first = (some[0, 0] - parts[0]).abs().amax(-1) <= slack  # n c
        for place in first.any(1).nonzero().flatten().tolist()[:LOOKED_AT]:
            near = (some[:, :, None] - parts[:, place, None]).abs().amax((0, 3)) <= slack  # h c
            if bool(near.any(1).all()):
                found.add(place)
                break
        else:
            return set()
    return found

"""What the leading axes of an attention call are: batch, heads, or windows, each an axis of its own or merged."""

import math
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

Factor = tuple[str, int]  # a role and its size; roles: "b" batch, "w" windows or chunks of one entry, "h" heads


@dataclass(frozen=True)
class Layout:
    """`Layout` says which role each axis before the last two has, and turns tensors into (b, h, n, d) and back.

    One item per axis, each a product of factors, the slowest first: batch-major `(b h) n d` is `((b, h),)`, head-major
    `(h b) n d` is `((h, b),)`. Windows become entries of the batch, several axes of heads one.

    >>> import torch
    >>> Layout(((("h", 4), ("b", 3)),)).split(torch.zeros(12, 5, 7)).shape
    torch.Size([3, 4, 5, 7])
    """

    axes: tuple[tuple[Factor, ...], ...]

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        return tuple(factor for axis in self.axes for factor in axis)

    @cached_property
    def is_plain(self) -> bool:
        """Whether tensors already stand as (b, h, n, d)."""
        return [[role for role, _ in axis] for axis in self.axes] == [["b"], ["h"]]

    @cached_property
    def heads(self) -> int:
        return math.prod(size for role, size in self.factors if role == "h")

    @cached_property
    def batch(self) -> int:
        return math.prod(size for role, size in self.factors if role == "b")

    @cached_property
    def windows(self) -> int:
        """How many windows, chunks or the like stand beside each other in one entry of the batch."""
        return math.prod(size for role, size in self.factors if role == "w")

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The factors as (b, h): batch, then windows, then heads, each in the order they came."""
        return tuple(sorted(range(len(self.factors)), key=lambda i: "bwh".index(self.factors[i][0])))

    def split(self, x: Tensor, *, grouped: bool = False) -> Tensor:
        """`x` as (b, h, n, d). An axis of size 1 stands for all; `grouped` lets heads that share keys stay one."""
        if self.is_plain or x.is_nested:
            return x
        x = x[(None,) * (len(self.axes) + 2 - x.ndim)]
        sizes: list[int] = []
        for axis, size in zip(self.axes, x.shape):
            sizes += [1] * len(axis) if size == 1 else [size for _, size in axis]
        order, count = self.order, len(sizes)
        x = x.reshape(*sizes, *x.shape[-2:]).permute(*order, count, count + 1)
        lead = sum(role != "h" for role, _ in self.factors)
        batch = self.axis_sizes(sizes, order[:lead], grouped=False)
        heads = self.axis_sizes(sizes, order[lead:], grouped=grouped)
        return x.expand(*batch, *heads, -1, -1).reshape(math.prod(batch), math.prod(heads), *x.shape[-2:])

    def axis_sizes(self, sizes: list[int], those: tuple[int, ...], *, grouped: bool) -> list[int]:
        """The sizes that factors take where they become one axis: all of them, or none."""
        own = [sizes[i] for i in those]
        full = [self.factors[i][1] for i in those]
        if math.prod(own) == 1:
            return own
        shared = 1  # how many of the last ones are shared: keys of grouped heads
        while grouped and shared <= len(own) and own[-shared] == 1:
            shared += 1
        return full if shared == 1 else [*full[: 1 - shared], *own[1 - shared :]]

    def merge(self, mix: Tensor, lead: tuple[int, ...]) -> Tensor:
        """(b, h, n, e) with the leading axes that the call had."""
        if self.is_plain:
            return mix
        order, count = self.order, len(self.factors)
        apart = mix.reshape(*(self.factors[i][1] for i in order), *mix.shape[-2:])
        undo = sorted(range(count), key=order.__getitem__)
        return apart.permute(*undo, count, count + 1).reshape(*lead, *mix.shape[-2:])


PLAIN = Layout(((("b", -1),), (("h", -1),)))  # (b, h, n, d), of whatever size

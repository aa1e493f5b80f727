"""What is kept of a call: a reference where nothing can write behind our back, a copy everywhere else.

A tensor that fills its own storage belongs to the call that made it; a view of a packed projection keeps alive, and a
slot of a cache changes with, what it is a view of. A kept reference carries its version: a map asked after somebody
wrote to it raises `Stale`, never a wrong number.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from regard.eager import is_owned
from regard.trace.file.stream import Writer


@dataclass(frozen=True)
class Retention:
    """`Retention` says how captured tensors are kept: by reference, as a copy, in another dtype, or in a file."""

    values: bool = True
    dtype: torch.dtype | None = None
    device: torch.device | None = None
    graph: bool = False
    writer: Writer | None = None  # a file that takes the numbers, so that memory does not

    @cached_property
    def as_is(self) -> bool:
        """Whether numbers stay in the type and the place in which they came."""
        return self.writer is None and self.dtype is None and self.device is None and not self.graph

    def keep(self, x: Tensor, *, beside: tuple[Tensor, ...] = ()) -> Tensor:
        """`x` as something that stays what it is; `beside` are tensors that are kept at the same time, as it may be."""
        if self.as_is:
            return x.detach() if is_owned(x, beside) else x.detach().clone(memory_format=torch.contiguous_format)
        if self.graph:
            return x
        if self.writer is not None:
            return self.writer.add(
                x.detach() if self.dtype is None or not x.is_floating_point() else x.detach().to(self.dtype)
            )
        moved = (self.dtype is not None and x.dtype != self.dtype and x.is_floating_point()) or (
            self.device is not None and x.device != self.device
        )
        if moved:
            return x.detach().to(device=self.device, dtype=self.dtype, copy=True)
        return x.detach() if is_owned(x, beside) else x.detach().clone(memory_format=torch.contiguous_format)

    def three(
        self, q: Tensor, k: Tensor, v: Tensor | None, *, cached: bool = False
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """q, k and v of one call. Three views that fill one packed storage between them are kept as they are.

        What a cache holds is copied: the next step may write to it.
        """
        if not self.values:
            v = None
        if cached and self.writer is None and not self.graph:
            k, v = k.detach().clone(), None if v is None else v.detach().clone()
        others = (q, k) if v is None else (q, k, v)
        kept = [self.keep(x, beside=others) for x in others]
        return kept[0], kept[1], None if v is None else kept[2]

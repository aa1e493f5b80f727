"""Keys and values that grow in time, in place where nobody minds."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.eager import is_transformed

Pair = tuple[Float[Tensor, "*_b k d"], Float[Tensor, "*_b k e"]]

count_holders = getattr(torch._C, "_storage_Use_Count", None)  # how many tensors stand on a memory


class Buffer:
    """What is held, (…, t, d) and (…, t, e), in the order of time, as views of tensors with room behind them.

    What was handed out stays true: writing happens behind every view, or into new tensors. Where a view must be
    written over (after a crop, or to move the first keys up) its version counts on, so that autograd and
    `AttentionMap` notice instead of reading other numbers. Where gradients or transforms flow through the tensors,
    each growth makes new ones.

    One pair of numbers says what is held of both: a compiler could not know that two pairs stay equal.

    Beams move the entries at every step, from one pair of tensors to another and back: new memory each time would cost
    more than the copy. The other pair is written to only where no tensor but ours stands on it.
    """

    __slots__ = ("handed", "k", "other", "ours", "start", "stop", "v")

    def __init__(self, k: Float[Tensor, "*_b t d"], v: Float[Tensor, "*_b t e"]) -> None:
        self.other: tuple[Tensor, Tensor] | None = None
        self.replace(k, v)

    def replace(self, k: Tensor, v: Tensor, *, ours: bool = False, stop: int | None = None) -> None:
        """Hold these instead; `ours` says that they may be written to, from `stop` on."""
        self.k, self.v, self.ours = k, v, ours
        self.start, self.stop = 0, k.shape[-2] if stop is None else stop
        self.handed = 0  # views up to here were given out

    @property
    def held(self) -> int:
        return self.stop - self.start

    def view(self) -> Pair:
        """All that is held."""
        self.handed = max(self.handed, self.stop)
        held = self.stop - self.start
        return self.k.narrow(-2, self.start, held), self.v.narrow(-2, self.start, held)

    def extend(self, k: Float[Tensor, "*_b t d"], v: Float[Tensor, "*_b t e"], room: int) -> None:
        """Hold these as well. New tensors, where they are needed, have room for so many."""
        if self.recording(k, v):
            held = self.view()
            self.replace(torch.cat((held[0], k), -2), torch.cat((held[1], v), -2))
            return
        new, size = k.shape[-2], self.k.shape[-2]
        if not self.ours or self.stop + new > size or size > 4 * room:
            self.move(*self.view(), room)
        # .data has a version of its own: nobody looks at what is behind the last view.
        quiet = self.stop >= self.handed and not torch.compiler.is_compiling()
        for into, x in ((self.k, k), (self.v, v)):
            (into.data if quiet else into).narrow(-2, self.stop, new).copy_(x)
        self.stop += new

    def move(self, k: Float[Tensor, "*_b t d"], v: Float[Tensor, "*_b t e"], room: int) -> None:
        """Hold copies of these, in tensors of our own; views of the old ones stay as they are."""
        self.other = None  # of another size than these will be
        held = k.shape[-2]
        # No inference tensors even in inference mode: those cannot be written to outside of it.
        with torch.inference_mode(False), torch.no_grad():
            keys, values = (x.new_empty((*x.shape[:-2], room, x.shape[-1])) for x in (k, v))
            keys[..., :held, :], values[..., :held, :] = k, v
        self.replace(keys, values, ours=True, stop=held)

    def drop(self, over: int, first: int) -> None:
        """Let go of `over` entries that follow the `first` ones."""
        if first and not self.ours:
            k, v = (torch.cat((x[..., :first, :], x[..., first + over :, :]), -2) for x in self.view())
            self.replace(k, v)
            return
        if first:
            old, new = self.start, self.start + over
            for x in (self.k, self.v):
                x[..., new : new + first, :] = x[..., old : old + first, :].clone()
        self.start += over

    def reorder(self, index: Int[Tensor, " n"]) -> None:
        """Other entries of the first axis, in new tensors with as much room."""
        if self.ours and not self.recording() and self.k.shape[-2] <= 2 * (self.stop - self.start):
            start, stop = self.start, self.stop
            with torch.inference_mode(False), torch.no_grad():  # room and all: one copy instead of two
                olds, others = (self.k, self.v), self.other or (None, None)
                k, v = (select_into(other, x, index.to(x.device)) for x, other in zip(olds, others))
            self.other = olds
            self.replace(k, v, ours=True, stop=stop)
            self.start = start
            return
        self.other = None
        k, v = (x.index_select(0, index.to(x.device)) for x in self.view())
        if self.ours and not self.recording(k, v):
            self.move(k, v, self.k.shape[-2])
        else:
            self.replace(k, v)

    def recording(self, *new: Tensor) -> bool:
        """Whether a graph or a transform needs the tensors as they are."""
        if torch.is_grad_enabled() and any(x.requires_grad for x in (*new, self.k, self.v)):
            return True
        return is_transformed()


def select_into(other: Tensor | None, x: Tensor, index: Int[Tensor, " n"]) -> Tensor:
    """`x.index_select(0, index)`, in the memory of `other` where that has its shape and nobody else looks at it."""
    shape = (len(index), *x.shape[1:])
    if other is None or other.shape != shape or count_holders is None or torch.compiler.is_compiling():
        return x.index_select(0, index)
    memory = other.untyped_storage()
    if count_holders(memory._cdata) > 2:  # `other`, and `memory` itself
        return x.index_select(0, index)
    return torch.index_select(x, 0, index, out=other)

"""A map with changes in it: rows that somebody changed after their weights were made, or blocked before."""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.axes.select import Index, Where, places, take
from regard.attention.map.source import Source, WeightsSource


@runtime_checkable
class MapChange(Protocol):
    """What was done to some rows of a map; rows are numbers of the whole map, on the CPU."""

    def touches(self, rows: Int[Tensor, " r"]) -> Bool[Tensor, " r"]:
        """Which of these rows it changes, in any head."""

    def weights(self, source: Source, rows: Int[Tensor, " r"]) -> Float[Tensor, "*_b r k"]:
        """Rows that it touches, as they are afterwards."""

    def hidden(self, source: Source, rows: Int[Tensor, " r"]) -> Bool[Tensor, "*_b r k"] | None:
        """The cells of these rows that it hid before weights were made; None where it hid nothing."""


class EditedSource(WeightsSource):
    """A map with edits: rows that none of them is for are the other map's, the rest is computed when asked for."""

    kind = "implied"

    def __init__(self, source: Source, changes: Sequence[MapChange]) -> None:
        self.source, self.changes = source, tuple(changes)
        self.sizes, self.lead = source.sizes, source.leading_index()
        self.device, self.dtype, self.precision = source.device, source.dtype, source.precision

    def pick(self, chosen: tuple[Index, ...]) -> "EditedSource":
        return EditedSource(self.source.pick(chosen), self.changes)

    def weights(self, rows: Where = slice(None), columns: slice = slice(None)) -> Float[Tensor, "*_b r c"]:
        wanted = places(rows, self.sizes.q, "cpu")
        weights = self.source.weights(wanted.to(self.device))
        weights = weights.expand(*self.shape[:-2], *weights.shape[-2:]).clone()
        for change, here in self.touching(wanted):
            changed = change.weights(self.source, wanted[here])
            weights[..., here.to(self.device), :] = changed.to(weights.dtype)
        return take(weights, -1, columns)

    def allowed(self, rows: Where = slice(None), columns: Where = slice(None)) -> Bool[Tensor, "..."] | None:
        """Where the mask lets a query look and nothing was blocked, and wherever an edit put weight."""
        wanted = places(rows, self.sizes.q, "cpu")
        seen = self.source.allowed(wanted.to(self.device))
        touching = list(self.touching(wanted))
        if not touching:
            return seen if seen is None or seen.shape[-1] == 1 else take(seen, -1, columns)
        shape = (*self.shape[:-2], len(wanted), self.sizes.k)
        allowed = torch.ones((), dtype=torch.bool, device=self.device) if seen is None else seen
        allowed = allowed.expand(shape).clone()
        for change, here in touching:
            at, some = here.to(self.device), wanted[here]
            hidden = change.hidden(self.source, some)
            if hidden is not None:
                allowed[..., at, :] &= ~hidden
            allowed[..., at, :] |= change.weights(self.source, some) > 0
        return take(allowed, -1, columns)

    def touching(self, wanted: Int[Tensor, " r"]) -> Iterator[tuple[MapChange, Bool[Tensor, " r"]]]:
        """The changes of any of these rows, and which rows each is for."""
        for change in self.changes:
            here = change.touches(wanted)
            if bool(here.any()):
                yield change, here

"""Edits of what heads give at some queries: patched from another run, or handed to a function of the user's own."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import WatchError
from regard.trace.change.aim import Named, places_of
from regard.trace.change.edits import HeadReference, MixEdit, PlacedEdit, must_fit

HookFunction = Callable[[Tensor], Tensor | None]


@dataclass(eq=False)
class RowEdit(MixEdit):
    """An edit of what heads give at some queries."""

    queries: Named = None

    def on(self, mix: Tensor, layer: str) -> Tensor:
        raise NotImplementedError  # rows are edited where they stand

    def on_rows(self, mix: Tensor, rows: Tensor, placed: PlacedEdit) -> Tensor | None:
        """(b, h, r, e) of the heads and rows that are meant, or None to leave them; `mix` holds what they are."""
        raise NotImplementedError


@dataclass(eq=False)
class Patch(RowEdit):
    """What the heads gave in another run."""

    reference: HeadReference | None = None
    source_queries: Named = None

    def on_rows(self, mix: Tensor, rows: Tensor, placed: PlacedEdit) -> Tensor | None:
        assert self.reference is not None
        other = self.reference.mix(placed.layer)
        length = other.shape[2]
        named = self.queries if self.source_queries is None else self.source_queries
        source = places_of(named, torch.arange(length), length)
        if len(source) != len(rows):
            raise WatchError(
                f"{self.said} names {len(rows)} queries of {placed.layer} and {len(source)} of its source, which has "
                f"{length}; name as many, with queries= and source_queries="
            )
        at = placed.heads.to(other.device)
        if other.shape[1] <= int(at.max()):
            raise WatchError(f"the source of {self.said} has {other.shape[1]} heads at {placed.layer}, too few")
        found = other[:, at][:, :, source.to(other.device)]
        must_fit(found, tuple(mix.shape), self.said, placed.layer)
        return found


@dataclass(eq=False)
class MixHook(RowEdit):
    """A function of the user's own: it sees what the heads gave, and may return something else."""

    function: HookFunction = lambda mix: None

    def on_rows(self, mix: Tensor, rows: Tensor, placed: PlacedEdit) -> Tensor | None:
        found = self.function(mix)
        return None if found is None else must_be_alike(found, mix, self.said)


def must_be_alike(found: object, x: Tensor, said: str) -> Tensor:
    """Raise where a function returned something that cannot stand in the place of what it saw."""
    if not isinstance(found, Tensor) or found.shape != x.shape:
        what = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise WatchError(
            f"the function of {said} returned {what}, but it was given {tuple(x.shape)}; return a tensor of that "
            "shape, or None to leave it"
        )
    return found


def edit_rows_of_mix(mix: Tensor, placed: PlacedEdit) -> Tensor:
    """(b, h, q, e) with the heads and rows that are meant replaced; the very same tensor where nothing is."""
    assert isinstance(placed.edit, RowEdit)
    heads, rows = placed.heads.to(mix.device)[:, None], placed.queries.to(mix.device)
    found = placed.edit.on_rows(mix[:, heads, rows], rows, placed)
    if found is None:
        return mix
    mix = mix.clone()
    mix[:, heads, rows] = found.to(mix)
    return mix

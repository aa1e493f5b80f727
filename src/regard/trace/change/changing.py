"""Who changes what a model computes: a listener that knows the edits and where they fall."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from regard.errors import WatchError
from regard.trace.change.aim import LISTED, Named, Part, heads_of, places_of, shown
from regard.trace.change.edited import Editing, edited
from regard.trace.change.edits import Edit, MapEdit, Placed, Replace
from regard.trace.change.elsewhere import Counting, name_of
from regard.trace.change.standing import standing
from regard.trace.doors.call_site import CallSite, tree_of
from regard.trace.doors.listener import ModelListener
from regard.trace.doors.scope import Call


@dataclass(eq=False)
class Met:
    """Where an edit has fallen so far."""

    layers: dict[Part | None, set[str]] = field(default_factory=dict)
    queries: int = 0  # how many positions the longest call had
    keys: int = 0
    cells: bool = False  # whether anything was ever changed


class Changing(ModelListener):
    """A listener for one edited model."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(tree_of(model))
        self.edits: list[Edit] = []
        self.met: dict[int, Met] = {}
        self.counting = Counting(self.tree)
        self.resting = False
        self.heads: dict[str, int] = {}  # every layer that was heard, in order
        self.refused: dict[str, str] = {}

    # A listener

    def refuse(self, place: CallSite | None, why: str) -> None:
        path = self.path(place)
        self.refused.setdefault(path, why)

    def retract(self, place: CallSite) -> None:
        """What was edited a moment ago was only part of a map, and the model has gone on with it: an error."""
        path = self.path(place)
        why = "its call has several softmaxes, so no single map can be told"
        self.refused.setdefault(path, why)
        self.heads.pop(name_of(place, path, self.counting.counts.get(path, 1)), None)
        if not self.resting and any(edit.at is None or self.fits(edit, path) for edit in self.edits):
            raise WatchError(f"{path or 'the model'} cannot be edited: {why}")

    def fits(self, edit: Edit, path: str) -> bool:
        count = self.counting.counts.get(path, 1)
        return any(part.fits(path, count) for part in edit.at or ())

    def release(self) -> None:
        """Let go of the model and of every frame."""
        self.tree, self.edits, self.met = {}, [], {}
        self.counting = Counting({})

    def change(self, call: Call) -> Tensor | None:
        path = self.path(call.place)
        count = self.counting(call.place, path)
        layer = name_of(call.place, path, count)
        if call.to_bhqe is None or call.raw_mix is None or call.raw_mix.is_nested:
            self.refused.setdefault(path, "what its heads give does not stand as (b, h, q, e)")
            return None
        self.heads.setdefault(layer, call.to_bhqe(call.raw_mix.detach()).shape[1])
        if self.resting:
            return None
        mine = [self.placed(edit, call, layer) for edit in self.edits if self.aims(edit, path, count)]
        if not mine:
            return None
        Editing.of(call).edits += mine
        call.edits += [placed.edit.said for placed in mine]
        return edited(call)

    def aims(self, edit: Edit, path: str, count: int) -> bool:
        """Whether an edit is for this layer; a name that fits two layers is refused."""
        met = self.met.setdefault(id(edit), Met())
        if edit.at is None:
            met.layers.setdefault(None, set()).add(path)
            return True
        fitting = [part for part in edit.at if part.fits(path, count)]
        for part in fitting:
            known = met.layers.setdefault(part, set())
            known.add(path)
            if len(known) > 1:
                both = " and ".join(sorted(known))
                raise WatchError(f"{part.said!r} fits {both}; give more of the path, or each of them in a list")
        return bool(fitting)

    def placed(self, edit: Edit, call: Call, layer: str) -> Placed:
        """Where an edit falls in this call."""
        editing = Editing.of(call)
        count = editing.own.shape[1]
        heads = heads_of(edit.heads, count, layer)
        met = self.met[id(edit)]
        if call.doubts and (call.door == "fast path" or isinstance(edit, MapEdit)):
            raise WatchError(
                f"{layer} cannot be edited by {edit.said}, because its map is unverified: {call.doubts[0]}"
            )
        if not isinstance(edit, MapEdit):
            met.cells = True
            return Placed(edit, layer, heads, torch.arange(editing.own.shape[2]), torch.arange(0))
        (q, k), at = call.lengths, standing(call)
        if isinstance(edit, Replace):
            must_replace(edit, heads, (editing.own.shape[0], count, q, k), layer)
        queries = places_of(edit.queries, torch.arange(at.first, at.first + q), at.queries)
        found = Placed(edit, layer, heads, queries, places_of(edit.keys, at.keys, at.length))
        met.queries, met.keys = max(met.queries, at.queries), max(met.keys, at.length)
        met.cells = met.cells or found.changes
        return found

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """The model as it is, on the same path: an edit of nothing."""
        before, self.resting = self.resting, True
        try:
            yield
        finally:
            self.resting = before

    # What came of it

    def finish(self) -> None:
        """The model ran: say which edit fell nowhere."""
        for edit in self.edits:
            met = self.met.get(id(edit), Met())
            for part in edit.at or (None,):
                if not met.layers.get(part):
                    raise WatchError(self.missed(edit, part))
            if isinstance(edit, MapEdit):
                beyond(edit, edit.queries, "query", met.queries)
                beyond(edit, edit.keys, "key", met.keys)
            if not met.cells:
                raise WatchError(
                    f"{edit.said} names no cell: the longest call had {met.queries} queries and {met.keys} keys"
                )

    def missed(self, edit: Edit, part: Part | None) -> str:
        why = [
            f"{path or 'the model'}: {why}" for path, why in self.refused.items() if part is None or part.fits(path, 1)
        ]
        if why:
            return f"{edit.said} changed nothing, because {'; '.join(why[:LISTED])}"
        if not self.heads:
            return (
                f"{edit.said} changed nothing: the model was not called in this thread inside the block, it ran under "
                "torch.func or as an exported program, or it has no attention"
            )
        known = list(self.heads)
        more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
        return f"{edit.said} met no attention; the model has it at: {', '.join(known[:LISTED])}{more}"

    def notes(self) -> list[str]:
        """What could not be edited, one sentence each."""
        return [f"{path or 'the model'} was not edited: {why}" for path, why in self.refused.items()]


def beyond(edit: Edit, named: Named, what: str, length: int) -> None:
    if isinstance(named, tuple):
        wrong = [place for place in named if not -length <= place < length]
        if wrong:
            raise WatchError(
                f"{edit.said} names {what} {shown((wrong[0],))}, but the longest call had {length}; "
                f"count from 0 to {length - 1}"
            )


def must_replace(edit: Replace, heads: Tensor, sizes: tuple[int, int, int, int], layer: str) -> None:
    """Raise where another map does not fit this call."""
    if edit.by is None:
        return
    b, h, q, k = edit.by.shape
    if (q, k) != sizes[2:] or b not in (1, sizes[0]) or h not in (1, sizes[1]):
        raise WatchError(
            f"{edit.said} brings a map of (b, h, q, k) = {edit.by.shape}, but {layer} was called with {sizes}; "
            "give one of the same sizes, or of one batch entry or one head for all"
        )

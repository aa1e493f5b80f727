"""The listener of `edit`: knows the edits, finds where each falls, and computes the rows that change again."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import WatchError
from regard.trace.change.aim import LISTED, LayerName, Named, format_positions, heads_of, places_of
from regard.trace.change.call_change import CallChange, edit_mix
from regard.trace.change.edits import Edit, MapEdit, Mute, PlacedEdit, Replace
from regard.trace.change.listener import NOT_CALLED, CallName, ChangeListener, list_some
from regard.trace.change.module_edits import ModuleEdits
from regard.trace.change.positions import find_positions
from regard.trace.change.row_edits import RowEdit
from regard.trace.doors.axes import UNKNOWN
from regard.trace.doors.call_site import place_of
from regard.trace.doors.scope import Call, current_scope
from regard.trace.record.findings import LayerState


@dataclass(eq=False)
class EditReach:
    """Where an edit has fallen so far."""

    layers: dict[LayerName | None, set[str]] = field(default_factory=dict)
    queries: int = 0  # how many positions the longest call had
    keys: int = 0
    cells: bool = False  # whether anything was ever changed


class EditListener(ChangeListener):
    """A listener for one edited model: it computes again what edits change about a call."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.edits: list[Edit] = []
        self.reach: dict[int, EditReach] = {}
        self.outputs = ModuleEdits()
        self.resting = False
        self.headless: dict[str, str] = {}  # layers whose heads are unknown, and why
        self.heads: dict[CallName, int] = {}  # every layer that was heard, in order, and how many it has

    def retract_call(self, name: CallName, why: str) -> None:
        """What was edited a moment ago was only part of a map, and the model has gone on with it: an error."""
        self.heads.pop(name, None)
        if not self.resting and any(edit.at is None or name.fits(edit.at) for edit in self.edits):
            raise WatchError(f"{name.path or 'the model'} cannot be edited: {why}")

    def release(self) -> None:
        super().release()
        self.edits, self.reach, self.outputs = [], {}, ModuleEdits()

    def change_call(self, call: Call, name: CallName) -> Tensor | None:
        if call.to_bhqe is None or call.raw_mix is None or call.raw_mix.is_nested:
            self.refused.setdefault(name.path, "what its heads give does not stand as (b, h, q, e)")
            return None
        if LayerState.AXES_UNKNOWN in call.states:
            self.headless.setdefault(name.layer, f"its heads are unknown, because {UNKNOWN}")
        else:
            self.heads.setdefault(name, call.to_bhqe(call.raw_mix.detach()).shape[1])
        if self.resting:
            return None
        mine = [self.place(edit, call, name.layer) for edit in self.edits if self.aims(edit, name)]
        if not mine:
            return None
        CallChange.of(call).edits += mine
        call.edits += [placed.edit.said for placed in mine]
        return edit_mix(call)

    def change_output(self, path: str, output: Any) -> Any:
        """What a tapped module gave, after its edits; whoever watches is told of them."""
        mine = [] if self.resting else [edit.said for edit in self.outputs.edits if edit.path == path]
        if not mine:
            return output
        scope, place = current_scope(), place_of(sys._getframe(1))
        for listener in () if scope is None or place is None else scope.owners(place.module):
            note = getattr(listener, "note_edits", None)
            if note is not None:
                note(place, mine)
        return self.outputs.change(path, output)

    def aims(self, edit: Edit, name: CallName) -> bool:
        """Whether an edit is for this layer; a name that fits two layers is refused."""
        reach = self.reach.setdefault(id(edit), EditReach())
        if edit.at is None:
            reach.layers.setdefault(None, set()).add(name.path)
            return True
        fitting = [part for part in edit.at if name.fits((part,))]
        for part in fitting:
            known = reach.layers.setdefault(part, set())
            known.add(name.path)
            if len(known) > 1:
                both = " and ".join(sorted(known))
                raise WatchError(f"{part.said!r} fits {both}; give more of the path, or each of them in a list")
        return bool(fitting)

    def place(self, edit: Edit, call: Call, layer: str) -> PlacedEdit:
        """Where an edit falls in this call."""
        if LayerState.AXES_UNKNOWN in call.states:
            must_mean_all(edit, layer)
        change = CallChange.of(call)
        count = change.own.shape[1]
        heads = heads_of(edit.heads, count, layer)
        reach = self.reach[id(edit)]
        if call.doubts and (call.door == "fast path" or isinstance(edit, MapEdit)):
            raise WatchError(
                f"{layer} cannot be edited by {edit.said}, because its map is unverified: {call.doubts[0]}"
            )
        if not isinstance(edit, MapEdit | RowEdit):
            reach.cells = True
            return PlacedEdit(edit, layer, heads, torch.arange(change.own.shape[2]), torch.arange(0))
        (q, k), at = call.lengths, find_positions(call)
        if isinstance(edit, Replace):
            must_replace(edit, heads, (change.own.shape[0], count, q, k), layer)
        queries = places_of(edit.queries, torch.arange(at.first, at.first + q), at.queries)
        keys = places_of(edit.keys, at.keys, at.length) if isinstance(edit, MapEdit) else torch.arange(0)
        found = PlacedEdit(edit, layer, heads, queries, keys)
        reach.queries, reach.keys = max(reach.queries, at.queries), max(reach.keys, at.length)
        reach.cells = reach.cells or found.changes
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
            reach = self.reach.get(id(edit), EditReach())
            for part in edit.at or (None,):
                if not reach.layers.get(part):
                    raise WatchError(self.explain_miss(edit, part))
            if isinstance(edit, MapEdit | RowEdit):
                beyond(edit, edit.queries, "query", reach.queries)
            if isinstance(edit, MapEdit):
                beyond(edit, edit.keys, "key", reach.keys)
            if not reach.cells:
                raise WatchError(
                    f"{edit.said} names no cell: the longest call had {reach.queries} queries and {reach.keys} keys"
                )
        self.outputs.finish()

    def explain_miss(self, edit: Edit, part: LayerName | None) -> str:
        """Why an edit fell nowhere."""
        reasons = (self.missed | self.refused).items()
        why = [f"{path or 'the model'}: {why}" for path, why in reasons if part is None or part.fits(path, 1)]
        if why:
            return f"{edit.said} changed nothing, because {'; '.join(why[:LISTED])}"
        if not self.heads:
            return f"{edit.said} changed nothing: {NOT_CALLED}"
        return f"{edit.said} met no attention; the model has it at: {list_some([name.layer for name in self.heads])}"

    def notes(self) -> list[str]:
        """What could not be edited, one sentence each."""
        return [f"{path} was not edited: {why}" for path, why in self.reasons().items()]


def must_mean_all(edit: Edit, layer: str) -> None:
    """Raise where an edit means some heads or entries of a layer that does not show which they are."""
    replaced = isinstance(edit, Replace) and edit.by is not None and edit.by.shape[:2] != (1, 1)
    if edit.heads is not None or replaced or (isinstance(edit, Mute) and edit.how == "resample"):
        raise WatchError(f"{layer} cannot be edited by {edit.said}: {UNKNOWN}, or edit all heads alike")


def beyond(edit: Edit, named: Named, what: str, length: int) -> None:
    if isinstance(named, tuple):
        wrong = [place for place in named if not -length <= place < length]
        if wrong:
            raise WatchError(
                f"{edit.said} names {what} {format_positions((wrong[0],))}, but the longest call had {length}; "
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

"""Which axes of an attention call are batch, heads or windows: found out from the run, or said to be unknown.

Sizes decide where only one reading of the axes fits what the module was given. Where several fit, the numbers
themselves are recognised in what they were made from. Nothing is assumed but that four axes are (b, h, n, d) as long
as nothing speaks against it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product as combinations
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.axes.layout import PLAIN, Factor, Layout
from regard.trace.doors.axes_hint import AxesHint
from regard.trace.doors.call_site import CallSite
from regard.trace.doors.recognise import recognise
from regard.trace.doors.scope import Call, ListenerScope, paused
from regard.trace.doors.surroundings import Surroundings, batch_sizes, first_given, surroundings_of
from regard.trace.record.findings import LayerState

HEADS = (
    "num_heads", "num_attention_heads", "n_heads", "n_head", "heads", "num_head", "num_attn_heads", "nhead", "head_num",
)  # fmt: skip
UNKNOWN = (
    "which entries of its first axis are batch or heads is not known; say it with heads= and "
    'layout="batch-major" or "head-major"'
)


@dataclass(frozen=True)
class CallAxes:
    """`CallAxes` are the axes of one call: a layout that was found, or one that says no more than is sure."""

    layout: Layout = PLAIN
    known: bool = True
    refused: str = ""  # why nothing of the call can be shown

    def tell(self, call: Call) -> None:
        """Note at a call what is not known of its axes, or special about them."""
        if not self.known:
            call.doubts.append(UNKNOWN)
            call.states.append(LayerState.AXES_UNKNOWN)
        elif self.layout.windows > 1:
            call.mark(LayerState.WINDOWS)


NO_LEAD = CallAxes(Layout(()))  # one entry of the batch, one head


def heads_of(module: nn.Module) -> int | None:
    """How many heads a module says that it has."""
    own, shared = module.__dict__, type(module)
    for name in HEADS:
        heads = own.get(name)  # asking a module for what it lacks takes a while
        if heads is None and hasattr(shared, name):
            heads = getattr(module, name)
        if isinstance(heads, int) and heads > 0:
            return heads
    return None


def find_axes(
    scope: ListenerScope, owners: list[Any], place: CallSite, lead: tuple[int, ...], *xs: Tensor
) -> CallAxes | None:
    """The axes before the last two of a call, whose sizes are `lead`; `xs` are q, k or v with these axes.

    None where they are refused; the listeners have then been told why.

    What was found once for a module holds for its later calls of the same sizes.
    """
    if not lead:
        return NO_LEAD
    key = (id(place.module), place.method.f_code, lead)
    known: CallAxes | None = scope.axes.get(key)
    if known is None:
        hint = next((told for owner in owners if (told := owner.hint(place))), AxesHint())
        if not hint and is_usual(place, lead, {x.shape[-2] for x in xs}):
            known = CallAxes()
        else:
            with paused(scope), torch.no_grad():
                known = decide(scope, owners, place, lead, xs, hint)
        scope.axes[key] = known
    if not known.refused:
        return known
    for listener in owners:
        listener.refuse(place, known.refused)
    return None


def is_usual(place: CallSite, lead: tuple[int, ...], positions: set[int]) -> bool:
    """Whether four axes have as large a batch as what the method was given first, and as many heads as it says."""
    if len(lead) != 2 or lead[0] == lead[1]:
        return False
    given = first_given(place)
    if given is None or given.ndim < 2:
        return False
    batches = batch_sizes(given, positions) if given.ndim == 3 else {given.shape[0]}
    return batches == {lead[0]} and heads_of(place.module) in (None, lead[1])


def decide(
    scope: ListenerScope,
    owners: list[Any],
    place: CallSite,
    lead: tuple[int, ...],
    xs: tuple[Tensor, ...],
    hint: AxesHint,
) -> CallAxes:
    """The axes of a call that was not seen before."""
    around = list(surroundings_of(place, lambda module: any(owner.owns(module) for owner in owners)))
    positions = {x.shape[-2] for x in xs}
    batches: set[int] = next((sizes for one in around if (sizes := one.batches(positions))), set())
    heads = hint.heads or next((count for one in around[:2] if (count := heads_of(one.module))), None)
    readings = readings_of(lead, heads)
    own = torch_heads(place.module)
    if own is not None and len(lead) == 1:
        readings = [Layout(((("b", lead[0] // own), ("h", own)),))]
    elif len(lead) > 1:
        fitting = fit_sizes(readings, batches, heads, grouped_axes(lead, xs))
        if not fitting and heads is not None:  # four axes of positions need not begin with the batch
            outer = set[int]().union(*(one.batches(positions) for one in around))
            fitting = fit_sizes(readings, outer, heads, grouped_axes(lead, xs))
        readings = fitting
    found = readings if len(readings) == 1 else recognise_around(xs, readings, around)
    if len(found) != 1 and len(lead) == 1:
        found = fit_batch(around, positions, found or readings)
    told = [reading for reading in (found or readings or readings_of(lead, hint.heads)) if hint.allows(reading)]
    if hint and not told:
        return CallAxes(refused=contradict(hint, lead, found))
    if hint and len(found) != 1:
        said = [reading for reading in told if hint.orders(reading.factors)]
        found = said if len(said) == 1 else found
    if len(found) != 1 and len(lead) == 2 and not speaks_against(lead, batches, heads):
        found = [PLAIN]
    if len(found) == 1:
        scope.layouts[id(place.module), place.method.f_code] = found[0]
        return CallAxes(found[0])
    return again(scope, place, lead) or CallAxes(Layout(tuple((("b", size),) for size in lead)), known=False)


def torch_heads(module: nn.Module) -> int | None:
    """The heads of torch's own attention, as torch wrote it: (b · h, n, d), batch-major; None for other modules."""
    own = nn.MultiheadAttention
    return module.num_heads if isinstance(module, own) and type(module).forward is own.forward else None


def again(scope: ListenerScope, place: CallSite, lead: tuple[int, ...]) -> CallAxes | None:
    """What an earlier call of the module showed, with as many heads: only the batch may have another size."""
    known = scope.layouts.get((id(place.module), place.method.f_code))
    if known is None or len(known.axes) != 1 or len(lead) != 1 or known.windows > 1 or lead[0] % known.heads:
        return None
    sizes = {"b": lead[0] // known.heads, "h": known.heads}
    return CallAxes(Layout((tuple((role, sizes[role]) for role, _ in known.axes[0]),)))


def contradict(hint: AxesHint, lead: tuple[int, ...], found: list[Layout]) -> str:
    """Why a hint cannot be so."""
    if found and hint.heads is None:
        return f"{hint} was given, but its numbers stand otherwise in what they were made from; leave the hint out"
    shown = f", and its numbers show {found[0].heads} heads" if found else ""
    return f"{hint} was given, but its leading axes are {lead}{shown}; give a number of heads that fits"


# Readings


def readings_of(lead: tuple[int, ...], heads: int | None) -> list[Layout]:
    """Every way to read these axes that makes sense; `heads` is how many there should be, where that is known.

    Of ways that differ in axes of size 1 only, the first stands for all.
    """
    found: dict[object, Layout] = {}
    for reading in all_readings(lead, heads):
        found.setdefault(tuple(tuple(factor for factor in axis if factor[1] > 1) for axis in reading.axes), reading)
    return list(found.values())


def all_readings(lead: tuple[int, ...], heads: int | None) -> Iterator[Layout]:
    """The same, with ways that come to the same."""
    for first in merged_axis(lead[0], heads):
        if len(lead) == 1:
            yield Layout((first,))
        elif len(first) > 1:
            yield Layout((first, *((("w", size),) for size in lead[1:])))
    if len(lead) == 1:
        return
    for batch in (b for b in range(2, lead[0]) if lead[0] % b == 0 and len(lead) == 2):
        b, w = ("b", batch), ("w", lead[0] // batch)
        yield from (Layout((axis, (("h", lead[1]),))) for axis in ((b, w), (w, b)))
    for roles in combinations("bhw", repeat=len(lead)):
        if roles.count("b") <= 1 and "w" * len(lead) != "".join(roles):
            yield Layout(tuple(((role, size),) for role, size in zip(roles, lead)))


def merged_axis(size: int, heads: int | None) -> Iterator[tuple[Factor, ...]]:
    """How one axis may hold batch and heads, or batch, windows and heads."""
    for batch in (b for b in range(1, size + 1) if size % b == 0):
        rest = size // batch
        if rest == 1:
            yield (("b", batch),)
            continue
        yield (("b", batch), ("h", rest))
        if batch > 1:
            yield (("h", rest), ("b", batch))
        if heads and rest % heads == 0 and rest > heads:
            b, w, h = ("b", batch), ("w", rest // heads), ("h", heads)
            yield from ((b, w), (w, b)) if heads == 1 else ((b, w, h), (b, h, w), (h, b, w), (w, b, h))


def grouped_axes(lead: tuple[int, ...], xs: tuple[Tensor, ...]) -> set[int]:
    """CallAxes along which keys or values are one for all: those of heads that share them."""
    return {
        axis
        for x in xs
        if x.ndim == len(lead) + 2
        for axis, size in enumerate(lead)
        if size > 1 and (x.shape[axis] == 1 or x.stride(axis) == 0)
    }


def fit_sizes(readings: list[Layout], batches: set[int], heads: int | None, grouped: set[int]) -> list[Layout]:
    """The readings of several axes that fit the batch that the module was given, its heads, and shared keys."""
    usual = any(reading.is_plain and (not batches or reading.batch in batches) for reading in readings)

    def fits(reading: Layout) -> bool:
        roles = [axis[0][0] for axis in reading.axes]
        if heads is not None and reading.heads != heads:
            return False
        if batches and reading.batch not in batches:
            return False
        if usual and heads is None and reading.windows > 1 and len(roles) == 2:
            return False  # four axes are heads, unless their number or the batch says otherwise
        return all(roles[axis] == "h" for axis in grouped if axis)

    return [reading for reading in readings if fits(reading)]


def speaks_against(lead: tuple[int, ...], batches: set[int], heads: int | None) -> bool:
    """Whether four axes cannot be (b, h, n, d): their batch is not that of the module."""
    return bool(batches) and lead[0] not in batches


def fit_batch(around: list[Surroundings], positions: set[int], readings: list[Layout]) -> list[Layout]:
    """The readings of one axis that fit the batch of every module around.

    Several heads are told by sizes only where a module was given as many positions: what was cut may be windows.
    """
    told = [found for one in around if (found := one.batches(positions))]
    if not told:
        return readings
    cut = not any(one.has(positions) for one in around)
    fitting = [one for one in readings if one.windows == 1 and all(one.batch in found for found in told)]
    return [] if cut and any(one.heads > 1 for one in fitting) else fitting


def recognise_around(xs: tuple[Tensor, ...], readings: list[Layout], around: list[Surroundings]) -> list[Layout]:
    """The readings that the numbers agree with, in the module itself or in one further out."""
    cut = [reading for reading in readings if reading.heads > 1 or reading.windows > 1]
    whole = [x for x in xs if x.shape[:-2].numel() and x.ndim == len(readings[0].axes) + 2] if readings else []
    several: list[Layout] = []
    for one in around:
        found = recognise(whole, cut, one)
        if len(found) == 1:
            return found
        several = several or found
    return several

"""Windows are found on the whole that they were cut from, by their numbers: cutting copies them bit by bit.

What a module was given as windows is looked for in the streams that those around it were given. Where the module
itself cuts, q and v are looked for behind its linear layers. Rows that are found nowhere must all be alike:
they are padding. Positions that look alike in every entry of the batch cannot be told apart; then nothing is placed.
"""

from collections.abc import Callable, Iterator
from types import FrameType
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.map.placed import NOWHERE
from regard.trace.doors.recognise import LARGEST, SLACK, Witness, cut_channels, inner_modules, projection_of
from regard.trace.doors.scope import Call
from regard.trace.doors.surroundings import Surroundings, surroundings_of, tensors_in
from regard.trace.record.findings import LayerState
from regard.trace.record.placement import Placement

NEAR = 4  # neighbours that are compared on either side
MOST = 1 << 25  # numbers in one comparison


def find_placement(call: Call, outer: int, owns: Callable[[nn.Module], bool]) -> Placement | None:
    """Where the windows of a call stand on the whole; `outer` is the batch that the model around it was given."""
    b = call.batch
    if LayerState.WINDOWS not in call.states and not (0 < outer < b and b % outer == 0):
        return None
    q = call.lengths[0]
    if q < 2 or call.doubts or torch._C._current_graph_task_id() != -1:
        return None
    with torch.no_grad():
        around = list(surroundings_of(call.place, owns))
        sizes = [
            n for n in dict.fromkeys((outer, *(one.given[0].shape[0] for one in around if one.given))) if 0 < n < b
        ]
        for batch in (n for n in sizes if b % n == 0):
            found = place_given(call, around, batch, b // batch) or place_made(call, around, batch, b // batch)
            if found is not None:
                return found
    return None


def batch_given(step: FrameType) -> int:
    """The batch of the first tensor that the model was given; 0 where it was given none."""
    given = step.f_locals
    first = next(tensors_in([given.get("args"), given.get("kwargs")]), None)
    return 0 if first is None or not first.ndim else first.shape[0]


def place_given(call: Call, around: list[Surroundings], batch: int, windows: int) -> Placement | None:
    """The windows that a module was given, bit by bit those of a stream that one around it was given."""
    q, k = call.lengths
    own = [x for one in around for x in one.given if x.is_floating_point() and x.ndim in (3, 4)]
    cuts = [flat for x in own for flat in flatten(x) if flat.shape[:2] == (batch * windows, q)] if q == k else []
    for x, grid in (stream for one in around for stream in streams(one, batch)) if cuts else ():
        for cut in (one for one in cuts if one.shape[2] == x.shape[2] and q < x.shape[1] <= windows * q):
            order = torch.arange(batch * windows)
            for entries in (order.view(batch, windows), order.view(windows, batch).T):
                at = positions(cut[entries], x)
                if at is not None and tells_apart(at):
                    return Placement(entries, at, at, x.shape[1], grid)
    return None


def place_made(call: Call, around: list[Surroundings], batch: int, windows: int) -> Placement | None:
    """Windows that the module cut out of q, k and v: each head of q and of v is looked for in the channels."""
    queries = [call.q] if call.q is not None else named_queries(call)
    if not queries or call.v is None:
        return None
    entries = torch.arange(batch * windows).view(batch, windows)
    columns = place_heads(call.v, around, entries)
    rows = None
    if columns is not None:
        rows = next((at for x in queries if (at := place_heads(x, around, entries)) is not None), None)
    if columns is None or rows is None or rows.size != columns.size or not tells_apart(rows.at):
        return None
    if rows.size > rows.at.numel():
        return None
    return Placement(entries, rows.at, columns.at, rows.size, columns.grid)


def named_queries(call: Call) -> list[Tensor]:
    """What the code calls queries, as (b, h, q, d), where attention is written by hand."""
    mix, shape = call.raw_mix, call.to_bhqe
    if mix is None or shape is None:
        return []
    names = [name for name in call.place.here if name.lower().lstrip("_").removeprefix("b").startswith("q")]
    held = [x for name in names if isinstance(x := call.place.here[name], Tensor)]
    return [shape(x.detach()) for x in held if x.is_floating_point() and x.shape[:-1] == mix.shape[:-1]]


class Stream(NamedTuple):
    """What a call of a module was given, (b, n, m), and how its positions lay if it had two axes of them."""

    x: Tensor
    grid: tuple[int, int] | None


def streams(around: Surroundings, batch: int) -> Iterator[Stream]:
    """What a call of a module was given, as it is and behind each of its layer norms.

    What its code has names for may be rolled or padded already; what it was given stands as the model has it.
    """
    norms = [one for one in inner_modules(around.module) if isinstance(one, nn.LayerNorm | nn.RMSNorm)]
    for given in around.given:
        if given.ndim not in (3, 4) or given.shape[0] != batch or not given.is_floating_point():
            continue
        grids = (None,) if given.ndim == 3 else ((given.shape[1], given.shape[2]), (given.shape[2], given.shape[3]))
        for x, grid in zip(flatten(given), grids):
            yield Stream(x, grid)
            for norm in norms:
                if tuple(norm.normalized_shape) == tuple(x.shape[2:]):
                    yield Stream(normalise(norm, x), grid)


def normalise(norm: nn.LayerNorm | nn.RMSNorm, x: Tensor) -> Tensor:
    """What a norm makes of a stream, by torch's function, so that no hook fires."""
    if isinstance(norm, nn.LayerNorm):
        return F.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
    return F.rms_norm(x, norm.normalized_shape, norm.weight, norm.eps)


class HeadPlaces(NamedTuple):
    """Where a head stands: its positions (w, n), of how many, in which tensor of which grid."""

    at: Tensor
    size: int
    grid: tuple[int, int] | None


def place_heads(x: Tensor, around: list[Surroundings], entries: Tensor) -> HeadPlaces | None:
    """The positions of the first head of x, (b · w, h, n, d)."""
    own = x.detach()[entries.to(x.device)][:, :, 0]  # b w n d
    size = own.shape[-1]
    inner = (projection_of(module) for one in around for module in inner_modules(one.module))
    linears = [one for one in inner if one is not None]
    for stream, grid in (stream for one in around for stream in streams(one, len(entries))):
        if stream.shape[1] <= own.shape[2] or stream.dtype != own.dtype or stream.device != own.device:
            continue
        fitting = [one for one in linears if one.weight.shape[1] == stream.shape[2]]
        for witness in (Witness(stream, one) for one in (None, *fitting)):
            if witness.width % size or stream.shape[1] * witness.width > LARGEST:
                continue
            for part in (part for parts in cut_channels(witness.whole, size) for part in parts.unbind(2)):
                if stands_in(own[:, 0, own.shape[2] // 2], part) and (at := positions(own, part)) is not None:
                    return HeadPlaces(at, stream.shape[1], grid)
    return None


def stands_in(row: Tensor, x: Tensor) -> bool:
    """Whether one row, (b, d), is somewhere in x, (b, n, d)."""
    return bool(((x - row[:, None]).abs().amax((0, 2)) <= SLACK.get(row.dtype, 0.0) * float(row.abs().max())).any())


def positions(windows: Tensor, whole: Tensor) -> Tensor | None:
    """Where rows of windows, (b, w, n, d), stand in the whole, (b, m, d): (w, n), −1 for padding; None if unclear."""
    b, w, n, d = windows.shape
    if windows.numel() > MOST or whole.numel() > MOST or windows.device != whole.device or windows.dtype not in SLACK:
        return None
    own = windows.permute(1, 2, 0, 3).reshape(w * n, b * d).double()
    theirs = whole.transpose(0, 1).reshape(-1, b * d).double()
    if not bool(own.isfinite().all()) or not bool(theirs.isfinite().all()):
        return None
    slack = SLACK[windows.dtype] * max(float(own.abs().max()), 1e-30)
    line = torch.randn(b * d, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(own.device)
    order = (theirs @ line).argsort()
    near = torch.searchsorted((theirs @ line)[order], own @ line)
    best = torch.full((len(own),), NOWHERE, device=own.device)
    count = torch.zeros_like(best)
    for step in range(-NEAR, NEAR):
        at = near + step
        inside = (at >= 0) & (at < len(theirs))
        place = order[at.clamp(0, len(theirs) - 1)]
        fits = inside & ((theirs[place] - own).abs().amax(-1) <= slack)
        best, count = torch.where(fits, place, best), count + fits
    if bool((count > 1).any()) or not bool((count == 1).any()):
        return None
    padding = own[count == 0]
    if len(padding) and bool(((padding - padding[0]).abs() > slack).any()):
        return None
    return best.view(w, n).cpu()


def tells_apart(rows: Tensor) -> bool:
    """Whether each position is a query once at most."""
    here = rows[rows != NOWHERE]
    return len(here.unique()) == len(here)


def flatten(x: Tensor) -> Iterator[Tensor]:
    """(b, n, m): as it is, or a picture with channels last or first."""
    if x.ndim == 3:
        yield x
    else:
        yield x.flatten(1, -2)
        yield x.flatten(2).mT

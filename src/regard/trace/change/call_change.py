"""A call with its edits: the rows that change are computed again, all others stay what the kernel gave."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.axes.as_4d import add_leading_axes, broadcast_4d
from regard.attention.axes.select import pick
from regard.attention.map import AttentionMap
from regard.attention.map.blocks import BUDGET
from regard.attention.map.edited import EditedSource
from regard.attention.map.source import Source
from regard.attention.map.stored import Stored
from regard.attention.mask import Sizes
from regard.errors import WatchError
from regard.trace.change.call_edits import CallEdits
from regard.trace.change.edited_rows import Base, ScoreBase, base_of, blocked_cells, edit_rows, key_heads_of
from regard.trace.change.edits import Block, EditRows, MapEdit, MixEdit, PlacedEdit
from regard.trace.change.row_edits import RowEdit, edit_rows_of_mix
from regard.trace.doors.scope import Call

FUSED = 1 << 24  # cells of a mask that one call of torch's kernel gets at most


@dataclass(eq=False)
class CallChange:
    """What is being changed about one call, by however many editors, on top of a swap where there is one."""

    own: Tensor  # b h q e: what the model itself made
    used: Tensor | None  # b h q k: its weights after dropout, where they were seen
    source: Source | None  # its map, where the call knows it
    edits: list[PlacedEdit] = field(default_factory=list)
    swapped: AttentionMap | None = None  # the map of the attention that was swapped in

    @staticmethod
    def of(call: Call) -> "CallChange":
        """The one of this call, begun where there is none."""
        if not isinstance(call.editing, CallChange):
            assert call.raw_mix is not None
            assert call.to_bhqe is not None
            call.editing = CallChange(
                call.to_bhqe(call.raw_mix), call.used, None if call.map is None else source_4d(call)
            )
        return call.editing

    def map(self, whole: AttentionMap, row: int = 0, column: int = 0) -> AttentionMap:
        """The map with the edits in it, where there are any; the call's rows and keys begin at `row` and `column`."""
        edits, whole = self.of_map, self.swapped or whole
        if not edits:
            return whole
        part = CallEdits(edits, row, self.own.shape[2], column)
        return AttentionMap(EditedSource(whole.source, [part]), tokens=whole.tokens)

    @property
    def of_map(self) -> list[PlacedEdit]:
        return [placed for placed in self.edits if isinstance(placed.edit, MapEdit) and placed.changes]

    @property
    def of_mix(self) -> list[PlacedEdit]:
        return [placed for placed in self.edits if isinstance(placed.edit, MixEdit) and placed.changes]


def edit_mix(call: Call) -> Tensor | None:
    """The mix (b, h, q, e) under all edits of the call; None where they change nothing.

    The map is edited first, then what the heads give, each in the order that was asked for. `call.raw_mix` becomes the
    mix between the two: the edited map, times the values.
    """
    editing = CallChange.of(call)
    mix, of_map, of_mix = editing.own, editing.of_map, editing.of_mix
    if not of_map and not of_mix:
        return None
    if of_map:
        mix = recompute_mix(call, editing, of_map)
        call.raw_mix, call.to_bhqe = mix, as_it_is
        call.raw = call.used = None  # what the kernel got no longer decides the weights
        call.weights = None if call.q is not None else call.weights
        if call.dropout or editing.used is not None:
            call.doubts.append("what an edited call drops cannot be replayed")
    for placed in of_mix:
        assert isinstance(placed.edit, MixEdit)
        if isinstance(placed.edit, RowEdit):
            mix = edit_rows_of_mix(mix, placed)
            continue
        chosen = torch.zeros(mix.shape[1], dtype=torch.bool, device=mix.device)
        chosen[placed.heads] = True
        mix = torch.where(chosen[:, None, None], placed.edit.on(mix, placed.layer).to(mix), mix)
    return mix


def as_it_is(x: Tensor) -> Tensor:
    return x


def recompute_mix(call: Call, editing: CallChange, edits: list[PlacedEdit]) -> Tensor:
    """The mix, with the rows that edits of the map touch computed again."""
    found, v = editing.own.clone(), call.v
    assert v is not None
    device, count, width = found.device, found.shape[1], v.shape[2]
    batch = torch.arange(found.shape[0], device=device)[:, None]
    for heads, rows in spots(edits, count):
        base = base_of(call, editing.source, heads)
        values = pick(v, (slice(None), key_heads_of(heads, count, v.shape[1])))
        those, fused = heads.to(device), can_fuse(base, call, editing, edits)
        cells = found.shape[0] * len(heads) * width
        for some in rows.to(device).split(max(1, (FUSED if fused else BUDGET) // max(1, cells))):
            at = EditRows(batch, those[None], some, width)
            hidden = blocked_cells(edits, at) if fused else None
            if isinstance(base, ScoreBase) and hidden is not None:
                part = base.mix(some, hidden, values)
            else:
                weights = drop_weights(call, editing, edit_rows(base, at, edits, some), heads, some)
                part = weights @ values.to(weights.dtype)
            found[:, those[:, None], some] = part.to(found.dtype)
    return found


def can_fuse(base: Base, call: Call, editing: CallChange, edits: list[PlacedEdit]) -> bool:
    """Whether torch's kernel can compute these rows: they are only hidden from some keys."""
    plain = isinstance(base, ScoreBase) and base.fuses and not call.dropout and editing.used is None
    return plain and all(isinstance(placed.edit, Block) for placed in edits)


def drop_weights(call: Call, editing: CallChange, weights: Tensor, heads: Tensor, rows: Tensor) -> Tensor:
    """The weights after dropout: the same cells as in the call where that was seen, else drawn anew."""
    if editing.used is None or call.weights is None:
        return F.dropout(weights, call.dropout) if call.dropout else weights
    used, made = (pick(x, (slice(None), heads)).index_select(-2, rows) for x in (editing.used, call.weights))
    return weights * (used / made).nan_to_num(0.0, 0.0, 0.0).to(weights.dtype)


def spots(edits: list[PlacedEdit], count: int) -> Iterator[tuple[Tensor, Tensor]]:
    """(heads, rows) whose weights change: heads that share their rows go together."""
    rows: dict[int, set[int]] = {head: set() for head in range(count)}
    for placed in edits:
        for head in placed.heads.tolist():
            rows[head].update(placed.queries.tolist())
    together: dict[tuple[int, ...], list[int]] = {}
    for head, some in rows.items():
        if some:
            together.setdefault(tuple(sorted(some)), []).append(head)
    for those, heads in together.items():
        yield torch.tensor(heads), torch.tensor(those)


def source_4d(call: Call) -> Source:
    """The map that a call knows, with a batch axis and a head axis."""
    assert call.map is not None
    source = call.map.source
    if len(source.shape) == 4:
        return source
    computed, stored = source.computed, source.stored
    if computed is not None and call.q is not None and call.k is not None:
        sizes = Sizes((call.q.shape[0], call.q.shape[1]), source.sizes.q, source.sizes.k)
        bias = broadcast_4d(computed.bias, sizes) if isinstance(computed.bias, Tensor) else computed.bias
        sink = None if computed.sink is None else broadcast_4d(computed.sink, sizes)
        return computed.replace(q=call.q, k=call.k, sizes=sizes, lead=None, bias=bias, sink=sink)
    if stored is not None and len(source.shape) < 4:
        return Stored(add_leading_axes(stored.kept, 2))
    raise WatchError(f"a map of shape {source.shape} cannot be edited; give q, k and v as (b, h, n, d)")

"""Rows of weights before and after edits, with their graph, from a map or from what a door saw of a call."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.axes.as_4d import broadcast_4d
from regard.attention.axes.heads import pick_key_heads
from regard.attention.axes.select import pick
from regard.attention.axes.sizes import Sizes
from regard.attention.map import Computed
from regard.attention.map.source import Source, widen_dtype
from regard.trace.change.edits import Block, EditRows, MapEdit, PlacedEdit, safe_log, spread
from regard.trace.doors.scope import Call
from regard.trace.record.even import even_softmax

Logs = tuple[Tensor, bool]  # (…, r, k) and whether one more column stands for the sink
Seen = tuple[Tensor | None, Tensor | None]  # True where a row may look; what is added to its scores


class ScoreBase:
    """Rows whose weights are the softmax of q · k: everything that decides them, for some heads."""

    def __init__(
        self,
        q: Tensor,
        k: Tensor,
        seen: Callable[[Tensor], Seen],
        *,
        scale: float,
        softcap: float | None,
        sink: Tensor | None,
    ) -> None:
        self.q, self.k, self.seen, self.scale, self.softcap, self.sink = q, k, seen, scale, softcap, sink

    @staticmethod
    def of_call(call: Call, heads: Tensor) -> "ScoreBase":
        q, k = call.q, call.k
        assert q is not None
        assert k is not None
        chosen = (slice(None), heads)
        width, device = k.shape[-2], q.device
        sizes = Sizes((q.shape[0], q.shape[1]), q.shape[2], width)
        given = [pick(broadcast_4d(x, sizes), chosen)[..., :width] for x in (call.bias, call.mask) if x is not None]

        def see_rows(rows: Tensor) -> Seen:
            allowed, added = None, None
            if call.causal:
                allowed = rows[:, None] >= torch.arange(width, device=device)
            for x in given:
                x = x if x.shape[-2] == 1 else x.index_select(-2, rows)
                if x.dtype == torch.bool:
                    allowed = x if allowed is None else allowed & x
                else:
                    x = hiding(x.to(widen_dtype(q.dtype)), torch.finfo(x.dtype).min / 2)
                    added = x if added is None else added + x
            return allowed, added

        sink = None if call.sink is None else call.sink.to(device)[heads.to(device)][:, None, None]
        keys = pick(k, (slice(None), key_heads_of(heads, q.shape[1], k.shape[1])))
        return ScoreBase(pick(q, chosen), keys, see_rows, scale=call.scale, softcap=call.softcap, sink=sink)

    @staticmethod
    def of_map(source: Computed) -> "ScoreBase":
        """Of a map whose heads have a key head each, as they have after `pick`."""

        def see_rows(rows: Tensor) -> Seen:
            return source.allowed(rows), None if source.bias is None else source.bias_at(rows, slice(None))

        q, k, heads = source.q, source.k, source.q.shape[-3] if source.q.ndim > 2 else 1
        if k.ndim > 2 and k.shape[-3] not in (1, heads):
            k = k.repeat_interleave(heads // k.shape[-3], -3)
        return ScoreBase(q, k, see_rows, scale=source.scale, softcap=source.softcap, sink=source.sink)

    def logs(self, rows: Tensor, hidden: Tensor | None) -> Logs:
        """log weights of these rows, where some more cells are hidden."""
        dtype = widen_dtype(self.q.dtype)
        scores = (self.q.index_select(-2, rows).to(dtype) * self.scale) @ self.k.to(dtype).mT
        if self.softcap is not None:
            scores = self.softcap * torch.tanh(scores / self.softcap)
        allowed, added = self.seen(rows)
        scores = scores if added is None else scores + added
        scores = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
        return normalise(scores if hidden is None else scores.masked_fill(hidden, -torch.inf), self.sink)

    @property
    def fuses(self) -> bool:
        """Whether torch's kernel computes the same."""
        return self.sink is None and self.softcap is None and self.q.ndim == 4

    def mix(self, rows: Tensor, hidden: Tensor, v: Tensor) -> Tensor:
        """What these rows gather when some more cells are hidden, by torch's kernel; a row that sees nothing is 0."""
        allowed, added = self.seen(rows)
        mask = ~hidden if allowed is None else allowed & ~hidden
        if added is not None:
            mask = added.to(self.q.dtype).masked_fill(~mask, -torch.inf)
        q, k, v = self.q.index_select(-2, rows), self.k.to(self.q.dtype), v.to(self.q.dtype)
        return F.scaled_dot_product_attention(q, k, v, mask, scale=self.scale)


class WeightBase:
    """Rows whose weights somebody else makes: stored ones, and maps that are no softmax of q · k."""

    def __init__(self, source: Source | Tensor) -> None:
        self.source = source

    def logs(self, rows: Tensor, hidden: Tensor | None) -> Logs:
        source = self.source
        if isinstance(source, Tensor):
            seen = source.index_select(-2, rows.to(source.device))
            return safe_log(seen.to(widen_dtype(seen.dtype))), False
        computed = source.computed
        if computed is None:
            return safe_log(source.weights(rows)), False
        allowed = computed.allowed(rows)
        if hidden is not None:
            allowed = ~hidden if allowed is None else allowed & ~hidden
        return safe_log(computed.normalise(computed.scores(rows), allowed)), False

    @property
    def hides(self) -> bool:
        """Whether what is blocked can be hidden before weights are made; otherwise they are rescaled."""
        computed = None if isinstance(self.source, Tensor) else self.source.computed
        return computed is not None and computed.weigh is not even_softmax


Base = ScoreBase | WeightBase


def base_of(call: Call, source: Source | None, heads: Tensor) -> Base:
    """What the rows of some heads of a call come from; `source` is its map, where it knows one."""
    chosen = (slice(None), heads)
    if source is not None:
        return base_of_map(source.pick(chosen))
    if call.q is not None and call.k is not None:
        return ScoreBase.of_call(call, heads)
    seen = call.weights if call.alive is None else call.alive
    assert seen is not None
    return WeightBase(pick(seen, chosen))


def base_of_map(source: Source) -> Base:
    computed = source.computed
    is_scored = computed is not None and computed.is_softmax and computed.is_dot
    return ScoreBase.of_map(computed) if computed is not None and is_scored else WeightBase(source)


def edit_rows(base: Base, at: EditRows, edits: Sequence[PlacedEdit], rows: Tensor) -> Tensor:
    """The edited weights of `rows`; `at` says of which batch entries, heads and queries of a call they are."""
    left = [placed for placed in edits if isinstance(placed.edit, MapEdit) and placed.changes]
    first = 0
    if isinstance(base, ScoreBase) or base.hides:
        first = next((i for i, placed in enumerate(left) if not isinstance(placed.edit, Block)), len(left))
    hidden = blocked_cells(left[:first], at)
    at.logs, at.sink = base.logs(rows, hidden)
    at.whole = isinstance(base, ScoreBase)
    for placed in left[first:]:
        cells = placed.columns(at.logs.shape[-1], at.column).to(at.logs.device)
        other, meant = placed.edit.on(at, cells), placed.concerns(at)  # type: ignore[attr-defined]
        at.logs = other if bool(meant.all()) else torch.where(meant[..., None].to(other.device), other, at.logs)
        at.whole = at.whole and isinstance(placed.edit, Block)
    return at.weights()


def blocked_cells(edits: Sequence[PlacedEdit], at: EditRows) -> Tensor | None:
    """The cells that these blocks hide, (…, r, k); with fewer axes where all rows and heads are alike."""
    hidden = None
    for placed in edits:
        meant, cells = placed.concerns(at), placed.columns(at.width, at.column).to(at.h.device)
        some = cells.expand(1, -1) if bool(meant.all()) else meant[..., None] & cells
        hidden = some if hidden is None else hidden | some
    return hidden


def hiding(added: Tensor, lowest: float) -> Tensor:
    """What is added to scores, −inf where it is a large negative number that means so.

    A row in which everything is hidden that way looks everywhere alike: it stays as plain arithmetic makes it.
    """
    hidden = added <= lowest
    return added.masked_fill(hidden & ~hidden.all(-1, keepdim=True), -torch.inf)


def normalise(scores: Tensor, sink: Tensor | None) -> Logs:
    """log softmax of each row; one that sees nothing is −inf everywhere."""
    if sink is not None:
        blind = (scores == -torch.inf).all(-1, keepdim=True)
        column = sink.to(scores).expand(*scores.shape[:-1], 1).masked_fill(blind, -torch.inf)
        scores = torch.cat([scores, column], -1)
    return spread(scores, scores.new_zeros(())), sink is not None


def key_heads_of(heads: Tensor, count: int, groups: int) -> Tensor:
    """Which key heads these query heads use."""
    found = pick_key_heads(heads, count, groups)
    assert isinstance(found, Tensor)
    return found

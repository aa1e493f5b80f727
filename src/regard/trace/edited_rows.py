"""Rows of weights after edits, from a map or from what a door saw of a call; each as logarithms, with its graph."""

import torch
from torch import Tensor

from regard.attention.map import Asked
from regard.attention.map.asked import share, wide
from regard.attention.map.blocks import Source
from regard.attention.mask.lead import pick
from regard.attention.weigh.softmax import softmax
from regard.trace.doors.scene import Call
from regard.trace.edits import Block, MapEdit, Placed, Rows, safe_log, spread
from regard.trace.even import even_softmax

Logs = tuple[Tensor, bool]  # (…, r, k) and whether one more column stands for the sink


def edited_rows(call: Call, source: Source | None, heads: Tensor, rows: Tensor, edits: list[Placed]) -> Tensor:
    """The edited weights of some rows of some heads of a call, (b, heads, rows, k); `source` is its map, if known."""
    at = Rows(torch.empty(0), torch.arange(1)[:, None], heads[None], rows)
    if source is not None:
        at.b = torch.arange(source.shape[0])[:, None]
        return of_map(source.pick((slice(None), heads)), at, edits, rows)
    at.logs, at.sink = logs_of_call(call, heads, rows)
    at.b = torch.arange(at.logs.shape[0])[:, None]
    return applied(at, edits).weights()


def of_map(source: Source, at: Rows, edits: list[Placed], rows: Tensor) -> Tensor:
    """The edited weights of `rows` of a map; `at` says of which batch entries, heads and queries of a call they are."""
    first = [placed for placed in edits if isinstance(placed.edit, MapEdit)]
    hidden = None
    if isinstance(source, Asked) and source.weigh not in (softmax, even_softmax):
        # Other normalisers than softmax do not rescale: what is blocked must be hidden before they run.
        while first and isinstance(first[0].edit, Block):
            placed = first.pop(0)
            cells = placed.meant(at)[..., None] & placed.columns(source.shape[-1], at.column).to(at.h.device)
            hidden = cells if hidden is None else hidden | cells
    at.logs, at.sink = logs_of_map(source, rows, hidden)
    return applied(at, first).weights()


def applied(rows: Rows, edits: list[Placed]) -> Rows:
    """Every edit of the map, in order, on these rows."""
    device = rows.logs.device
    for placed in edits:
        if isinstance(placed.edit, MapEdit) and placed.changes:
            other = placed.edit.on(rows, placed.columns(rows.logs.shape[-1], rows.column).to(device))
            rows.logs = torch.where(placed.meant(rows)[..., None].to(device), other, rows.logs)
    return rows


def logs_of_map(source: Source, rows: Tensor, hidden: Tensor | None = None) -> Logs:
    """Rows of a map, with more cells hidden than its mask hides."""
    rows = rows.to(source.device)
    if not isinstance(source, Asked):
        return safe_log(source.weights(rows)), False
    allowed = source.allowed(rows)
    if source.weigh is softmax:
        scores = source.scores(rows)
        return normalised(scores if allowed is None else scores.masked_fill(~allowed, -torch.inf), source.sink)
    if hidden is not None:
        hidden = hidden.to(source.device)
        allowed = ~hidden if allowed is None else allowed & ~hidden
    return safe_log(source.normalise(source.scores(rows), allowed)), False


def logs_of_call(call: Call, heads: Tensor, rows: Tensor) -> Logs:
    """Rows of some heads of a call, from what decides them."""
    chosen = (slice(None), heads)
    if call.q is None or call.k is None:
        seen = call.weights if call.alive is None else call.alive
        assert seen is not None
        seen = pick(seen, chosen).index_select(-2, rows.to(seen.device))
        return safe_log(seen.to(wide(seen.dtype))), False
    q, k = call.q, call.k
    dtype, device = wide(q.dtype), q.device
    rows = rows.to(device)
    keys = pick(k, (slice(None), shared(heads, q.shape[1], k.shape[1]))).to(dtype)
    scores = (pick(q, chosen).index_select(-2, rows).to(dtype) * call.scale) @ keys.mT
    if call.softcap is not None:
        scores = call.softcap * torch.tanh(scores / call.softcap)
    for added in (call.bias, call.mask):
        if added is not None:
            scores = masked(scores, pick(four_axes(added), chosen)[..., : k.shape[-2]], rows)
    if call.causal:
        scores = scores.masked_fill(rows[:, None] < torch.arange(k.shape[-2], device=device), -torch.inf)
    return normalised(scores, None if call.sink is None else call.sink.to(device)[heads.to(device)][:, None, None])


def masked(scores: Tensor, added: Tensor, rows: Tensor) -> Tensor:
    """Scores under a mask, or with something added; what a large negative number hides is hidden.

    A row in which everything is hidden that way looks everywhere alike: it stays as plain arithmetic makes it.
    """
    added = added if added.shape[-2] == 1 else added.index_select(-2, rows)
    if added.dtype == torch.bool:
        return scores.masked_fill(~added, -torch.inf)
    hidden = added <= torch.finfo(added.dtype).min / 2
    hidden = hidden & ~hidden.all(-1, keepdim=True)
    return (scores + added.to(scores.dtype)).masked_fill(hidden, -torch.inf)


def normalised(scores: Tensor, sink: Tensor | None) -> Logs:
    """log softmax of each row; one that sees nothing is −inf everywhere."""
    if sink is not None:
        blind = (scores == -torch.inf).all(-1, keepdim=True)
        column = sink.to(scores).expand(*scores.shape[:-1], 1).masked_fill(blind, -torch.inf)
        scores = torch.cat([scores, column], -1)
    return spread(scores, scores.new_zeros(())), sink is not None


def four_axes(x: Tensor) -> Tensor:
    return x.reshape((1,) * (4 - x.ndim) + tuple(x.shape)) if x.ndim < 4 else x


def shared(heads: Tensor, count: int, groups: int) -> Tensor:
    """Which key heads these query heads use."""
    found = share(heads, count, groups)
    assert isinstance(found, Tensor)
    return found

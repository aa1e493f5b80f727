"""Single lines of a map: a query, a key, the strongest keys, and who sees or is seen at all."""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.attention.map.blocks import MapBlock
from regard.attention.map.statistics import find_largest, mask_scores, soften
from regard.errors import TraceError
from regard.views.explorer.answer.head_rows import HeadRows, scratch_for
from regard.views.explorer.answer.pack import Answer
from regard.views.explorer.answer.pieces import allowed_at, scores_at
from regard.views.explorer.answer.pyramid import TileCells, base_of


def answer_row(head: HeadRows, query: int) -> Answer:
    """All weights of one query, their scores where they are known, and where it may look."""
    check_place(query, head.q, "query", "queries")
    some = torch.tensor([query])
    with scratch_for(head.source) as scratch:
        weights = head.weights(slice(query, query + 1), slice(0, head.k), scratch).flatten().clone()
    scores = scores_at(head.source, some)
    arrays = {
        "weights": weights,
        "scores": None if scores is None else scores.flatten(),
        "allowed": allowed_at(head.source, some).flatten(),
    }
    return Answer({}, arrays)


def answer_column(head: HeadRows, base: Callable[[], TileCells], key: int) -> Answer:
    """What every query gives to one key. Once the sums of all rows are known this is one product with the key."""
    check_place(key, head.k, "key", "keys")
    where, whole = slice(key, key + 1), slice(0, head.q)
    if head.soft and not bool(head.known.all()):
        base()
    if not head.soft and not base_of(head.q, head.k):
        weights = base().max[:, where]
    else:
        weights = torch.zeros(head.q, 1, dtype=head.source.dtype)
        strips = [whole] if head.soft and bool(head.known.all()) else head.strips(whole)
        with scratch_for(head.source) as scratch:
            for some in strips:
                weights[some] = head.weights(some, where, scratch)
    return Answer({}, {"weights": weights.flatten(), "allowed": allowed_at(head.source, whole, where).flatten()})


def answer_top(head: HeadRows, first: int, queries: int, count: int) -> Answer:
    """The strongest keys of some queries, as `AttentionMap.top` gives them for all."""
    check_place(first, head.q, "query", "queries")
    stop = min(head.q, first + queries)
    weights = torch.zeros(queries, count, dtype=head.source.dtype)
    keys = torch.full((queries, count), -1)
    with scratch_for(head.source) as scratch:
        for rows in head.strips(slice(first, stop)):
            block = MapBlock((), head.source, rows, slice(*head.source.span(rows.start, rows.stop)), scratch)
            width = block.columns.stop - block.columns.start
            if width:
                best, which = strongest_keys(block, min(count, width), soft=head.soft)
                here = (slice(rows.start - first, rows.stop - first), slice(0, min(count, width)))
                weights[here], keys[here] = best.cpu(), which.cpu()
    return Answer({"first": first, "queries": queries, "count": count}, {"weights": weights, "keys": keys})


def strongest_keys(block: MapBlock, count: int, *, soft: bool) -> tuple[Tensor, Tensor]:
    """Weights and keys of each row, strongest first, ties to the lower key; −1 and 0 where a row sees no more.

    Where scores are known they decide, because many weights round to the same.
    """
    part = block.part
    allowed = None if soft else part.allowed(block.rows, block.columns)
    computed = part.computed
    if computed is not None:
        ranked = mask_scores(block)
        best, which = find_largest(ranked, count)
        if soft:
            shifted, highest, extra, blind = soften(block, ranked)
            total = (shifted.exp_().sum(-1, keepdim=True) + extra).masked_fill_(blind, 1.0)
            share = (best - highest).exp() / total
        else:
            share = computed.normalise(ranked, allowed).gather(-1, which)
    else:
        ranked = part.weights(block.rows, block.columns)
        best, which = find_largest(ranked if allowed is None else ranked.masked_fill(~allowed, -torch.inf), count)
        share = best
    hidden = best == -torch.inf
    return share.masked_fill(hidden, 0.0), (which + block.columns.start).masked_fill(hidden, -1)


def answer_hidden(head: HeadRows) -> Answer:
    """The queries that may look nowhere, and the keys that nobody may look at."""
    source = head.source
    blind = torch.zeros(head.q, dtype=torch.bool)
    seen = torch.zeros(head.k, dtype=torch.bool)
    with scratch_for(source) as scratch:
        for rows in head.strips(slice(0, head.q)):
            columns = slice(*source.span(rows.start, rows.stop))
            block = MapBlock((), source, rows, columns, scratch)
            hides = torch.zeros(head.k, dtype=torch.bool)
            sees = torch.full((rows.stop - rows.start,), block.is_sighted())
            for side in block.fringe:
                hides[side] = True
                allowed = allowed_at(source, rows, side)
                seen[side] |= allowed.any(0)
                sees |= allowed.any(1)
            seen[columns] |= ~hides[columns]  # what no mask could hide
            blind[rows] = ~sees
    return Answer({}, {"blind": blind, "unseen": ~seen})


def check_place(place: int, length: int, one: str, many: str) -> None:
    """Raise unless there is such a query or key."""
    if place >= length:
        raise TraceError(f"{one} {place} was asked for, but the map has {length} {many}; count from 0").with_code(
            "place.none", place=place, count=length
        )

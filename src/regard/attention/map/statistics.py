"""What can be said of a map without ever holding it: every function walks it block by block.

Sums are in float32 or better. The row maximum and the normaliser stay apart, so large scores cost no
precision; entropy is log Z − E[s − max], never p log p. Rows that see nothing give 0.
"""

from types import EllipsisType
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.map.blocks import MapBlock, walk_blocks
from regard.attention.map.computed import Computed
from regard.attention.map.grid import PoolGrid
from regard.attention.map.softmax_strips import has_strips
from regard.attention.map.source import Source
from regard.attention.map.strip_statistics import block_edges, even_edges, fold_all, number_all
from regard.errors import MapError, ShapeError

Place = tuple[int | slice | EllipsisType, ...]


class PooledMap(NamedTuple):
    """An overview: the largest and the mean weight of each cell's block (the mean over allowed cells)."""

    max: Float[Tensor, "*b rows columns"]
    mean: Float[Tensor, "*b rows columns"]


class SoftmaxRows(NamedTuple):
    """A block of rows on its way through softmax; the caller may write to all of it."""

    shifted: Float[Tensor, "*b r c"]  # score − row maximum; −FAR where hidden
    top: Float[Tensor, "*b r 1"]  # row maximum; 0 where the row sees nothing
    extra: Float[Tensor, "*b r 1"] | float  # exp(sink − row maximum), 0 without a sink
    blind: Bool[Tensor, "*b r 1"]  # the row sees nothing


NARROW = 16  # keys of a cell: cells of fewer are many small sums, which strips make one by one
FAR = 1e4  # e to the −10,000 is 0 in every precision, and 0 · −10,000 is 0 where 0 · −inf would be NaN


def mask_scores(block: MapBlock) -> Float[Tensor, "*b r c"]:
    part = computed_part(block)
    scores = part.scores_into(block.room("scores"), block.rows, block.columns)
    for side in block.fringe:
        allowed = part.allowed(block.rows, side)
        if allowed is not None:
            first = block.columns.start
            scores[..., side.start - first : side.stop - first].masked_fill_(~allowed, -torch.inf)
    return scores


def computed_part(block: MapBlock) -> Computed:
    """What the rows of a block are computed from."""
    computed = block.part.computed
    if computed is None:
        raise MapError(f"this map is {block.part.kind}, so its scores are not known")
    return computed


def soften(block: MapBlock, scores: Tensor | None = None) -> SoftmaxRows:
    part = computed_part(block)
    scores = mask_scores(block) if scores is None else scores
    top = scores.amax(-1, keepdim=True) if scores.shape[-1] else scores.new_full((*scores.shape[:-1], 1), -torch.inf)
    blind = top == -torch.inf
    sink = None if part.sink is None else part.sink.to(scores.dtype)
    if sink is not None:
        top = torch.maximum(top, sink)
    top = top.masked_fill(blind, 0.0)
    extra = 0.0 if sink is None else (sink - top).exp().masked_fill(blind, 0.0)
    return SoftmaxRows(scores.sub_(top).clamp_min_(-FAR), top, extra, blind)


def weights_of(block: MapBlock) -> Float[Tensor, "*b r c"]:
    """The weights of a block, for statistics: no gradient, few passes over the numbers. To be read only."""
    part = block.part.computed
    if part is None or not part.is_softmax:
        return block.part.weights(block.rows, block.columns)
    if part.sink is None and part.bias is None and block.is_sighted():  # a bias may blind
        return torch.softmax(mask_scores(block), -1, out=block.room("weights"))
    shifted, _, extra, blind = soften(block)
    powers = shifted.exp_()
    total = (powers.sum(-1, keepdim=True) + extra).masked_fill_(blind, torch.inf)
    return powers.div_(total)


def is_softmax(source: Source) -> bool:
    """Whether the weights are a softmax of scores that are known."""
    computed = source.computed
    return computed is not None and computed.is_softmax


def fill_per_query(source: Source, fill: float = 0.0) -> Float[Tensor, "*b q"]:
    return torch.full(source.shape[:-1], fill, dtype=source.dtype, device=source.device)


def at(block: MapBlock) -> Place:
    """Where a block's rows stand in a result with one number, or one line, per query."""
    return (*block.lead, ..., block.rows)


@torch.no_grad()
def entropy(source: Source) -> Float[Tensor, "*b q"]:
    if has_strips(source):
        return number_all(source).entropy
    out = fill_per_query(source)
    for block in walk_blocks(source):
        if not is_softmax(source):
            out[at(block)] = torch.special.entr(block.part.weights(block.rows, block.columns)).sum(-1)
            continue
        shifted, _, extra, blind = soften(block)
        powers = torch.exp(shifted, out=block.room("powers"))
        seen = powers.sum(-1)
        total = seen + (extra if isinstance(extra, float) else extra.squeeze(-1))
        total = total.masked_fill(blind.squeeze(-1), 1.0)
        out[at(block)] = (seen * total.log() - shifted.mul_(powers).sum(-1)) / total  # Σ w (log Z − s)
    return out


@torch.no_grad()
def log_normaliser(source: Source) -> Float[Tensor, "*b q"]:
    if not is_softmax(source):
        raise MapError("only a softmax computed from q and k has a log-normaliser; this map is " + source.describe())
    if has_strips(source):
        return number_all(source).log_normaliser
    out = fill_per_query(source, -torch.inf)
    for block in walk_blocks(source):
        shifted, top, extra, blind = soften(block)
        total = (shifted.exp_().sum(-1, keepdim=True) + extra).masked_fill_(blind, 0.0)
        out[at(block)] = (top + total.log()).squeeze(-1)
    return out


@torch.no_grad()
def distance(source: Source) -> Float[Tensor, "*b q"]:
    out = fill_per_query(source)
    offset = source.shape[-1] - source.shape[-2]
    for block in walk_blocks(source):
        weights = weights_of(block)
        dtype, device = weights.dtype, source.device
        q = torch.arange(block.rows.start + offset, block.rows.stop + offset, dtype=dtype, device=device)
        k = torch.arange(block.columns.start, block.columns.stop, dtype=dtype, device=device)
        far = torch.sub(q[:, None], k, out=block.scratch("far", block.shape[-2:], dtype, device)).abs_()
        total = weights.sum(-1)
        away = torch.mul(weights, far, out=block.room("away")).sum(-1)
        out[at(block)] = away / total.masked_fill(total == 0, 1.0)
    return out


@torch.no_grad()
def sink(source: Source, keys: int) -> Float[Tensor, "*b q"]:
    if keys < 1:
        raise ShapeError(f"the sink is {keys} keys wide; give 1 or more")
    out = fill_per_query(source)
    for block in walk_blocks(source):
        if block.columns.start < keys:
            weights = weights_of(block)
            out[at(block)] = weights[..., : keys - block.columns.start].sum(-1)
    return out


@torch.no_grad()
def received(source: Source) -> Float[Tensor, "*b k"]:
    shape = (*source.shape[:-2], source.shape[-1])
    got = torch.zeros(shape, dtype=source.dtype, device=source.device)
    seen = torch.zeros(shape, dtype=source.dtype, device=source.device)
    for block in walk_blocks(source):
        here: Place = (*block.lead, ..., block.columns)
        weights = weights_of(block)
        got[here] += weights.sum(-2)
        allowed = block.part.allowed(block.rows, block.columns)
        if allowed is None:
            seen[here] += weights.shape[-2]
        else:
            seen[here] += allowed.expand(*allowed.shape[:-2], *weights.shape[-2:]).sum(-2)
    return got / seen.clamp_min(1)


@torch.no_grad()
def top(source: Source, k: int) -> tuple[Float[Tensor, "*b q k"], Int[Tensor, "*b q k"]]:
    if k < 1:
        raise ShapeError(f"top({k}) asks for no key; give 1 or more")
    weights = torch.zeros((*source.shape[:-1], k), dtype=source.dtype, device=source.device)
    keys = torch.full(weights.shape, -1, device=source.device)
    for block in walk_blocks(source):
        width = block.columns.stop - block.columns.start
        if not width:
            continue
        if is_softmax(source):
            ranked = mask_scores(block)
            best, which = find_largest(ranked, min(k, width))
            shifted, top_score, extra, blind = soften(block, ranked)
            total = (shifted.exp_().sum(-1, keepdim=True) + extra).masked_fill_(blind, 1.0)
            share = (best - top_score).exp() / total
        elif block.part.computed is not None:
            ranked = mask_scores(block)
            allowed = block.part.allowed(block.rows, block.columns)
            best, which = find_largest(ranked, min(k, width))
            share = block.part.computed.normalise(ranked, allowed).gather(-1, which)
        else:
            allowed = block.part.allowed(block.rows, block.columns)
            ranked = block.part.weights(block.rows, block.columns)
            ranked = ranked if allowed is None else ranked.masked_fill(~allowed, -torch.inf)
            best, which = find_largest(ranked, min(k, width))
            share = best
        hidden = best == -torch.inf
        found = slice(0, best.shape[-1])
        weights[(*at(block), found)] = share.masked_fill(hidden, 0.0)
        keys[(*at(block), found)] = (which + block.columns.start).masked_fill(hidden, -1)
    return weights, keys


def find_largest(values: Float[Tensor, "*b r c"], k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row in falling order; ties go to the lower index, whatever the kernel does."""
    best, which = values.topk(min(k + 1, values.shape[-1]), -1)
    which, order = which.sort(-1)
    best, order = torch.sort(best.gather(-1, order), dim=-1, descending=True, stable=True)
    which = which.gather(-1, order)
    if best.shape[-1] > k:
        torn = (best[..., k - 1] == best[..., k]) & (best[..., k] > -torch.inf)  # a tie across the edge
        best, which = best[..., :k], which[..., :k]
        if torn.any():
            again, places = torch.sort(values[torn], dim=-1, descending=True, stable=True)
            best[torn], which[torn] = again[..., :k], places[..., :k]
    return best, which


@torch.no_grad()
def pool_blocks(source: Source, high: int, wide: int) -> Float[Tensor, "*b _rows _columns"] | None:
    """The largest weight of each block of high × wide, −inf where all is hidden; None where no strip is walked."""
    q, k = source.shape[-2:]
    if not has_strips(source) or wide < NARROW:
        return None
    found = fold_all(source, block_edges(q, high), block_edges(k, wide))
    return found.highest.masked_fill(found.seen == 0, -torch.inf)


@torch.no_grad()
def pool(source: Source, rows: int, columns: int) -> PooledMap:
    q, k = source.shape[-2:]
    if rows < 1 or columns < 1:
        raise ShapeError(f"pool({rows}, {columns}) asks for no cells; give at least 1 × 1")
    rows, columns = min(rows, max(q, 1)), min(columns, max(k, 1))
    if has_strips(source) and k >= NARROW * columns:
        found = fold_all(source, even_edges(q, rows), even_edges(k, columns))
        return PooledMap(found.highest, found.sums / found.seen.clamp_min(1))
    shape = (*source.shape[:-2], rows, columns)
    most = torch.zeros(shape, dtype=source.dtype, device=source.device)
    total, count = torch.zeros_like(most), torch.zeros_like(most)
    grid = PoolGrid(k, columns, source.device)
    for block in walk_blocks(source):
        weights = weights_of(block)
        to = torch.arange(block.rows.start, block.rows.stop, device=source.device) * rows // q
        here: Place = (*block.lead, ...)
        cells, highest, sums = grid.fold(weights, block.columns)
        most[here][..., cells].scatter_reduce_(-2, to[:, None].expand_as(highest), highest, "amax")
        total[here][..., cells].index_add_(-2, to, sums)
        count[here].index_add_(-2, to, grid.count_seen(block, weights.shape).to(total.dtype))
    return PooledMap(most, total / count.clamp_min(1))

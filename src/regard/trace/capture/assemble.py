"""From the captured calls of a layer to its map: rows one below the other, keys side by side, each as it saw them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from regard.attention.axes.as_4d import broadcast_4d
from regard.attention.map import AttentionMap, Computed, DropoutRecord
from regard.attention.map.edited import EditedSource
from regard.attention.map.source import MapPiece
from regard.attention.map.stitched import StitchedSource
from regard.attention.mask import Mask, Sizes
from regard.attention.mask.spans import SpanMask
from regard.attention.score.bias import Bias
from regard.attention.weigh.softmax import softmax
from regard.trace.capture.ancestry import BeamAncestry
from regard.trace.capture.layer_capture import CapturedCall, LayerCapture
from regard.trace.change.call_edits import CallEdits
from regard.trace.doors.compact_form import ShiftedBias
from regard.trace.record.compact import compact_any_mask, compact_mask, dense_of
from regard.trace.record.diagonals import Diagonals
from regard.trace.record.even import WholeRows, even_softmax
from regard.trace.record.findings import LayerState
from regard.trace.record.layer import Layer, ProofSample


def assemble_layer(held: LayerCapture, kept: BeamAncestry | None) -> Layer:
    """The layer that these blocks make."""
    blocks = held.blocks
    if kept is not None:
        blocks = [take_entries(block, kept) for block in blocks if not kept.over(block)]
    first = blocks[0]
    layer = Layer(held.name, held.kind, stored_map(first), door=held.door)
    if first.q is None or first.k is None:
        layer.v, layer.seen = first.v, first.seen
    elif len(blocks) == 1:
        layer.q, layer.k, layer.v = first.q, first.k, first.v
        one = even_rows(first)
        assert one.q is not None
        layer.weights = AttentionMap(compute_from(held, one, one.q, first.k, first.sizes, one.mask, first.bias))
        if first.map is not None:
            layer.weights.dropped = first.map.dropped
        elif held.dropout:
            layer.weights.dropped = DropoutRecord(held.dropout, None, replay_of(layer, first, held.dropout))
        layer.seen = first.seen
    else:
        stretches = sorted({block.stretch for block in blocks})
        parts = [join_calls(held, [b for b in blocks if b.stretch == stretch]) for stretch in stretches]
        layer.q = parts[0].q if len(parts) == 1 else torch.cat([part.q for part in parts], 2)
        layer.weights = AttentionMap(
            parts[0].source
            if len(parts) == 1
            else StitchedSource([MapPiece(part.source, part.column, part.v) for part in parts])
        )
        layer.k, layer.v = parts[-1].k, parts[-1].v
        if len(parts) > 1 and layer.v is not None:  # the last keys are known; earlier rows saw others
            gap = layer.weights.shape[-1] - parts[-1].column - layer.v.shape[2]
            layer.v = torch.nn.functional.pad(layer.v, (0, 0, parts[-1].column, gap))
        layer.seen = join_samples(blocks, layer.weights.shape[-1])
    layer.take_findings(held)
    if held.was_written("v"):
        layer.v = None
        layer.notes.append("v was written to after the call, so it is not shown")
    stored = layer.weights.source.stored
    if held.was_written("weights") and stored is not None:
        stored.expire()
    layer.gradient = first.gradient if len(blocks) == 1 else None
    layer.placement = held.placement if len(blocks) == 1 and kept is None else None
    if any(block.edits for block in blocks):
        layer.weights = AttentionMap(EditedSource(layer.weights.source, edits_of(blocks)))
    return layer


def edits_of(blocks: list[CapturedCall]) -> list[CallEdits]:
    """What editors changed, and where the rows and keys of each call stand in the whole."""
    stitches = len({block.stretch for block in blocks}) > 1
    column = 0 if stitches else min(block.column for block in blocks)
    found, first = [], 0
    for block in blocks:
        if block.edits:
            found.append(CallEdits(block.edits, first, block.sizes.q, block.column - column))
        first += block.sizes.q
    return found


def replay_of(layer: Layer, block: CapturedCall, dropout: float) -> Callable[[], Tensor] | None:
    """The weights after dropout, from the random state that the call found: the same numbers are drawn again."""
    rng, q, k = block.rng, block.q, block.k
    if rng is None or q is None or k is None:
        return None

    def replay() -> Tensor:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.set_rng_state(rng)
            if not block.seen.facts:
                return torch.nn.functional.dropout(layer.weights.dense(), dropout)
            source = layer.weights.source.computed
            assert source is not None
            mask = source.allowed()
            if source.bias is not None:
                bias = source.bias_at(slice(None), slice(None))
                mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
            wide = k.repeat_interleave(q.shape[1] // k.shape[1], 1)
            eye = torch.eye(k.shape[2], dtype=q.dtype).expand(*wide.shape[:2], -1, -1)
            return torch.nn.functional.scaled_dot_product_attention(
                q,
                wide,
                eye,
                mask,
                dropout,
                scale=float(source.scale),
            )

    return replay


def stored_map(block: CapturedCall) -> AttentionMap:
    """Weights that were kept as seen; for a computed map, a placeholder that `assemble_layer` replaces."""
    if block.weights is not None:
        return AttentionMap.stored(block.weights)
    if block.map is not None:
        return block.map
    return AttentionMap.stored(torch.zeros(1, 1, 1, 1))


def compute_from(
    held: LayerCapture, block: CapturedCall, q: Tensor, k: Tensor, sizes: Sizes, mask: Mask | None, bias: object
) -> Computed:
    template = None if block.map is None else block.map.source.computed
    score, weigh, sink = None, even_softmax if block.uniform else softmax, held.sink
    if template is not None:
        score, weigh, sink = template.score, template.weigh, template.sink
    if weigh is even_softmax and mask is not None:
        mask = WholeRows(mask)
    if sink is not None:
        sink = sink.reshape(1, -1, 1, 1) if sink.ndim == 1 else broadcast_4d(sink, sizes)
    if isinstance(bias, Tensor):
        bias = broadcast_4d(bias, sizes)
    assert bias is None or isinstance(bias, Tensor | Bias)
    source = Computed(
        q, k, sizes, score=score, scale=held.scale, mask=mask, bias=bias, softcap=held.softcap, sink=sink, weigh=weigh
    )
    if held.was_written("q", "k"):
        source.expire()  # what was written to is no longer what the model used
    return source


@dataclass(frozen=True, eq=False)
class JoinedCalls:
    """The calls of one stretch of keys as one map."""

    source: Computed
    q: Tensor
    k: Tensor
    v: Tensor | None
    column: int


def even_rows(block: CapturedCall) -> CapturedCall:
    """The same block with even rows said in q: a query of 0 sees all keys alike."""
    if not block.uniform or block.bias is not None or block.q is None:
        return block
    form = compact_any_mask(block.mask, block.sizes)
    if not isinstance(form, SpanMask):
        return block
    blind = form.stop <= form.start  # b|1 h|1 q|1
    q = block.q.masked_fill(blind[..., None].to(block.q.device), 0.0)
    mask = SpanMask(form.start.masked_fill(blind, 0), form.stop.masked_fill(blind, block.sizes.k))
    return replace(block, q=q, mask=mask, uniform=False)


def join_calls(held: LayerCapture, blocks: list[CapturedCall]) -> JoinedCalls:
    asking = [even_rows(block) for block in blocks]
    if len(blocks) > 1 and any(block.uniform for block in asking):  # even over the keys of their own step only
        asking = [replace(block, uniform=False) for block in asking]
        held.mark(LayerState.PADDING_ROWS_EMPTY)
    q = torch.cat([block.q for block in blocks if block.q is not None], 2)
    same = all(a.q is b.q for a, b in zip(asking, blocks))
    rows = q if same else torch.cat([block.q for block in asking if block.q is not None], 2)
    parts = [block.k for block in blocks if block.k is not None and block.k.shape[2]]
    k = torch.cat(parts, 2) if len(parts) > 1 else parts[0]
    values = [block.v for block in blocks if block.v is not None and block.v.shape[2]]
    v = None if not values else torch.cat(values, 2) if len(values) > 1 else values[0]
    column = min(block.column for block in blocks)
    sizes = Sizes((q.shape[0], q.shape[1]), q.shape[2], k.shape[2])
    mask = join_masks(asking, sizes, column)
    bias = join_biases(blocks, sizes, column)
    return JoinedCalls(compute_from(held, asking[0], rows, k, sizes, mask, bias), q, k, v, column)


def join_masks(blocks: list[CapturedCall], sizes: Sizes, column: int) -> Mask | None:
    """Each block's rows see what they saw, counted in keys of the whole."""
    starts, stops = [], []
    for block in blocks:
        form = compact_any_mask(block.mask, block.sizes)
        shift = block.column - column
        rows = block.sizes.q
        if form is None:
            start, stop = (
                torch.zeros(1, 1, rows, dtype=torch.int32),
                torch.full((1, 1, rows), block.sizes.k, dtype=torch.int32),
            )
        elif isinstance(form, SpanMask):
            start, stop = form.start.cpu(), form.stop.cpu()
        else:
            return compact_mask(join_dense_masks(blocks, sizes, column), sizes)
        seen = stop > start
        starts.append(torch.where(seen, start + shift, 0))
        stops.append(torch.where(seen, stop + shift, 0))
    lead = np.broadcast_shapes(*(x.shape[:2] for x in starts))  # torch's own loads SymPy: a second, the first time
    wide = [
        torch.cat([x.expand(*lead, block.sizes.q) for x, block in zip(side, blocks)], 2) for side in (starts, stops)
    ]
    return SpanMask(wide[0], wide[1])


def join_dense_masks(blocks: list[CapturedCall], sizes: Sizes, column: int) -> Tensor:
    return join_rows([dense_of(block.mask, block.sizes) for block in blocks], blocks, sizes, column)


def join_rows(parts: list[Tensor], blocks: list[CapturedCall], sizes: Sizes, column: int) -> Tensor:
    """The rows of all blocks below each other, each at its own keys."""
    placed = []
    for part, block in zip(parts, blocks):
        shift = block.column - column
        placed.append(torch.nn.functional.pad(part, (shift, sizes.k - shift - block.sizes.k)))
    lead = np.broadcast_shapes(*(x.shape[:2] for x in placed))
    return torch.cat([x.expand(*lead, -1, -1) for x in placed], 2)


def join_biases(blocks: list[CapturedCall], sizes: Sizes, column: int) -> Tensor | Bias | None:
    """What was added, for all rows. A bias by distance that agrees over all blocks stays one number per distance."""
    if all(block.bias is None for block in blocks):
        return None
    by_distance = join_distances(blocks, sizes, column)
    if by_distance is not None:
        return by_distance
    parts = [dense_bias(block).expand(-1, -1, block.sizes.q, block.sizes.k) for block in blocks]
    return join_rows(parts, blocks, sizes, column)


def dense_bias(block: CapturedCall) -> Tensor:
    if block.bias is None:
        return torch.zeros(1, 1, 1, 1)
    if isinstance(block.bias, Tensor):
        return broadcast_4d(block.bias, block.sizes).float()
    q = torch.arange(block.sizes.q) + block.sizes.offset
    return block.bias.block(q, torch.arange(block.sizes.k))[None].float()


def join_distances(blocks: list[CapturedCall], sizes: Sizes, column: int) -> Bias | None:
    """One number per distance between key and query, where every block says the same; None where they do not."""
    heads, known = sizes.heads, sizes.q + sizes.k - 1
    most = torch.full((heads, known), -torch.inf)
    least = torch.full((heads, known), torch.inf)
    last = blocks[-1].row + blocks[-1].sizes.q - 1 - column  # where the last query stands among the keys
    turn = sizes.k - 1 - last  # rows are aligned at the end of the map
    for block in blocks:
        if isinstance(block.bias, Diagonals | ShiftedBias) or block.sizes.q == 1 or block.bias is None:
            part = dense_bias(block)
            if part.shape[0] != 1:
                return None
            if block.bias is not None and isinstance(block.bias, Tensor) and block.sizes.q > 1:
                return None
            part = part[0].expand(heads, block.sizes.q, block.sizes.k)
            q = torch.arange(block.sizes.q) + block.row - column + turn
            k = torch.arange(block.sizes.k) + block.column - column
            at = (k - q[:, None] + sizes.k - 1).clamp(0, known - 1).reshape(1, -1).expand(heads, -1)
            seen = dense_of(block.mask, block.sizes).flatten(0, 1).any(0)
            hidden = ~seen.expand(heads, -1, -1).reshape(heads, -1)
            flat = part.reshape(heads, -1)
            most.scatter_reduce_(1, at, flat.masked_fill(hidden, -torch.inf), "amax")
            least.scatter_reduce_(1, at, flat.masked_fill(hidden, torch.inf), "amin")
        else:
            return None
    unknown = most == -torch.inf
    if bool(((most != least) & ~unknown).any()):
        return None
    return Diagonals(most.masked_fill(unknown, 0.0), keys=sizes.k, heads=heads)


def take_entries(block: CapturedCall, kept: BeamAncestry) -> CapturedCall:
    """A block of the kept sequences only; where one had already ended, its rows see nothing."""
    entries = kept.of(block)
    if entries is None:
        return block
    gone, at = entries < 0, entries.clamp_min(0)

    def take(x: Tensor | None) -> Tensor | None:
        return None if x is None else x.index_select(0, at.to(x.device))

    sizes = Sizes((len(at), block.sizes.lead[1]), block.sizes.q, block.sizes.k)
    dense = dense_of(block.mask, block.sizes)
    dense = (dense[at] if dense.shape[0] > 1 else dense) & ~gone[:, None, None, None]
    bias = block.bias if not isinstance(block.bias, Tensor) or block.bias.shape[0] == 1 else block.bias[at]
    seen = ProofSample(
        block.seen.rows,
        take(block.seen.mix),
        scale=block.seen.scale,
        causal=block.seen.causal,
        keys=block.seen.keys,
        dropout=block.seen.dropout,
    )
    if block.seen.weights is not None:
        seen.weights = take(block.seen.weights)
    if block.seen.allowed is not None:
        seen.allowed = block.seen.allowed if block.seen.allowed.shape[0] == 1 else take(block.seen.allowed)
    if bool(gone.any()):
        seen = ProofSample()
    return CapturedCall(
        take(block.q),
        take(block.k),
        take(block.v),
        sizes,
        compact_mask(dense, sizes),
        bias,
        block.uniform,
        block.row,
        block.column,
        block.first_new,
        block.stretch,
        seen,
        take(block.ids),
        None,
        take(block.weights),
        block.map,
        step=block.step,
        edits=block.edits,
    )


def join_samples(blocks: list[CapturedCall], width: int) -> ProofSample:
    """The proof of a stitched map: what some rows of some steps gave, of each stretch at least one."""
    rows: list[int] = []
    mixes: list[Tensor] = []
    softmaxes: list[Tensor] = []
    begins: dict[int, int] = {}
    first, column = 0, min(block.column for block in blocks)
    for block in blocks:
        if block.seen.mix is not None and not block.seen.dropout:
            begins.setdefault(block.stretch, len(rows))
            rows += [first + row for row in block.seen.rows]
            mixes.append(block.seen.mix)
            if block.seen.weights is not None:
                gap = block.column - column
                size = block.seen.weights.shape[-1]
                softmaxes.append(torch.nn.functional.pad(block.seen.weights, (gap, width - gap - size)))
        first += block.sizes.q
    if not mixes:
        return ProofSample()
    last = len(rows) - 1
    some = sorted({*range(last + 1)} if last < 16 else {round(i * last / 15) for i in range(16)} | {*begins.values()})
    seen = ProofSample(tuple(rows[i] for i in some), torch.cat(mixes, 2)[:, :, some])
    if len(softmaxes) == len(mixes):
        seen.weights = torch.cat(softmaxes, 2)[:, :, some]
    return seen

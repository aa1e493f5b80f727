"""A run as a page holds it: its numbers rounded, and nothing that only Python can use."""

from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from regard.attention.map import AttentionMap, Computed
from regard.attention.map.source import MapPiece, Source
from regard.attention.map.stitched import StitchedSource
from regard.attention.map.stored import Stored
from regard.errors import TraceError
from regard.trace.file.stream import key_of
from regard.trace.file.write import describe, in_order, is_plain, mask_of
from regard.trace.record.layer import Layer, ProofSample
from regard.trace.record.trace import Run

PRECISIONS = ("float16", "float32")
LARGEST = 65504.0  # of float16
SMALL = 1 << 14  # numbers of a bias that is kept as it is
BUDGET = 1 << 28  # bytes of maps that can only be held as weights
MEASURED = 1 << 22  # weights by which the error of rounding is measured


class Rounding:
    """Rounds each tensor once, so that what layers share stays shared. Two bytes a number are never rounded."""

    def __init__(self, precision: str) -> None:
        if precision not in PRECISIONS:
            raise TraceError(f"precision is {precision!r:.40}; give {' or '.join(map(repr, PRECISIONS))}")
        self.precision = precision
        self.known: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}  # with the original, so that it stays itself

    def __call__(self, x: Tensor) -> Tensor:
        x = x.detach()
        if self.precision == "float32" or x.dtype.itemsize <= 2:
            return x
        key = key_of(x)
        if key not in self.known:
            same = x.ndim == 4 and x.shape[0] > 1 and x.stride(0) == 0
            self.known[key] = x, to_half(x[:1]).expand(x.shape) if same else to_half(x)
        return self.known[key][1]


def to_half(x: Tensor) -> Tensor:
    """In float16, where that has a number for each."""
    finite = x.masked_fill(~x.isfinite(), 0.0)
    return x if x.numel() and float(finite.abs().max()) > LARGEST else x.to(torch.float16)


@torch.no_grad()
def round_run(run: Run, rounding: Rounding, *, values: bool) -> Run:
    """The same run with rounded numbers; with `values` also v."""
    left = BUDGET
    layers = []
    for layer in run.layers:
        source = layer.weights.source
        if not source.stored and not can_round(source):
            left -= prod(source.shape) * 2
            if left < 0:
                raise TraceError(
                    f"the map of {layer.name} can only be held as weights, and the page has room for {BUDGET >> 20} MB "
                    "of such maps; choose fewer layers with layers="
                )
        layers.append(round_layer(layer, round_source(source, rounding), rounding, values=values))
    return replace(run, layers=layers)


def round_layer(layer: Layer, source: Source, rounding: Rounding, *, values: bool) -> Layer:
    notes = list(layer.notes)
    if source.stored is not None and layer.weights.source.stored is None:
        notes.append(f"the map was {describe(layer.weights.source)} and is held as weights")
    seen = layer.seen
    copied = None if seen is None or seen.mix is None else ProofSample(seen.rows, seen.mix, dropout=seen.dropout)
    v = rounding(layer.v) if values and layer.v is not None else None
    weights = AttentionMap(source, dropped=layer.weights.dropped)
    return replace(layer, weights=weights, q=None, k=None, v=v, gradient=None, seen=copied, notes=notes)


def round_source(source: Source, rounding: Rounding) -> Source:
    """The map from rounded numbers: q and k, or the weights where nothing else says them."""
    stored = source.stored
    if can_round(source):
        pieces = [MapPiece(round_computed(piece.source, rounding), piece.column) for piece in source.pieces()]
        return pieces[0].source if source.computed is not None else StitchedSource(pieces, width=source.sizes.k)
    if stored is not None:
        return Stored(rounding(stored.kept), stored.mask, stored.lead)
    how_held = to_half if rounding.precision == "float16" else Tensor.contiguous
    kept = torch.cat([how_held(rows).reshape(-1) for rows in in_order(source)]).view(source.shape)
    return Stored(kept.cpu(), mask_of(source))


def can_round(source: Source) -> bool:
    """Whether all rows are computed from q and k that can be rounded."""
    computed = source.computed
    return is_plain(computed) if computed is not None else bool(source.pieces())


def round_computed(source: Computed, rounding: Rounding) -> Computed:
    twin = source.with_qk(rounding(source.q), rounding(source.k))
    if isinstance(twin.bias, Tensor) and twin.bias.numel() > SMALL:
        twin.bias = rounding(twin.bias)
    return twin


def rounded_size(run: Run, rounding: Rounding) -> int:
    """Bytes of all numbers, v among them, once rounded."""
    tensors: dict[tuple[object, ...], Tensor] = {}
    other = 0
    for layer in run.layers:
        source, stored = layer.weights.source, layer.weights.source.stored
        held = [] if stored is None else [stored.kept]
        if can_round(source):
            held = [x for piece in source.pieces() for x in (piece.source.q, piece.source.k)]
        tensors |= {key_of(x): x for x in (*held, layer.v) if x is not None}
        other += 0 if held else prod(source.shape)
    whole = rounding.precision == "float32"
    return other * (4 if whole else 2) + sum(x.numel() * (x.element_size() if whole else 2) for x in tensors.values())


@dataclass(frozen=True)
class RoundingError:
    """The largest difference that rounding makes to a weight, and on how many rows of every head it was measured."""

    largest: float
    rows: int
    all: bool


@torch.no_grad()
def measure_error(run: Run, twin: Run) -> RoundingError:
    """Measured against the model's own numbers: on all rows of a small run, on rows evenly apart of a large one."""
    each = sum(prod(layer.weights.shape[:2]) * layer.weights.shape[3] for layer in run.layers)
    most = max((layer.weights.shape[2] for layer in run.layers), default=0)
    rows = min(most, max(4, MEASURED // max(1, each)))
    largest = 0.0
    for one, other in zip(run.layers, twin.layers):
        q = one.weights.shape[2]
        if not all(one.weights.shape):
            continue
        where = torch.linspace(0, q - 1, min(rows, q)).round().long() if rows < q else slice(None)
        ours, theirs = (layer.weights.source.weights(where) for layer in (other, one))
        largest = max(largest, float((ours.to(theirs.dtype) - theirs).abs_().max()))
    return RoundingError(largest, rows, rows == most)

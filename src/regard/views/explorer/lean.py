"""A run as a page holds it: its numbers rounded, and nothing that only Python can use."""

from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from regard.attention.map import Asked, AttentionMap
from regard.attention.map.source import Source
from regard.attention.map.stored import Stored
from regard.errors import TraceError
from regard.trace.capture.stitched import Stitch, Stitched
from regard.trace.file.stream import key_of
from regard.trace.file.written import how, in_order, mask_of, plain, source_of
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
            self.known[key] = x, halved(x[:1]).expand(x.shape) if same else halved(x)
        return self.known[key][1]


def halved(x: Tensor) -> Tensor:
    """In float16, where that has a number for each."""
    finite = x.masked_fill(~x.isfinite(), 0.0)
    return x if x.numel() and float(finite.abs().max()) > LARGEST else x.to(torch.float16)


@torch.no_grad()
def lean(run: Run, rounding: Rounding, *, values: bool) -> Run:
    """The same run with rounded numbers; with `values` also v."""
    left = BUDGET
    layers = []
    for layer in run.layers:
        source = source_of(layer.weights)
        if not isinstance(source, Stitched | Stored) and not (isinstance(source, Asked) and plain(source)):
            left -= prod(source.shape) * 2
            if left < 0:
                raise TraceError(
                    f"the map of {layer.name} can only be held as weights, and the page has room for {BUDGET >> 20} MB "
                    "of such maps; choose fewer layers with layers="
                )
        layers.append(lean_layer(layer, rounded(source, rounding), rounding, values=values))
    return Run(layers, list(run.notes))


def lean_layer(layer: Layer, source: Source, rounding: Rounding, *, values: bool) -> Layer:
    notes = list(layer.notes)
    if isinstance(source, Stored) and not isinstance(source_of(layer.weights), Stored):
        notes.append(f"the map was {how(source_of(layer.weights))} and is held as weights")
    seen = layer.seen
    copied = None if seen is None or seen.mix is None else ProofSample(seen.rows, seen.mix, dropout=seen.dropout)
    v = rounding(layer.v) if values and layer.v is not None else None
    weights = AttentionMap(source, dropped=layer.weights.dropped)
    return replace(layer, weights=weights, q=None, k=None, v=v, gradient=None, seen=copied, notes=notes)


def rounded(source: Source, rounding: Rounding) -> Source:
    """The map from rounded numbers: q and k, or the weights where nothing else says them."""
    if isinstance(source, Stitched):
        parts = [Stitch(asked(part.source, rounding), part.column) for part in source.parts]
        return Stitched(parts, width=source.sizes.k)
    if isinstance(source, Asked) and plain(source):
        return asked(source, rounding)
    if isinstance(source, Stored):
        return Stored(rounding(source.kept), source.mask, source.lead)
    how_held = halved if rounding.precision == "float16" else Tensor.contiguous
    kept = torch.cat([how_held(rows).reshape(-1) for rows in in_order(source)]).view(source.shape)
    return Stored(kept.cpu(), mask_of(source))


def asked(source: Asked, rounding: Rounding) -> Asked:
    twin = source.on(rounding(source.q), rounding(source.k))
    if isinstance(twin.bias, Tensor) and twin.bias.numel() > SMALL:
        twin.bias = rounding(twin.bias)
    return twin


def size_of(run: Run, rounding: Rounding) -> int:
    """Bytes of all numbers, v among them, once rounded."""
    tensors: dict[tuple[object, ...], Tensor] = {}
    other = 0
    for layer in run.layers:
        source = source_of(layer.weights)
        asks = [part.source for part in source.parts] if isinstance(source, Stitched) else [source]
        for one in asks:
            kept = [one.q, one.k] if isinstance(one, Asked) and plain(one) else [getattr(one, "kept", None)]
            tensors |= {key_of(x): x for x in (*kept, layer.v) if x is not None}
            other += prod(one.shape) if kept == [None] else 0
    whole = rounding.precision == "float32"
    return other * (4 if whole else 2) + sum(x.numel() * (x.element_size() if whole else 2) for x in tensors.values())


@dataclass(frozen=True)
class Error:
    """The largest difference that rounding makes to a weight, and on how many rows of every head it was measured."""

    largest: float
    rows: int
    all: bool


@torch.no_grad()
def error_of(run: Run, twin: Run) -> Error:
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
        ours, theirs = (source_of(layer.weights).weights(where) for layer in (other, one))
        largest = max(largest, float((ours.to(theirs.dtype) - theirs).abs_().max()))
    return Error(largest, rows, rows == most)

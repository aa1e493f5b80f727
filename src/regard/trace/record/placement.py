"""Where windows stand on the whole text or picture that they were cut from, and the layer of the whole."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torch import Tensor

from regard.attention.map import AttentionMap
from regard.attention.map.placed import NOWHERE, PlacedSource
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.record.findings import LayerState

if TYPE_CHECKING:
    from regard.trace.record.layer import Layer
    from regard.trace.record.trace import Run

PARTS = (LayerState.WINDOWS, LayerState.PARTS_OF_PICTURE)
PADDING = "[PAD]"


@dataclass(frozen=True, eq=False)
class Placement:
    """Which positions of the whole the queries and keys of each window are; −1 for what is none, such as padding."""

    entries: Tensor  # b w: where the windows of each entry stand in the batch of the layer
    rows: Tensor  # w q
    columns: Tensor  # w k
    size: int  # positions of the whole
    grid: tuple[int, int] | None = None  # how these lie, where the whole was given as (b, rows, columns, m)
    names: tuple[Tokens, ...] | None = None  # of the whole, one for each entry


def fits_grid(found: Placement, grid: tuple[int, int]) -> bool:
    """Whether windows are regular parts of a grid whose positions count row by row: blocks, stripes, or lattices.

    Where they are not, positions were put into another order before, and are no patches row by row.
    """
    if found.grid is not None and found.grid != grid:
        return False
    held = max(found.columns, key=lambda one: int((one != NOWHERE).sum()))
    held = held[held != NOWHERE]
    rows, columns = (held // grid[1]).unique(), (held % grid[1]).unique()
    if len(rows) * len(columns) != len(held):
        return False
    return len(rows) == len(columns) or (adjoin(rows, grid[0]) and adjoin(columns, grid[1]))


def adjoin(places: Tensor, size: int) -> bool:
    """Whether these places stand side by side, perhaps around the rim."""
    return int(((places + 1) % size != places.roll(-1)).sum()) <= 1


def place_whole(layer: "Layer") -> "Layer":
    """The layer over the whole text or picture."""
    found = layer.placement
    if found is None:
        why = "it has no windows" if not set(PARTS) & set(layer.states) else "where its windows stand was not found"
        raise TraceError(f"{layer.name} has no map of a whole that it is a part of: {why}; look at the layer itself")
    source = PlacedSource(layer.weights.source, found.entries, found.rows, found.columns, found.size)
    whole = replace(
        layer,
        weights=AttentionMap(source),
        q=scatter(layer.q, found, found.rows),
        k=scatter(layer.k, found, found.columns),
        v=scatter(layer.v, found, found.columns),
        queries=found.names,
        keys=found.names if not source.more or found.names is None else tuple(map(with_padding, found.names)),
        seen=None,
        gradient=None,
        mix_term=None,
        placement=None,
        parts=layer,
    )
    whole.states = [state for state in layer.states if state not in PARTS]
    whole.notes = [f"put together from {found.rows.shape[0]} windows; elsewhere nothing is looked at"]
    if source.more:
        whole.notes.append("its last column is what was looked at outside of it: padding of the windows")
    return whole


def place_windows(run: "Run", *, most: int | None = None) -> "Run":
    """The same run with windows on the whole, where their place is known and all of it has at most so many cells."""
    if not any(layer.placement is not None for layer in run.layers):
        return run
    layers = [layer if layer.placement is None else layer.whole() for layer in run.layers]
    if most is not None and sum(math.prod(layer.weights.shape) for layer in layers) > most:
        return run
    return replace(run, layers=layers)


def with_padding(tokens: Tokens) -> Tokens:
    """The same with one more, for what stands around the picture."""
    special = tokens.special or (False,) * len(tokens)
    return Tokens((*tokens.shown, PADDING), special=(*special, True), grid=tokens.grid)


def scatter(x: Tensor | None, found: Placement, to: Tensor) -> Tensor | None:
    """(b · w, h, n, d) of windows as (b, h, n, d) of the whole; None where some is no position of it, or is missing."""
    if x is None or bool((to == NOWHERE).any()) or len(to.unique()) < found.size:
        return None
    apart = x[found.entries.to(x.device)]  # b w h n d
    whole = x.new_empty(apart.shape[0], apart.shape[2], found.size, apart.shape[4])
    whole[:, :, to.flatten().to(x.device)] = apart.transpose(1, 2).flatten(2, 3)
    return whole

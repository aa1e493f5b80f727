"""What every view of a trace needs: which layer is meant, its names, its numbers as a grid, and what it is."""

import math
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.map import AttentionMap
from regard.attention.map.blocks import BUDGET
from regard.attention.map.grouped import GroupedSource
from regard.attention.map.placed import PlacedSource
from regard.attention.map.statistics import pool_blocks
from regard.errors import TraceError
from regard.trace.proof.verify import prove
from regard.trace.record.layer import Layer
from regard.trace.record.missed import MissedAttention, incomplete_line
from regard.trace.record.trace import Trace, find
from regard.trace.record.words import MERGED, PART, merge_words, select, take_entry
from regard.views.static.grid import Grid, as_grid, clean_label, describe_cell

KINDS = {"self": "self-attention", "cross": "cross-attention"}
UNKNOWN = "attention of unknown kind"
HOW = {
    "computed": "computed from q and k",
    "stored": "stored weights",
    "implied": "implied by the approximation",
}
DONE = {MERGED: "word pieces merged", PART: "cropped"}
DRAWN = 16  # queries of each line of cells that a picture from far is made of, where all of them would take long
QUICK = 1 << 31  # weights
ALL_ROWS, SOME_ROWS = 512, 64  # up to so many queries all are looked at for an overview; of more, so many


def choose(trace: Trace, layer: Any) -> Layer:
    """The layer that an index, any part of a path, a path with its kind, or a layer itself names."""
    if isinstance(layer, Layer):
        return layer
    if isinstance(layer, bool) or not (isinstance(layer, str | tuple) or hasattr(layer, "__index__")):
        raise TraceError(f"a layer is named by its number or a part of its path, not by {type(layer).__name__}")
    if isinstance(layer, Layer):
        return layer
    return find(trace.layers, layer if isinstance(layer, str | tuple) else int(layer))


def group_stacks(trace: Trace) -> list[list[Layer]]:
    """The layers by what they are: those whose paths differ only in numbers, and whose kind is the same.

    The encoder's, the decoder's and the cross-attention of a translator are three stacks; a GPT has one.
    """
    stacks: dict[tuple[str, str], list[Layer]] = {}
    for layer in trace.layers:
        path = re.sub(r"#\d+$", "", layer.name)
        stacks.setdefault((re.sub(r"\d+", "#", path), layer.kind), []).append(layer)
    return list(stacks.values())


def look(layer: Layer, *, rows: Any = None, cols: Any = None, batch: int = 0, words: bool = False) -> Layer:
    """One batch entry of a layer, of its words where asked for, of some rows and columns where given.

    Windows are shown on the whole text or picture, where their place is known.
    """
    layer = layer if layer.placement is None else layer.whole()
    one = merge_words(layer, batch=batch) if words else take_entry(layer, batch)
    return one if rows is None and cols is None else select(one, rows, cols)


def labels_of(layer: Layer, longest: int = 18) -> tuple[list[str], list[str]]:
    """What the rows and the columns of the first batch entry are called: tokens, or numbers."""
    q, k = layer.weights.shape[-2:]
    rows = layer.queries[0].shown if layer.queries else [str(i) for i in range(q)]
    columns = layer.keys[0].shown if layer.keys else [str(i) for i in range(k)]
    return [clean_label(name, longest) for name in rows], [clean_label(name, longest) for name in columns]


def grid_of(map: AttentionMap, rows: int, columns: int) -> tuple[Grid, tuple[int, int]]:  # noqa: A002
    """One head in at most rows × columns cells, each the largest of its block, NaN where all of it is hidden.

    The map is asked band by band, so that one of any length needs little memory.
    """
    q, k = map.shape
    if not q or not k:
        raise TraceError(f"a map of {q} queries and {k} keys has nothing to look at")
    high, wide = -(-q // rows), -(-k // columns)  # rows and columns of one cell
    walked = pool_blocks(map.source, high, wide)
    if walked is not None:
        return as_grid(walked), (high, wide)
    step = high * max(1, BUDGET // (high * k))
    bands = []
    for first in range(0, q, step):
        band = map[first : first + step].detach()
        band = band.masked_fill(~map.allowed[first : first + step, :], -torch.inf)
        whole = torch.nn.functional.pad(band, (0, -k % wide, 0, -len(band) % high), value=-torch.inf)
        bands.append(whole.unflatten(1, (-1, wide)).unflatten(0, (-1, high)).amax((1, 3)))
    return as_grid(torch.cat(bands)), (high, wide)


class FarGrid(NamedTuple):
    """One head from far, and what its cells are; "" where each is one weight."""

    grid: Grid
    block: tuple[int, int]
    label: str


def far_grid(map: AttentionMap, rows: int, columns: int, *, exact: bool) -> FarGrid:  # noqa: A002
    """One head in at most rows × columns cells: of all its queries, or of some, with a bound of what others hide."""
    if exact or map.shape[0] <= rows * DRAWN:
        grid, block = grid_of(map, rows, columns)
        return FarGrid(grid, block, describe_cell(block))
    seen = map.sample(rows, columns, queries=DRAWN)
    return FarGrid(as_grid(seen.largest), seen.block, textwrap.fill(seen.describe(), 60))


def is_quick(layers: Sequence[Layer]) -> bool:
    """Whether every weight of these layers can be looked at in about a second."""
    return sum(math.prod(layer.weights.shape[1:]) for layer in layers) <= QUICK


def glimpse(map: AttentionMap, rows: int, columns: int) -> Grid:  # noqa: A002
    """Some rows, evenly spread, in cells of the largest of each block of keys: quick, however long the map is."""
    q, k = map.shape
    some, wide = spread(q, rows), -(-k // columns)
    seen = map.rows(some).detach().masked_fill(~map.allowed[some, :], -torch.inf)
    return as_grid(torch.nn.functional.pad(seen, (0, -k % wide), value=-torch.inf).unflatten(1, (-1, wide)).amax(-1))


def spread(size: int, most: int) -> Int[Tensor, " n"]:
    """All places, or `most` of them, evenly spread from the first to the last."""
    return torch.arange(size) if size <= most else torch.linspace(0, size - 1, most).round().long()


def describe(layers: Sequence[Layer], proof: str) -> str:
    """What kind of attention it is, how the maps were obtained, in which precision, and whether they are verified."""
    kinds = list(dict.fromkeys(KINDS.get(layer.kind, UNKNOWN) for layer in layers))
    how = list(dict.fromkeys(f"{describe_source(layer)}, {precision_of(layer)}" for layer in layers))
    return f"{' and '.join(kinds)}; {'; '.join(how)}; {proof}"


def describe_source(layer: Layer) -> str:
    """How the map was obtained, in words, and what was done to it since."""
    source, since = layer.weights.source, []
    while isinstance(source, GroupedSource | PlacedSource):
        since.append(DONE[source.done] if isinstance(source, GroupedSource) else "put together from windows")
        source = source.source
    return ", ".join([HOW.get(source.kind, source.kind), *dict.fromkeys(reversed(since))])


def precision_of(layer: Layer) -> str:
    return str(layer.weights.dtype).removeprefix("torch.")


def describe_proof(layers: Sequence[Layer], missed: Sequence[MissedAttention] = ()) -> str:
    """Whether the maps are verified to be what the model used; needs the layers as they were watched.

    `missed` is what ran beside them and was not heard.
    """
    if all(layer.door == "given" for layer in layers):
        return "given, not watched, so unverified"
    with torch.no_grad():
        statuses = Counter(prove(layer).status for layer in layers)
    said = ", ".join(status if len(layers) == 1 else f"{count} {status}" for status, count in statuses.items())
    return f"{said}; {incomplete_line(missed)}" if missed else said


class HeadSharpness(NamedTuple):
    """How sharply one head looks: mean entropy of its rows in nats, and its strongest look."""

    entropy: float
    weight: float
    query: int
    key: int


@torch.no_grad()
def measure_sharpness(layer: Layer, head: int) -> HeadSharpness:
    """Of the first batch entry. Of a long map evenly spread rows are looked at, each exactly.

    The strongest look is that of a row which had a choice: the first row of a causal map has none.
    """
    one: AttentionMap = layer.weights[0, head]
    some = spread(one.shape[0], ALL_ROWS if one.shape[0] <= ALL_ROWS else SOME_ROWS)
    weights = one.rows(some)
    best, keys = weights.max(-1)
    choice = one.allowed[some, :].sum(-1) > 1
    row = int(best.masked_fill(~choice, -1.0).argmax())
    entropy = torch.special.entr(weights).sum(-1).mean()
    return HeadSharpness(entropy.item(), best[row].item(), int(some[row]), int(keys[row]))


def describe_strongest(one: HeadSharpness, queries: list[str], keys: list[str]) -> str:
    """The strongest look of a head, in words."""
    return f"{queries[one.query]} → {keys[one.key]} {one.weight:.2f}"

"""A trace in the terminal: one head with its tokens, the heads of a layer, or what there is to look at.

The text is the same with and without colour, so that it reads in a log too.
"""

import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import TraceError
from regard.tokens.visible import columns, cut, visible
from regard.trace.record.changes import edited_line
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from regard.views.static.terminal import BLOCKS, HIDDEN, shade
from regard.views.static.trace_parts import (
    ALL_ROWS,
    SOME_ROWS,
    choose,
    describe,
    describe_proof,
    describe_strongest,
    grid_of,
    labels_of,
    look,
    measure_sharpness,
)

if TYPE_CHECKING:
    from rich.text import Text

READING = "rows are queries, columns are keys"
SIDE = 16  # cells of a head's small picture, along each side
TOKEN = 12  # columns of a token's name
LINES = 120  # queries listed at most
TOP = 5  # keys listed for each query
ENOUGH = 0.95  # of a row's weight; the rest of its keys is not listed
SHARPEST = 5  # heads listed below an overview
STYLES = (("bold magenta", 0.75), ("yellow", 0.5), ("green", 0.25), ("cyan", 0.05), ("dim", -1.0))


def print_trace(
    trace: Trace,
    layer: Any = None,
    head: int | None = None,
    *,
    batch: int = 0,
    rows: Any = None,
    cols: Any = None,
    words: bool = False,
    width: int | None = None,
    colour: bool | None = None,
    file: Any = None,
) -> None:
    """Write to the terminal, or to `file`, what a model attended to.

    With `layer` and `head` one map, or, where it does not fit, each query with its strongest keys; with `layer` its
    heads; with neither what there is. In colour on a terminal, unless NO_COLOR is set or `colour` says otherwise.

    >>> import sys, torch
    >>> from regard.trace.record.weights import from_weights
    >>> trace = from_weights(torch.tensor([[[1.0, 0.0], [0.25, 0.75]]]), ["The", "cat"])
    >>> print_trace(trace, 0, 0, file=sys.stdout)
    layer.0, head 0
    self-attention; stored weights, float32; given, not watched, so unverified
           The  cat
    The   █1.0   0
    cat   ░.25 ▓.75
    """
    from rich.console import Console

    console = Console(file=file or sys.stdout, width=width, highlight=False, soft_wrap=True, **colour_options(colour))
    text = trace_text(
        trace, layer, head, batch=batch, rows=rows, cols=cols, words=words, width=width or min(console.width, 160)
    )
    console.print(text, soft_wrap=True)


def colour_options(colour: bool | None) -> dict[str, Any]:
    """The colour options of `rich.Console`: yes, no, or what rich finds out (NO_COLOR, whether it is a terminal)."""
    if colour is None:
        return {"no_color": True, "color_system": None} if os.environ.get("NO_COLOR") else {}
    return {"force_terminal": True, "no_color": False, "color_system": "256"} if colour else {"color_system": None}


def trace_text(
    trace: Trace,
    layer: Any = None,
    head: int | None = None,
    *,
    batch: int = 0,
    rows: Any = None,
    cols: Any = None,
    words: bool = False,
    width: int = 80,
) -> "Text":
    """What `print_trace` prints, as text of rich: nothing in it is markup, whatever the tokens hold."""
    if not trace.layers:
        raise TraceError("the trace has no layers, so there is nothing to show; watch a model while it runs")
    if layer is None and (head is not None or len(trace) == 1):
        if len(trace) > 1:
            raise TraceError(f"head {head} was asked for, but there are {len(trace)} layers; say which")
        layer = 0
    if layer is None:
        return overview_text(trace, [look(one, batch=batch) for one in trace.layers], width)
    chosen = choose(trace, layer)
    seen = look(chosen, rows=rows, cols=cols, batch=batch, words=words)
    said = "\n".join(filter(None, [describe([seen], describe_proof([chosen], trace.missed)), edited_line(trace.edits)]))
    if head is None and seen.heads > 1:
        return heads_text(seen, said, width)
    return head_text(seen, head or 0, said, width)


def head_text(layer: Layer, head: int, said: str, width: int) -> "Text":
    one = layer.head(head)
    text = headline(f"{layer.name}, head {head}", said)
    queries, keys = labels_of(layer, TOKEN)
    wide = [max(columns(key), 4) for key in keys]
    left = max(map_columns(queries))
    if left + sum(wide) + len(wide) + 1 > width or one.shape[0] > LINES:
        return text.append_text(list_text(layer, head, queries, keys, width))
    grid, _ = grid_of(one, *one.shape)
    return strip_lines(text.append_text(grid_text(grid, queries, keys)))


def grid_text(grid: Any, queries: Sequence[str], keys: Sequence[str]) -> "Text":
    """Every weight as a block and a number, with the names of rows and columns."""
    from rich.text import Text

    wide, left = [max(columns(key), 4) for key in keys], max(map(columns, queries))
    text = Text(
        " " * (left + 2) + " ".join(align_right(key, size) for key, size in zip(keys, wide, strict=True)) + "\n"
    )
    for query, row in zip(queries, grid, strict=True):
        text.append(pad_right(query, left) + "  ")
        for place, (value, size) in enumerate(zip(row, wide, strict=True)):
            text.append(" " * (place > 0) + " " * (size - 4))
            text.append(*cell(value))
        text.append("\n")
    return text


def cell(value: float) -> tuple[str, str]:
    """A weight in four columns: a block as dark as it is large, and the number."""
    if np.isnan(value):
        return f"{HIDDEN:>3} ", "dim"
    number = f"{value:.2f}"
    short = "1.0" if number == "1.00" else number[1:] if value >= 0.005 else "  0"
    block = BLOCKS[min(int(np.ceil(value * 4)), 4)] if value >= 0.005 else " "
    return block + (short if value >= 0.005 else " 0 "), style_of(value)


def list_text(layer: Layer, head: int, queries: list[str], keys: list[str], width: int) -> "Text":
    """Each query with its strongest keys, until nearly all of its weight is listed."""
    from rich.text import Text

    text = Text()
    often = Counter(keys)
    left, size = max(map_columns(queries)), len(str(len(queries) - 1))
    count = min(len(queries), LINES)
    one = layer.head(head)
    seen = one[:count].detach().masked_fill(~one.allowed[:count, :], -1.0)  # only the rows that are listed
    weights, places = seen.topk(min(TOP, len(keys)))
    for row in range(count):
        text.append(f"{row:>{size}} ", "dim").append(pad_right(queries[row], left)).append(" → ", "dim")
        room, shown = width - size - left - 4, 0.0
        for weight, place in zip(weights[row].tolist(), places[row].tolist(), strict=True):
            if weight < 0.005 or shown >= ENOUGH:
                break
            twin = f"#{place}" if often[keys[place]] > 1 else ""  # which of the tokens of this name
            room -= columns(keys[place] + twin) + 7
            if room < 0 and shown:
                break
            text.append(", " if shown else "").append(keys[place]).append(twin, "dim")
            text.append(f" {weight:.2f}", style_of(weight))
            shown += weight
        text.append("\n" if shown else "nothing\n")
    if count < len(queries):
        text.append(f"… {len(queries) - count} more queries; choose some with rows=\n")
    return strip_lines(text)


def heads_text(layer: Layer, said: str, width: int) -> "Text":
    """Each head as a small shaded picture, with how sharp it is and its strongest look."""
    text = headline(f"{layer.name}, {layer.heads} heads", said)
    queries, keys = labels_of(layer, TOKEN)
    grids = [grid_of(layer.head(head), SIDE, SIDE) for head in range(layer.heads)]
    r, c = grids[0][1]
    each = "darker is more weight" if (r, c) == (1, 1) else f"each mark is the largest of {r} × {c}"
    text.append(f"{READING}; {each}\n", "dim")
    most = max(float(np.nanmax(grid, initial=0.0)) for grid, _ in grids)  # one scale for all
    size = max(2 * grids[0][0].shape[1], 21)  # columns of a picture, and of the look below it
    across = max(1, (width + 3) // (size + 3))
    pictures = []
    for head, (grid, _) in enumerate(grids):
        marks = shade(grid, width=2 * SIDE, most=most).split("\n")
        pictures.append(
            [f"head {head}", *marks, cut(describe_strongest(measure_sharpness(layer, head), queries, keys), size)]
        )
    for first in range(0, layer.heads, across):
        text.append("\n")
        for line, parts in enumerate(zip(*pictures[first : first + across], strict=True)):
            text.append("   ".join(pad_right(part, size) for part in parts) + "\n", "bold" if line == 0 else "")
    return strip_lines(text)


def overview_text(trace: Trace, layers: list[Layer], width: int) -> "Text":
    """The layers with their kinds, every head as a block, and the sharpest heads with what they look at."""
    heads = [[measure_sharpness(layer, head) for head in range(layer.heads)] for layer in layers]
    total = sum(map(len, heads))
    said = f"{len(layers)} layers, {total} heads; {describe_proof(trace.layers, trace.missed)}"
    text = headline(trace.model or "a trace", "\n".join(filter(None, [said, edited_line(trace.edits)])))
    left = min(max(columns(visible(layer.name)) for layer in layers), max(width // 2, 20))
    digits = len(str(len(layers) - 1))
    sizes = [f"{layer.weights.shape[-2]} × {layer.weights.shape[-1]}" for layer in layers]
    text.append(f"{'':{digits}} {pad_right('layer', left)}  {'kind':7}  {pad_right('q × k', max(map(len, sizes)))}  ")
    text.append("heads (darker: sharper)\n")
    for number, (layer, sharpness, size) in enumerate(zip(layers, heads, sizes, strict=True)):
        even = np.log(max(layer.weights.shape[-1], 2))
        text.append(f"{number:>{digits}} ", "dim").append(pad_right(cut(visible(layer.name), left), left))
        text.append(f"  {layer.kind:7}  {pad_right(size, max(map(len, sizes)))}  ")
        for one in sharpness:
            share = float(np.clip(1 - one.entropy / even, 0, 1))
            text.append(BLOCKS[min(1 + int(share * 4), 4)], style_of(share))
        text.append("\n")
    longest = max(layer.weights.shape[-2] for layer in layers)
    some = f" ({SOME_ROWS} rows of long maps)" if longest > ALL_ROWS else ""
    text.append(f"\nSharpest heads, by mean entropy of their rows{some}, with their strongest weight:\n")
    every = [(one, number, head) for number, those in enumerate(heads) for head, one in enumerate(those)]
    for one, number, head in sorted(every, key=lambda each: each[0].entropy)[:SHARPEST]:
        look_at = describe_strongest(one, *labels_of(layers[number], TOKEN))
        text.append(f"  layer {number:>{digits}}, head {head:<3} {one.entropy:5.2f} nats   {look_at}\n")
    return strip_lines(text)


def headline(title: str, said: str) -> "Text":
    from rich.text import Text

    lines = "\n".join(visible(line) for line in said.split("\n"))
    return Text().append(visible(title), "bold").append(f"\n{lines}\n", "dim")


def strip_lines(text: "Text") -> "Text":
    """Without blanks at the end of any line."""
    from rich.text import Text

    lines = text.split("\n")
    for line in lines:
        line.rstrip()
    return Text("\n").join(lines)


def style_of(share: float) -> str:
    return next(style for style, least in STYLES if share >= least)


def map_columns(labels: list[str]) -> list[int]:
    return [columns(label) for label in labels]


def pad_right(text: str, size: int) -> str:
    """Filled up by what the eye sees: a Chinese character is two columns wide."""
    return text + " " * (size - columns(text))


def align_right(text: str, size: int) -> str:
    return " " * (size - columns(text)) + text

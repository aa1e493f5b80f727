"""A trace as a figure: one head, the heads of a layer, the stacks side by side, or everything at once."""

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from regard.errors import TraceError
from regard.trace.record.changes import edited_line
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Trace
from regard.views.static.colours import weight_colours
from regard.views.static.figure import (
    CELL,
    FINEST,
    HATCH,
    LEAST,
    add_colour_bar,
    colour_limits,
    fonts_of,
    label_ticks,
    map_inches,
    paint,
    write_numbers,
)
from regard.views.static.grid import Grid, clean_label
from regard.views.static.picture import Picture
from regard.views.static.trace_parts import (
    KINDS,
    FarGrid,
    choose,
    describe,
    describe_proof,
    far_grid,
    group_stacks,
    is_quick,
    labels_of,
    look,
    measure_sharpness,
)
from regard.views.static.write import check_path, write

READING = "Rows are queries, columns are keys: each row shows where one query attends."
LARGE = 9.0  # inches: the longer side of one head
WIDE = 14.0  # inches: all panels together
PANEL = 3.4  # inches: one of several heads
GAP = 0.08  # between thumbnails, of their side
SMALL = 40  # cells along a side of a thumbnail
FOOT = 90  # characters of a line below the maps
SIDE_BY_SIDE = 4  # more stacks than these are shown as thumbnails
GREY = "#5f5f5f"


def figure(
    trace: Trace,
    layer: Any = None,
    head: int | None = None,
    *,
    rows: Any = None,
    cols: Any = None,
    batch: int = 0,
    to: str | Path | None = None,
    words: bool = False,
    title: str | None = None,
    exact: bool | None = None,
) -> Figure:
    """What a model attended to, as a matplotlib figure: rows are queries, columns are keys, darker is more weight.

    With `layer` (a number, a part of its path, or the layer itself) and `head` one map, the value in each cell when
    they fit. With `layer` alone all its heads, on one colour scale. With neither, where there are several stacks
    (encoder, decoder, cross), the last layer of each side by side, its sharpest head unless `head` is given; else
    every head of every layer, small. `rows` and `cols` take a slice, places or a sentence ("A"); `words` merges word
    pieces. Hidden cells are hatched. `to` writes it: .svg, .png or .pdf.

    Of more than about 2 billion weights, some queries of each line of cells are looked at, and the figure says so, with
    a bound of what the others may hide; `exact=True` looks at all, `exact=False` at some.

    >>> import torch
    >>> from regard.trace.record.weights import from_weights
    >>> trace = from_weights(torch.tensor([[[1.0, 0.0], [0.25, 0.75]]]), ["The", "cat"])
    >>> figure(trace, 0, 0).get_suptitle()
    'layer.0, head 0'
    """
    path = check_path(to)
    layers = trace.layers
    if not layers:
        raise TraceError("the trace has no layers, so there is nothing to draw; watch a model while it runs")
    wanted = {"rows": rows, "cols": cols, "batch": batch, "words": words}
    several = group_stacks(trace)
    if layer is not None:
        chosen = [choose(trace, layer)]
    elif head is None and not 1 < len(several) <= SIDE_BY_SIDE:
        chosen = layers
    elif len(several) <= SIDE_BY_SIDE:
        chosen = [stack[-1] for stack in several]
    else:
        raise TraceError(f"head {head} was asked for, but there are {len(several)} stacks of layers; say which layer")
    seen = [look(one, **wanted) for one in chosen]
    exact = is_quick(seen) if exact is None else exact
    if layer is not None and head is not None:
        sheet = draw_head(seen[0], head, title, path, exact=exact)
    elif layer is not None:
        sheet = draw_heads(seen[0], title, path, exact=exact)
    elif chosen is layers:
        sheet = draw_overview(seen, trace.model if title is None else title, path, exact=exact)
    else:
        sheet = draw_side_by_side(seen, head, trace.model if title is None else title, path, exact=exact)
    changed = [textwrap.fill(clean_label(edited_line(trace.edits), 400), FOOT)] if trace.edits else []
    write_footer(sheet, "\n".join([*changed, READING, describe(seen, describe_proof(chosen, trace.missed))]))
    if path is not None:
        write(sheet, path)
    return sheet


def draw_head(layer: Layer, head: int, title: str | None, path: Path | None, *, exact: bool) -> Figure:
    """One map, as large as its tokens need, the value in each cell when they fit."""
    grid, block, label = far_grid(layer.head(head), FINEST, FINEST, exact=exact)
    title = f"{layer.name}, head {head}" if title is None else title
    labels = labels_of(layer)
    fonts = fonts_of([title, *labels[0], *labels[1]], path)
    height, width = size = map_inches(grid, LARGE)
    sheet = make_sheet(width + 2.4, height + 1.9)
    axes = sheet.subplots()
    mesh = paint(axes, grid, size, colour_limits([grid]))
    thinned = label_ticks(axes, labels, block, size, fonts)
    axes.set(ylabel=f"queries{thinned[0]}", xlabel=f"keys{thinned[1]}")
    write_numbers(axes, grid, size, mesh)
    add_colour_bar(sheet, [axes], mesh, height, label or "weight")
    write_headline(sheet, title, fonts)
    return sheet


def draw_heads(layer: Layer, title: str | None, path: Path | None, *, exact: bool) -> Figure:
    """The heads of a layer as small multiples on one colour scale; tokens stand at the outer edges."""
    grids, blocks, cells = zip(
        *(far_grid(layer.head(head), FINEST, FINEST, exact=exact) for head in range(layer.heads)), strict=True
    )
    title = layer.name if title is None else title
    labels = labels_of(layer, 12)
    fonts = fonts_of([title, *labels[0], *labels[1]], path)
    across = columns_for(layer.heads)
    down = -(-layer.heads // across)
    height, width = size = map_inches(grids[0], min(PANEL, WIDE / across))
    margin = 0.08 * max(map(len, labels[0])) + 1.2, 0.08 * max(map(len, labels[1])) + 1.1  # names and colours
    sheet = make_sheet(across * (width + 0.2) + margin[0], down * (height + 0.4) + margin[1])
    panels = sheet.subplots(down, across, squeeze=False)
    limits = colour_limits(grids)
    for head, axes in enumerate(panels.flat):
        if head >= layer.heads:
            axes.set_visible(False)
            continue
        mesh = paint(axes, grids[head], size, limits)
        axes.set_title(f"head {head}", fontsize=9)
        thinned = label_ticks(axes, labels, blocks[head], size, fonts, 8.0)
        first, last = head % across == 0, head + across >= layer.heads
        axes.tick_params(labelleft=first, labelbottom=last)
        axes.set(ylabel=f"queries{thinned[0]}" if first else "", xlabel=f"keys{thinned[1]}" if last else "")
        write_numbers(axes, grids[head], size, mesh)
    add_colour_bar(sheet, list(panels.flat), mesh, min(down * height, 6.0), cells[0] or "weight")
    write_headline(sheet, title, fonts)
    return sheet


def draw_side_by_side(
    layers: Sequence[Layer], head: int | None, title: str, path: Path | None, *, exact: bool
) -> Figure:
    """One head of each of these layers, in cells of one size and on one colour scale."""
    heads = [find_sharpest(layer) if head is None else head for layer in layers]
    far = [far_grid(layer.head(h), FINEST, FINEST, exact=exact) for layer, h in zip(layers, heads)]
    grids, blocks, _ = zip(*far, strict=True)
    labels = [labels_of(layer) for layer in layers]
    fonts = fonts_of([title, *(name for pair in labels for axis in pair for name in axis)], path)
    across, down = sum(grid.shape[1] for grid in grids), max(grid.shape[0] for grid in grids)
    cell = min(CELL, WIDE / across, LARGE / down)
    sizes = [(max(grid.shape[0] * cell, LEAST), max(grid.shape[1] * cell, 2.0)) for grid in grids]
    longest = max(len(name) for pair in labels for name in pair[0])
    sheet = make_sheet(
        sum(width for _, width in sizes) + len(layers) * (0.09 * longest + 0.6) + 1.0, max(sizes)[0] + 2.4
    )
    panels = sheet.subplots(1, len(layers), squeeze=False, width_ratios=[width for _, width in sizes])[0]
    limits = colour_limits(grids)
    for axes, layer, h, grid, block, size, pair in zip(
        panels, layers, heads, grids, blocks, sizes, labels, strict=True
    ):
        mesh = paint(axes, grid, size, limits)
        chosen = f"head {h}" if head is not None or layer.heads == 1 else f"head {h}, the sharpest of {layer.heads}"
        kind = KINDS.get(layer.kind, "attention")
        name = clean_label(layer.name, max(int(size[1] / 0.075), 18))
        axes.set_title(f"{kind}\n{name}\n{chosen}", fontsize=9, family=fonts, parse_math=False)
        thinned = label_ticks(axes, pair, block, size, fonts)
        write_numbers(axes, grid, size, mesh)
        axes.set(ylabel=f"queries{thinned[0]}", xlabel=f"keys{thinned[1]}")
    add_colour_bar(sheet, list(panels), mesh, max(sizes)[0], coarsest(far) or "weight")
    for axes in panels:
        axes.set_anchor("N")  # the colours beside them moved them to the middle
    write_headline(sheet, title, fonts)
    return sheet


def draw_overview(layers: Sequence[Layer], title: str, path: Path | None, *, exact: bool) -> Figure:
    """Every head of every layer as a thumbnail: layers from top to bottom, heads from left to right."""
    most = max(layer.heads for layer in layers)
    side = min(max(WIDE / most, 0.3), 1.1)
    labels = [f"{number}  {clean_label(layer.name, 36)}" for number, layer in enumerate(layers)]
    fonts = fonts_of([title, *labels], path)
    sheet = make_sheet(most * side + 0.08 * max(map(len, labels)) + 1.6, len(layers) * side + 1.5)
    axes = sheet.subplots()
    cells = [[far_grid(layer.head(h), SMALL, SMALL, exact=exact) for h in range(layer.heads)] for layer in layers]
    limits = colour_limits(far.grid for line in cells for far in line)
    mosaic, there = tile_thumbnails([[far.grid for far in line] for line in cells], most)
    mesh = axes.imshow(mosaic, cmap=weight_colours(), vmin=limits[0], vmax=limits[1], extent=(0, most, len(layers), 0))
    mesh.set(interpolation="nearest", zorder=1)
    if any(np.isnan(far.grid).any() for line in cells for far in line):
        axes.add_patch(Rectangle((0, 0), most, len(layers), zorder=0, **HATCH | {"edgecolor": "#c8c8c8"}))
    squares = [[[(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)] for y, x in np.argwhere(t)] for t in (there, ~there)]
    axes.add_collection(PolyCollection(squares[1], facecolors="white", zorder=2))
    for colour, beyond in (("#c8c8c8", 1.0), ("white", 0.0)):  # the gaps, and a thin line around each thumbnail
        wide = 72 * side * GAP / (1 + GAP) + beyond
        axes.add_collection(PolyCollection(squares[0], facecolors="none", edgecolors=colour, linewidths=wide, zorder=2))
    axes.set(xlim=(0, most), ylim=(len(layers), 0), box_aspect=len(layers) / most)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    word = "head " if side > 0.6 else ""
    axes.set_xticks(np.arange(most) + 0.5, [f"{word}{h}" for h in range(most)], fontsize=9)
    axes.set_yticks(np.arange(len(layers)) + 0.5, labels, fontsize=9, family=fonts, parse_math=False)
    axes.set_xlabel("" if word else "heads")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    label = coarsest([far for line in cells for far in line])
    add_colour_bar(sheet, [axes], mesh, min(len(layers) * side, 6.0), label or "weight")
    write_headline(sheet, title, fonts)
    return sheet


def coarsest(grids: Sequence[FarGrid]) -> str:
    """What the cells of the coarsest of these are."""
    return max(grids, key=lambda far: far.block).label


def tile_thumbnails(grids: Sequence[Sequence[Grid]], across: int) -> tuple[np.ndarray, np.ndarray]:
    """All thumbnails as one picture, since a thousand of them would be slow; and where there is one.

    Each has a margin of half a gap on every side.
    """
    most = max(max(grid.shape) for line in grids for grid in line)
    inner = most * -(-64 // most)  # a whole number of dots for each cell, where all are of one size
    margin = max(round(inner * GAP / 2), 1)
    side = inner + 2 * margin
    whole = np.full((len(grids), side, across, side), np.nan, dtype=np.float32)
    there = np.zeros((len(grids), across), dtype=bool)
    for y, line in enumerate(grids):
        for x, grid in enumerate(line):
            rows, columns = (np.arange(inner) * size // inner for size in grid.shape)
            whole[y, margin:-margin, x, margin:-margin] = grid[np.ix_(rows, columns)]
            there[y, x] = True
    return whole.reshape(len(grids) * side, across * side), there


def find_sharpest(layer: Layer) -> int:
    """The head whose rows have the least entropy."""
    return min(range(layer.heads), key=lambda head: measure_sharpness(layer, head).entropy)


def make_sheet(width: float, height: float) -> Figure:
    return Picture(figsize=(width, height), dpi=150, layout="constrained")


def columns_for(count: int) -> int:
    """How many panels stand side by side: full rows where there are some, wider than high."""
    even = [c for c in range(1, count + 1) if count % c == 0 and 1 <= c * c / count <= 2.5]
    return even[0] if even else math.ceil(math.sqrt(1.5 * count))


def write_headline(sheet: Figure, title: str, fonts: list[str]) -> None:
    if title:
        sheet.suptitle(title, fontsize=12, family=fonts, parse_math=False)


def write_footer(sheet: Figure, said: str) -> None:
    """What the maps are and, where there is some, what hatching means."""
    hatched = any(patch.get_hatch() for axes in sheet.axes for patch in axes.patches)
    handles = [Patch(label="masked", **HATCH)] if hatched else []
    key = sheet.legend(handles=handles, title=said, loc="outside lower center", frameon=False, fontsize=8.5)
    key.get_title().set(fontsize=8.5, color=GREY, ha="center")

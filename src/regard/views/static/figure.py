"""Figures for paper and screen: SVG with real text, PNG, PDF. No global state of pyplot is touched."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from rich.cells import cell_len

from regard.views.static.colours import contrast_ink, difference_colours, weight_colours
from regard.views.static.fonts import find_families
from regard.views.static.grid import Grid, as_grid, clean_label, coarsen, describe_cell, label_axis
from regard.views.static.picture import Picture
from regard.views.static.write import check_path, write

FINEST = 512  # cells along an axis; more would fall between the pixels
CELL = 0.5  # inches: a cell that holds a number
LEAST = 1.2  # inches: a single row still has a shape
MOST = 6.0  # inches: the longer side of a map
FAINT = "#8f8f85"
HATCH: dict[str, Any] = {"hatch": "////", "facecolor": "#f4f4f4", "edgecolor": "#9a9a9a", "linewidth": 0}


def heatmap(
    values: Any,
    *,
    title: str = "",
    rows: str = "queries",
    columns: str = "keys",
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    diverging: bool = False,
    numbers: bool = True,
    to: str | Path | None = None,
) -> Figure:
    """Rows × columns as colours: darker is more. Small maps say the value in each cell.

    `numbers=False` leaves out values and colour bar, where the colours say yes and no.

    `diverging` is for differences: blue below zero, red above. NaN and −∞ are hatched: they may not be
    looked at. A map finer than 512 cells is drawn coarser, each cell the value furthest from zero of its
    block, and the colour bar says so. `to` writes the figure: a path that ends in .svg, .png or .pdf.

    >>> figure = heatmap([[0.25, 0.75], [1.0, float("nan")]], row_labels=["cat", "sat"])
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['queries', '']
    """
    path = check_path(to)
    whole = as_grid(values)
    names = [label_axis(row_labels, whole.shape[0], "row"), label_axis(column_labels, whole.shape[1], "column")]
    names = [[clean_label(name) for name in axis] for axis in names]
    grid, block = coarsen(whole, FINEST, FINEST)
    fonts = fonts_of([title, rows, columns, *names[0], *names[1]], path)

    height, width = size = map_inches(grid, MOST)
    figure = Picture(figsize=(width + 2.2, height + 1.4), dpi=150, layout="constrained")
    axes = figure.subplots()
    mesh = paint(axes, grid, size, colour_limits([grid], diverging), diverging=diverging)
    label_ticks(axes, names, block, size, fonts)
    axes.set_ylabel(rows, family=fonts, parse_math=False)
    axes.set_xlabel(columns, family=fonts, parse_math=False)
    if title:
        axes.set_title(title, family=fonts, parse_math=False, fontsize=11)
    if numbers:
        write_numbers(axes, grid, size, mesh)
        add_colour_bar(figure, [axes], mesh, height, describe_cell(block, diverging))
    if path is not None:
        write(figure, path)
    return figure


def fonts_of(texts: Iterable[str], path: Path | None) -> list[str]:
    """Fonts for all of these texts; an SVG needs no warning, since its reader's fonts draw it."""
    return find_families(texts, warn=path is None or path.suffix.lower() != ".svg")


def map_inches(grid: Grid, most: float) -> tuple[float, float]:
    """Height and width of a map: cells that hold a number, smaller ones where the longer side would exceed `most`."""
    cell = min(CELL, most / max(grid.shape))
    height, width = (max(n * cell, LEAST) for n in grid.shape)
    return height, width


def paint(
    axes: Axes, grid: Grid, size: tuple[float, float], limits: tuple[float, float], *, diverging: bool = False
) -> Any:
    """The cells as colours, the first row on top, hidden ones hatched."""
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(grid),
        cmap=difference_colours() if diverging else weight_colours(),
        vmin=limits[0],
        vmax=limits[1],
        rasterized=grid.size > 64 * 64,  # a picture inside the SVG, where so many rectangles would be slow
    )
    axes.set(xlim=(0, grid.shape[1]), ylim=(grid.shape[0], 0), box_aspect=size[0] / size[1])
    if np.isnan(grid).any():  # one hatched sheet behind the cells shows wherever a cell is missing
        axes.add_patch(Rectangle((0, 0), *grid.shape[::-1], zorder=0, **HATCH))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh


def add_colour_bar(figure: Figure, axes: Sequence[Axes], mesh: Any, height: float, label: str = "") -> None:
    """The colours and what they stand for, beside the maps."""
    beside = figure.colorbar(mesh, ax=list(axes), aspect=max(height / 0.14, 8), pad=0.02)
    beside.outline.set_visible(False)
    beside.ax.tick_params(labelsize=9)
    if label:
        beside.set_label(label)


def label_ticks(
    axes: Axes,
    names: Sequence[list[str]],
    block: tuple[int, int],
    size: tuple[float, float],
    fonts: list[str],
    points: float = 9.0,
) -> list[str]:
    """Names beside the cells, as many as fit; the columns' stand upright when they are long.

    Gives for each axis "" or how many are named.
    """
    thinned = []
    letter, gap = points / 120, 0.06  # inches
    for axis, labels, cells, length in zip((axes.yaxis, axes.xaxis), names, block, size, strict=True):
        longest, room = max(map(cell_len, labels)) * letter, length / len(labels)  # inches, and inches for each
        counted = labels[-1] == str(len(labels) - 1)
        upright = axis is axes.xaxis and longest + gap > room and not counted
        needed = 2 * letter if upright or axis is axes.yaxis else longest + gap
        step = max(math.ceil(needed / room), 1)
        if counted:  # numbers go by 1, 2, 5, 10, 20, 50, …
            step = next(n * 10**e for e in range(9) for n in (1, 2, 5) if n * 10**e >= step)
        shown = range(0, len(labels), step)
        axis.set_ticks([i // cells + 0.5 for i in shown])
        for text in axis.set_ticklabels([labels[i] for i in shown], fontsize=points, family=fonts):
            text.set(parse_math=False, rotation=90 if upright else 0)  # a `$` is a token, not a formula
        thinned.append("" if step == 1 or counted else f" (1 in {step} named)")
    return thinned


def write_numbers(axes: Axes, grid: Grid, size: tuple[float, float], mesh: Any) -> None:
    """The value in each cell, where it fits, in black or white, whichever stands out more from its colour."""
    if min(size[0] / grid.shape[0], size[1] / grid.shape[1]) < 0.4:
        return
    largest = np.nanmax(np.abs(grid), initial=0.0)
    sizes = {0.0005: "z.0e", 0.05: "z.3f", 10: "z.2f", 100: "z.1f", 10_000: "z.0f", math.inf: "z.0e"}
    form = next(form for limit, form in sizes.items() if largest < limit) if largest else "z.2f"
    for (i, j), value in np.ndenumerate(grid):
        if not np.isnan(value):
            number = f"{value:{form}}".replace("-", "−")
            nothing = not float(f"{value:{form}}")  # what rounds to 0 stands back
            colour = FAINT if nothing else contrast_ink(mesh.cmap(mesh.norm(value)))
            axes.text(j + 0.5, i + 0.5, number, ha="center", va="center", color=colour, fontsize=9)


def colour_limits(grids: Iterable[Grid], diverging: bool = False) -> tuple[float, float]:
    """The values at the two ends of the colours; shares start at 0, differences are even on both sides."""
    seen = np.concatenate([grid[np.isfinite(grid)] for grid in grids])
    highest, lowest = (float(seen.max()), float(seen.min())) if seen.size else (1.0, 0.0)
    if diverging:
        furthest = max(abs(highest), abs(lowest)) or 1.0
        return -furthest, furthest
    lowest = min(lowest, 0.0)
    return lowest, highest if highest > lowest else lowest + 1.0

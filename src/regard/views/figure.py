"""Figures for paper and screen: SVG with real text, PNG, PDF. No global state of pyplot is touched."""

import math
import os
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.patches import Rectangle

from regard.views import Grid, as_grid, coarser, named

ENDINGS = (".svg", ".png", ".pdf")
FINEST = 512  # cells along an axis; more would fall between the pixels
CELL = 0.5  # inches: a cell that holds a number
LEAST = 1.2  # inches: a single row still has a shape
LONGEST = 18  # characters of a label

# Other scripts come from the system's fonts, where there are any.
FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "PingFang SC",
    "Microsoft YaHei",
    "Noto Sans Arabic",
)
VISIBLE = {i: 0x2400 + i for i in range(32)} | {0x0A: "⏎", 0x09: "⇥", 0x7F: "␡"}


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
    path = None if to is None else _checked(Path(to))
    whole = as_grid(values)
    names = [named(row_labels, whole.shape[0], "row"), named(column_labels, whole.shape[1], "column")]
    names = [[_readable(name) for name in axis] for axis in names]
    grid, block = coarser(whole, FINEST, FINEST)

    cell = min(CELL, 6.0 / max(grid.shape))
    height, width = (max(n * cell, LEAST) for n in grid.shape)  # inches
    figure = Figure(figsize=(width + 2.2, height + 1.4), dpi=150, layout="constrained")
    axes = figure.subplots()
    lowest, highest = _span(grid, diverging)
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(grid),
        cmap=_differences() if diverging else _shares(),
        vmin=lowest,
        vmax=highest,
        rasterized=grid.size > 64 * 64,  # a picture inside the SVG, where so many rectangles would be slow
    )
    axes.set(xlim=(0, grid.shape[1]), ylim=(grid.shape[0], 0), box_aspect=height / width)
    if np.isnan(grid).any():  # one hatched sheet behind the cells shows wherever a cell is missing
        sheet = Rectangle((0, 0), *grid.shape[::-1], facecolor="#f4f4f4", edgecolor="#9a9a9a", linewidth=0)
        axes.add_patch(sheet).set(hatch="////", zorder=0)

    _ticks(axes, names, block, (height, width))
    axes.set_ylabel(rows, family=_fonts(), parse_math=False)
    axes.set_xlabel(columns, family=_fonts(), parse_math=False)
    if title:
        axes.set_title(title, family=_fonts(), parse_math=False, fontsize=11)
    if numbers:
        if min(height / grid.shape[0], width / grid.shape[1]) >= 0.4:
            _numbers(axes, grid, mesh)
        _bar(figure, mesh, height, block, diverging)
    if path is not None:
        _write(figure, path)
    return figure


def _bar(figure: Figure, mesh: Any, height: float, block: tuple[int, int], diverging: bool) -> None:
    """The colours and what they stand for, beside the map."""
    bar = figure.colorbar(mesh, ax=figure.axes[0], aspect=max(height / 0.14, 8), pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=9)
    if block != (1, 1):
        bar.set_label(f"each cell is the {'furthest from 0' if diverging else 'largest'} of {block[0]} × {block[1]}")


def _ticks(axes: Axes, names: list[list[str]], block: tuple[int, int], sizes: tuple[float, float]) -> None:
    """Names beside the cells, as many as fit; the columns' stand upright when they are long."""
    for axis, labels, cells, inches in zip((axes.yaxis, axes.xaxis), names, block, sizes, strict=True):
        longest, room = max(map(len, labels)) * 0.09, inches / len(labels)  # inches, and inches for each
        counted = labels[-1] == str(len(labels) - 1)
        upright = axis is axes.xaxis and longest > room and not counted
        needed = 0.17 if upright or axis is axes.yaxis else longest + 0.08
        step = max(math.ceil(needed / room), 1)
        if counted:  # numbers go by 1, 2, 5, 10, 20, 50, …
            step = next(n * 10**e for e in range(9) for n in (1, 2, 5) if n * 10**e >= step)
        shown = range(0, len(labels), step)
        axis.set_ticks([i // cells + 0.5 for i in shown])
        for text in axis.set_ticklabels([labels[i] for i in shown], fontsize=9, family=_fonts()):
            text.set(parse_math=False, rotation=90 if upright else 0)  # a `$` is a token, not a formula
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _numbers(axes: Axes, grid: Grid, mesh: Any) -> None:
    """The value in each cell, in black or white, whichever stands out more from its colour."""
    largest = np.nanmax(np.abs(grid), initial=0.0)
    sizes = {0.0005: "z.0e", 0.05: "z.3f", 10: "z.2f", 100: "z.1f", 10_000: "z.0f", math.inf: "z.0e"}
    form = next(form for limit, form in sizes.items() if largest < limit) if largest else "z.2f"
    for (i, j), value in np.ndenumerate(grid):
        if not np.isnan(value):
            linear = np.array(mesh.cmap(mesh.norm(value))[:3]) ** 2.2
            ink = "black" if linear @ (0.2126, 0.7152, 0.0722) > 0.179 else "white"
            number = f"{value:{form}}".replace("-", "−")
            axes.text(j + 0.5, i + 0.5, number, ha="center", va="center", color=ink, fontsize=9)


def _span(grid: Grid, diverging: bool) -> tuple[float, float]:
    """The values at the two ends of the colours; shares start at 0, differences are even on both sides."""
    seen = grid[np.isfinite(grid)]
    highest, lowest = (float(seen.max()), float(seen.min())) if seen.size else (1.0, 0.0)
    if diverging:
        furthest = max(abs(highest), abs(lowest)) or 1.0
        return -furthest, furthest
    lowest = min(lowest, 0.0)
    return lowest, highest if highest > lowest else lowest + 1.0


@cache
def _shares() -> Colormap:
    """Viridis turned round, its bright end softened to paper, so that a map of mostly nothing is quiet."""
    t = np.linspace(0, 1, 256)[:, None]
    viridis, paper = matplotlib.colormaps["viridis_r"](t[:, 0])[:, :3], np.array([[1.0, 1.0, 0.96]])
    softened = (1 - t) ** 4
    return ListedColormap(softened * paper + (1 - softened) * viridis, name="shares").with_extremes(bad=(0, 0, 0, 0))


@cache
def _differences() -> Colormap:
    return matplotlib.colormaps["RdBu_r"].with_extremes(bad=(0, 0, 0, 0))


@cache
def _fonts() -> list[str]:
    installed = {font.name for font in fontManager.ttflist}
    return [name for name in FONTS if name in installed]


def _readable(label: str) -> str:
    """A label fit to draw: outer blanks and control characters visible, a long one cut in the middle."""
    before = len(label) - len(label.lstrip(" "))
    after = len(label) - len(label.rstrip(" ")) if label.strip(" ") else 0
    label = "␣" * before + label[before : len(label) - after] + "␣" * after
    label = label.translate(VISIBLE).encode("utf-8", "replace").decode()  # half a surrogate cannot be written
    half = LONGEST // 2
    return label if len(label) <= LONGEST else f"{label[:half]}…{label[1 - half :]}"


def _checked(path: Path) -> Path:
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"a figure is written as {', '.join(ENDINGS)}, but {path.name!r} ends otherwise; rename it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} for {path.name!r} does not exist; make it first")
    return path


def _exact() -> AbstractContextManager[None]:
    """Text stays text, and the same figure gives the same bytes."""
    return matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "regard", "pdf.fonttype": 42})


def _write(figure: Figure, path: Path) -> None:
    """All or nothing: a reader sees the old file or the whole new one."""
    ending = path.suffix.lower()
    stamp = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".regard-") as near:
        whole = Path(near) / f"figure{ending}"
        with _exact(), warnings.catch_warnings():
            if ending == ".svg":  # its text is drawn by the reader's fonts; ours need not know every letter
                warnings.filterwarnings("ignore", message=r"Glyph .* missing")
            figure.savefig(whole, metadata=stamp, bbox_inches="tight")
        os.replace(whole, path)

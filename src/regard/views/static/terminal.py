"""Pictures and tables made of text: they read at 80 columns, through a pipe and in a log."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len, set_cell_size

from regard.views.static.grid import Grid, as_grid, coarsen, label_axis

BLOCKS = " ░▒▓█"
HIDDEN = "·"


def shade(
    values: Any,
    row_labels: Sequence[str] | None = None,
    *,
    width: int = 80,
    indent: int = 0,
    most: float | None = None,
) -> str:
    """The values as shaded blocks: darker is more, blank is nothing at all, a dot may not be looked at.

    The darkest block is the largest value, or `most`, so that several pictures can share a scale. A map that is too
    wide becomes coarser, and a line says so.

    >>> print(shade([[1.0, float("nan")], [0.25, 0.75]], ["cat", "sat"]))
    cat  ██··
    sat  ░░▓▓
    """
    whole = as_grid(values)
    names = label_axis(row_labels, whole.shape[0], "row") if row_labels is not None else [""] * whole.shape[0]
    margin = " " * indent
    left = max(map(cell_len, names)) + 2 if row_labels is not None else 0
    room = max(width - indent - left, 1)
    mark, grid, (r, c) = 2, whole, (1, 1)  # two characters are about as wide as one is high
    if 2 * whole.shape[1] > room:  # one character each, and twice as many rows as columns taken together
        across = -(-whole.shape[1] // room)
        mark, (grid, (r, c)) = 1, coarsen(whole, -(-whole.shape[0] // (2 * across)), room)
    lines = [
        margin + set_cell_size(names[i * r], left) + "".join(block * mark for block in line)
        for i, line in enumerate(_blocks(grid, most))
    ]
    if (r, c) != (1, 1):
        lines.append(f"{margin}each mark is the largest of {r} × {c} values")
    return "\n".join(line.rstrip() for line in lines)


def table(
    values: Any,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    *,
    digits: int = 4,
    width: int = 80,
    indent: int = 0,
) -> str:
    """The values as aligned numbers, rows and columns named; a dot may not be looked at.

    Columns beyond `width` are counted, not shown.

    >>> print(table([[0.25, 0.75], [1.0, float("nan")]], ["cat", "sat"], ["The", "mat"], digits=2))
          The   mat
    cat  0.25  0.75
    sat  1.00     ·
    """
    grid = as_grid(values)
    names = label_axis(row_labels, grid.shape[0], "row")
    heads = label_axis(column_labels, grid.shape[1], "column")
    cells = [[HIDDEN if np.isnan(x) else f"{x:.{digits}f}" for x in row] for row in grid]
    left = max(map(cell_len, names))
    wide = max(max(cell_len(cell) for row in [heads, *cells] for cell in row), 3)
    fit = max((width - indent - left) // (wide + 2), 1)
    lines = [
        " " * indent + set_cell_size(name, left) + "".join("  " + _right(cell, wide) for cell in row[:fit])
        for name, row in zip(["", *names], [heads, *cells], strict=True)
    ]
    if fit < len(heads):
        lines.append(" " * indent + f"… {len(heads) - fit} more columns")
    return "\n".join(lines)


def _blocks(grid: Grid, most: float | None) -> list[list[str]]:
    """Every positive value gets at least the palest block, so that blank means nothing at all."""
    seen = grid[~np.isnan(grid)]
    low = min(seen.min(), 0.0) if seen.size else 0.0
    high = most if most is not None else seen.max() if seen.size else 0.0
    span = (high - low) or 1.0
    steps = len(BLOCKS) - 1
    return [
        [HIDDEN if np.isnan(x) else BLOCKS[min(int(np.ceil((x - low) / span * steps)), steps)] for x in row]
        for row in grid
    ]


def _right(text: str, size: int) -> str:
    """Aligned right by what the eye sees: a Chinese character is two cells wide."""
    return " " * (size - cell_len(text)) + text

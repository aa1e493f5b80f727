"""Which written word looked at which read one, as text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.tokens.visible import columns as wide
from regard.views.static.grid import Grid, as_grid, clean_label, label_axis
from regard.views.static.trace_terminal import grid_text


def alignment_text(weights: Any, rows: Sequence[str], columns: Sequence[str], *, width: int = 160) -> str:
    """The map in characters, and below it what each written token looked at most; a map beyond `width` is left out.

    >>> print(alignment_text([[0.9, 0.1], [0.2, 0.8]], ["猫", "坐"], ["cat", "sat"]))
         cat  sat
    猫  █.90 ░.10
    坐  ░.20 █.80
    <BLANKLINE>
    猫 ← cat 0.90   坐 ← sat 0.80
    """
    grid, down, across = label_grid(weights, rows, columns)
    down, across = [clean_label(name) for name in down], [clean_label(name) for name in across]
    listed = [f"{name} ← {describe_strongest(line, across)}" for name, line in zip(down, grid)]
    if max(map(wide, down)) + 2 + sum(max(wide(name), 4) + 1 for name in across) > width:
        return "\n".join(listed)
    picture = "\n".join(line.rstrip() for line in grid_text(grid, down, across).plain.splitlines())
    return picture + "\n\n" + "   ".join(listed)


def describe_strongest(line: Any, names: Sequence[str]) -> str:
    """What took most of a row."""
    if np.isnan(line).all():
        return "nothing"
    best = int(np.nanargmax(line))
    return f"{names[best]} {line[best]:.2f}"


def label_grid(weights: Any, rows: Sequence[str], columns: Sequence[str]) -> tuple[Grid, list[str], list[str]]:
    """Numbers and a name for each row and column, refused where they do not fit."""
    grid = as_grid(weights)
    return grid, label_axis(rows, grid.shape[0], "row"), label_axis(columns, grid.shape[1], "column")

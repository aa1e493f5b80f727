"""What every picture needs: any kind of numbers as a grid, coarser where it is too fine, and labels that can be read.

A grid too fine for its picture is made coarser without losing its peaks.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from regard.errors import ShapeError
from regard.tokens.visible import cut, visible

LONGEST = 18  # columns of a label
Grid = Float64[np.ndarray, "_rows _columns"]


def as_grid(values: Any) -> Grid:
    """Rows × columns in float64, from an array, a tensor, an attention map or nested lists.

    NaN and −∞ both come out as NaN: what may not be looked at.

    >>> as_grid([[0, 1], [float("-inf"), 2]])
    array([[ 0.,  1.],
           [nan,  2.]])
    """
    if hasattr(values, "detach"):  # a torch tensor, also bfloat16, which NumPy does not know
        values = values.detach().cpu().double().numpy()
    elif hasattr(values, "numpy"):
        values = values.numpy()
    grid = np.array(values, dtype=np.float64)
    if grid.ndim != 2 or 0 in grid.shape:
        raise ShapeError(
            f"a picture shows rows × columns, at least one of each, but the values have shape {grid.shape}; "
            f"choose two axes, for example weights[0, 3] of (b, h, q, k)"
        )
    grid[np.isneginf(grid)] = np.nan
    return grid


def coarsen(grid: Grid, rows: int, columns: int) -> tuple[Grid, tuple[int, int]]:
    """At most `rows` × `columns` cells, each the value furthest from zero in its block; and a block's size.

    A cell is hidden only if all of its block is hidden.

    >>> coarsen(as_grid([[1, 2, 3], [4, -9, 6]]), 1, 2)
    (array([[-9.,  6.]]), (2, 2))
    """
    r, c = -(-grid.shape[0] // rows), -(-grid.shape[1] // columns)  # rounded up
    if r <= 1 and c <= 1:
        return grid, (1, 1)
    beyond = [(0, -size % block) for size, block in zip(grid.shape, (r, c), strict=True)]
    padded = np.pad(grid, beyond, constant_values=np.nan)
    shape = padded.shape[0] // r, r, padded.shape[1] // c, c
    blocks = padded.reshape(shape).swapaxes(1, 2).reshape(shape[0], shape[2], r * c)
    furthest = np.where(np.isnan(blocks), -1.0, np.abs(blocks)).argmax(-1)
    return np.take_along_axis(blocks, furthest[..., None], axis=-1)[..., 0], (r, c)


def describe_cell(block: tuple[int, int], diverging: bool = False) -> str:
    """What one cell stands for where it is not one weight."""
    if block == (1, 1):
        return ""
    return f"each cell is the {'furthest from 0' if diverging else 'largest'} of {block[0]} × {block[1]}"


def label_axis(labels: Sequence[str] | None, count: int, what: str) -> list[str]:
    """One name for each row or column: those given, or their numbers.

    >>> label_axis(None, 3, "row")
    ['0', '1', '2']
    """
    if labels is None:
        return [str(i) for i in range(count)]
    if len(labels) != count:
        raise ShapeError(f"{len(labels)} {what} labels came for {count} {what}s; give one for each")
    return [str(label) for label in labels]


def clean_label(label: str, longest: int = LONGEST) -> str:
    """A label fit to draw: outer blanks and control characters visible, a long one cut in the middle.

    >>> clean_label(" cat\\n"), clean_label("\\x1b[2J"), clean_label("incomprehensibilities")
    ('·cat⏎', '␛[2J', 'incompreh…bilities')
    """
    return cut(visible(label), longest)

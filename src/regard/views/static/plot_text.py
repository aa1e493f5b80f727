"""A curve made of text: it reads in a terminal, through a pipe and in a log."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

EIGHTHS = " ▁▂▃▄▅▆▇█"


def plot_text(points: Sequence[tuple[int, float]], *, width: int = 72, height: int = 6) -> str:
    """Values over steps, each column the mean of its steps; the highest and the lowest value stand beside them.

    Between points that are further apart than a column, the line is straight. The lowest value is the lowest mark, not
    nothing: the axis does not begin at zero.

    >>> print(plot_text([(1, 8.0), (20, 4.0), (40, 2.0), (60, 1.5)], width=24, height=3))
      8 │█▆▃▁
        │████▇▄▂▁
    1.5 │████████▇▆▅▄▃▂▂▂▂▁▁
         1                60
    """
    steps = np.array([step for step, _ in points], dtype=np.float64)
    values = np.array([value for _, value in points], dtype=np.float64)
    labels = [f"{values.max():.4g}", f"{values.min():.4g}"]
    left = max(map(len, labels))
    columns = fill_columns(steps, values, max(width - left - 2, 2))
    span = values.max() - values.min()
    marks = np.full(len(columns), 4 * height) if span == 0 else 1 + (8 * height - 1) * (columns - values.min()) / span
    rows = ["".join(EIGHTHS[int(np.clip(np.round(mark) - 8 * row, 0, 8))] for mark in marks) for row in range(height)]
    beside = [labels[0], *[""] * (height - 2), labels[1]] if height > 1 and span else [labels[0], *[""] * (height - 1)]
    lines = [f"{name:>{left}} │{row}".rstrip() for name, row in zip(beside, reversed(rows))]
    first, last = f"{steps[0]:,.0f}", f"{steps[-1]:,.0f}"
    between = len(columns) - len(first) - len(last)
    below = first + " " * between + last if between > 0 and len(points) > 1 else first
    return "\n".join([*lines, " " * (left + 2) + below])


def fill_columns(
    steps: Float64[np.ndarray, "_n"], values: Float64[np.ndarray, "_n"], count: int
) -> Float64[np.ndarray, "_columns"]:
    """The mean of the values in each of `count` columns of steps; columns without any lie between their neighbours."""
    if len(steps) == 1:
        return np.full(count, values[0])
    places = np.minimum((steps - steps[0]) / max(steps[-1] - steps[0], 1) * count, count - 1).astype(int)
    sums, numbers = np.bincount(places, values, count), np.bincount(places, minlength=count)
    known = np.flatnonzero(numbers)
    return np.interp(np.arange(count), known, sums[known] / numbers[known])

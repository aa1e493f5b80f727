"""Curves made of text."""

import numpy as np
import pytest

from regard.tokens.visible import columns
from regard.views.static.plot_text import EIGHTHS, plot_text


def heights(text: str) -> list[int]:
    """How high each column stands, in eighths, read back from the picture."""
    *rows, _ = text.splitlines()
    bars = [row.partition("│")[2] for row in rows]
    wide = max(map(len, bars))
    return [sum(EIGHTHS.index(bar.ljust(wide)[i]) for bar in bars) for i in range(wide)]


def test_columns_are_as_high_as_the_values_are():
    steps = np.arange(60)
    values = 3 + np.sin(steps / 9)
    text = plot_text(list(zip(steps.tolist(), values.tolist())), width=60 + 7, height=7)
    drawn = heights(text)
    assert len(drawn) == 60
    wanted = 1 + (8 * 7 - 1) * (values - values.min()) / (values.max() - values.min())
    assert np.abs(np.array(drawn) - wanted).max() <= 0.5
    assert text.splitlines()[0].split()[0] == f"{values.max():.4g}"
    assert text.splitlines()[-2].split()[0] == f"{values.min():.4g}"


def test_many_points_become_the_mean_of_their_column_and_few_are_joined_by_a_line():
    many = [(step, float(step // 50)) for step in range(1000)]  # twenty even stairs
    assert heights(plot_text(many, width=20 + 4, height=2)) == [round(1 + 15 * i / 19) for i in range(20)]
    two = heights(plot_text([(0, 0.0), (10, 1.0)], width=18, height=3))
    assert two == sorted(two)
    assert len(set(two)) > 10


@pytest.mark.parametrize("width", [1, 5, 20, 80])
@pytest.mark.parametrize("points", [[(7, 2.5)], [(1, 3.0), (1000, 3.0)], [(5, -1e-9), (6, 1e9)], [(3, 0.0)] * 2])
def test_it_fits_its_width_and_bears_a_point_and_a_flat_line(points, width):
    text = plot_text(points, width=width)
    labels = max(len(f"{value:.4g}") for _, value in points)
    assert all(columns(line) <= max(width, labels + 4, labels + 2 + len("1,000")) for line in text.splitlines())
    assert len(text.splitlines()) == 7

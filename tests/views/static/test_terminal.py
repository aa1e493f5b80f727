"""Pictures and tables made of text."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.errors import ShapeError
from regard.views.static.terminal import shade, table


def test_darker_is_more_blank_is_nothing_and_a_dot_is_hidden():
    assert shade([[1.0, 0.75, 0.5, 0.25, 1e-9, 0.0, float("nan")]]) == "██▓▓▒▒░░░░  ··"


def test_several_pictures_can_share_a_scale():
    assert shade([[0.5, 0.25]]) == "██▒▒"
    assert shade([[0.5, 0.25]], most=1.0) == "▒▒░░"


def test_negative_values_start_the_scale():
    assert shade([[-2.0, 0.0, 2.0]]) == "  ▒▒██"


def test_all_hidden_and_all_zero_are_drawn():
    assert shade(np.full((1, 2), -np.inf)) == "····"
    assert shade(torch.zeros(1, 2)) == ""


def test_a_map_too_wide_becomes_coarser_keeps_its_peak_and_says_so():
    values = np.zeros((300, 300))
    values[100, 200] = 1.0
    *lines, note = shade(values).splitlines()
    assert note == "each mark is the largest of 8 × 4 values"
    assert [(i, line.index("█")) for i, line in enumerate(lines) if line] == [(100 // 8, 200 // 4)]


@given(st.integers(1, 50), st.integers(1, 300), st.integers(20, 120), st.integers(0, 8))
def test_a_picture_never_exceeds_its_width(rows, columns, width, indent):
    lines = shade(np.ones((rows, columns)), ["猫"] * rows, width=width, indent=indent).splitlines()
    assert max(cell_len(line) for line in lines if "each mark" not in line) <= width


def test_columns_line_up_under_names_in_any_script():
    drawn = table([[0.5, np.nan], [0.25, 12.0]], ["猫", "cat"], ["The", "垫子上"])
    assert drawn.splitlines() == [
        "         The   垫子上",
        "猫    0.5000        ·",
        "cat   0.2500  12.0000",
    ]
    assert len({cell_len(line) for line in drawn.splitlines()}) == 1


def test_columns_beyond_the_width_are_counted():
    *lines, note = table(np.ones((2, 30)), digits=2).splitlines()
    assert max(map(len, lines)) <= 80
    shown = len(lines[1].split()) - 1
    assert note == f"… {30 - shown} more columns"


def test_wrong_sizes_are_refused_with_advice():
    with pytest.raises(ShapeError, match="3 column labels came for 2 columns; give one for each"):
        table(np.eye(2), column_labels=["a", "b", "c"])
    with pytest.raises(ShapeError, match=r"shape \(4,\); choose two axes"):
        shade(np.ones(4))

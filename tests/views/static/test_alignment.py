"""The alignment as text: what can be read back from it, and what no text can do to a terminal."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ShapeError
from regard.tokens.visible import columns
from regard.views.static.alignment import alignment_text


@given(st.text(st.characters(), max_size=30), st.text(st.characters(), max_size=30))
def test_no_text_at_all_breaks_the_terminal(one, other):
    drawn = alignment_text([[0.25, 0.75]], [other], [one, other])
    assert len(drawn.split("\n")) == 4
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u2028\u202e]", drawn)


def test_a_row_of_which_all_is_hidden_looks_at_nothing():
    assert alignment_text([[float("nan")] * 2], ["x"], ["1", "2"]).endswith("x ← nothing")


@pytest.mark.parametrize(("rows", "keys"), [(["a"], ["b", "c"]), (["a", "b"], ["c"])])
def test_names_that_do_not_fit_their_numbers_are_refused(rows, keys):
    with pytest.raises(ShapeError, match=r"1 (row|column) labels came for 2"):
        alignment_text(np.full((2, 2), 0.5), rows, keys)


def test_a_map_too_wide_for_a_terminal_is_a_list_of_the_strongest():
    weights = np.eye(40)[::-1]
    names = [f"token{i}" for i in range(40)]
    lines = alignment_text(weights, names, names).split("\n")
    assert lines == [f"token{i} ← token{39 - i} 1.00" for i in range(40)]
    assert "█1.0" in alignment_text(weights, names, names, width=500)
    assert max(map(columns, alignment_text(np.eye(2), ["猫" * 50, "b"], ["c" * 90, "d"]).split("\n"))) < 160

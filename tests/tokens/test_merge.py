"""Pieces merged to words, compared with loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from regard.errors import ShapeError
from regard.tokens import Tokens, groups, merge_tokens, merge_weights, patches, read
from regard.tokens.merge import owners
from tests.tokens import made
from tests.tokens.test_read import TEXT, check_laws

ROWS, COLUMNS = [slice(0, 1), slice(1, 4), [4]], [[0, 1], slice(2, 3), [3, 4, 5, 6]]


def by_loops(weights, rows, columns):
    out = torch.zeros(*weights.shape[:-2], len(rows), len(columns), dtype=torch.float64)
    places = [[list(range(size)[part]) if isinstance(part, slice) else part for part in parts]
              for parts, size in ((rows, weights.shape[-2]), (columns, weights.shape[-1]))]  # fmt: skip
    for r, queries in enumerate(places[0]):
        for c, keys in enumerate(places[1]):
            for i in queries:
                for j in keys:
                    out[..., r, c] += weights[..., i, j].double() / len(queries)
    return out


def test_rows_are_averaged_and_columns_added():
    weights = torch.rand(2, 3, 5, 7, dtype=torch.float64).softmax(-1)
    merged = merge_weights(weights, ROWS, COLUMNS)
    assert_close(merged, by_loops(weights, ROWS, COLUMNS))
    assert_close(merged.sum(-1), torch.ones(2, 3, 3, dtype=torch.float64))


def test_either_axis_can_be_left_as_it_is():
    weights = torch.rand(5, 7, dtype=torch.float64)
    assert_close(merge_weights(weights, ROWS), by_loops(weights, ROWS, [[j] for j in range(7)]))
    assert_close(merge_weights(weights, None, COLUMNS), by_loops(weights, [[i] for i in range(5)], COLUMNS))
    assert merge_weights(weights).equal(weights)


def test_groups_need_not_be_neighbours():
    weights = torch.rand(4, 3, dtype=torch.float64)
    parts = [[0, 3], [2, 1]], [[1], [2, 0]]
    assert_close(merge_weights(weights, *parts), by_loops(weights, *parts))


def test_block_by_block_is_the_same_to_the_last_bit():
    weights = torch.rand(3, 40, 30).softmax(-1)
    rows, columns = [slice(at, at + 4) for at in range(0, 40, 4)], [slice(at, at + 3) for at in range(0, 30, 3)]
    whole, keys = merge_weights(weights, rows, columns), owners(columns, 30)
    blocks = [merge_weights(weights[:, at : at + 8], [slice(0, 4), slice(4, 8)], keys) for at in range(0, 40, 8)]
    assert torch.cat(blocks, -2).equal(whole)


def test_half_precision_is_added_in_single():
    weights = torch.rand(5, 7).to(torch.bfloat16)
    merged = merge_weights(weights, ROWS, COLUMNS)
    assert merged.dtype == torch.float32
    assert_close(merged.double(), by_loops(weights, ROWS, COLUMNS), rtol=1e-6, atol=0)


def test_gradients_pass_through():
    weights = torch.rand(5, 7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: merge_weights(w, ROWS, COLUMNS), weights)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[0, 1], [1, 2, 3, 4]], "row 1 is in groups 0 and 1"),
        ([[0, 1], [2]], "leave out 2 of 5 rows"),
        ([[0, 1, 2, 3, 4, 5]], "row 5, but there are 5"),
        ([[-1, 0, 1, 2, 3]], "row -1, but there are 5"),
        ([slice(0, 5), slice(5, 6)], "group 1 is empty"),
        (torch.arange(4), "owners came as .4,. for 5 rows"),
    ],
    ids=str,
)
def test_groups_that_do_not_fit_are_refused(rows, said):
    with pytest.raises(ShapeError, match=said):
        merge_weights(torch.rand(5, 7), rows)


def test_words_are_shown_whole_and_without_their_space():
    tokenizer = made.byte_level()
    merged = merge_tokens(read(tokenizer, tokenizer.encode("The naïve cat 𓀀 didn't!\n").ids))
    assert merged.shown == ("The", "naïve", "cat", "𓀀", "didn't", "!", "⏎")
    assert merged.offsets == ((0, 3), (3, 9), (9, 13), (13, 15), (15, 22), (22, 23), (23, 24))
    assert merged.words == tuple(range(7))
    assert merged.ids is None


def test_special_tokens_and_what_has_no_words_stay_alone():
    tokens = Tokens.of(["[CLS]", "[CLS]", "un", "##seen"])
    assert groups(tokens) == [slice(0, 1), slice(1, 2), slice(2, 4)]
    assert merge_tokens(tokens).special == (True, True, False)
    assert groups(Tokens(())) == []
    assert groups(Tokens((), words=())) == []
    for alone in (Tokens.of(["cat", "sat"]), patches(2, 3)):
        assert merge_tokens(alone) is alone


def test_words_without_a_text_are_their_pieces_together():
    assert merge_tokens(Tokens(("un", "seen", "cat"), words=(4, 4, 9))).shown == ("unseen", "cat")


def test_where_nothing_merges_ids_stay():
    tokens = Tokens(("a", "b"), ids=(5, 7), words=(0, 1))
    assert merge_tokens(tokens) == tokens


@pytest.mark.parametrize("name", made.EVERY)
@settings(max_examples=25)
@given(text=TEXT)
def test_merged_tokens_obey_the_same_laws(name, text):
    tokenizer = made.EVERY[name]()
    tokens = read(tokenizer, tokenizer.encode(text).ids)
    merged = merge_tokens(tokens)
    check_laws(merged, " " if name in made.GLUED else "")
    assert merged.text == tokens.text
    assert len(merged) == len(groups(tokens))
    assert merge_tokens(merged).shown == merged.shown


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_a_row_still_adds_to_one(sizes):
    count = sum(sizes)
    parts = [slice(sum(sizes[:at]), sum(sizes[: at + 1])) for at in range(len(sizes))]
    weights = torch.rand(count, count, dtype=torch.float64)
    weights = weights / weights.sum(-1, keepdim=True)
    merged = merge_weights(weights, parts, parts)
    assert_close(merged.sum(-1), torch.ones(len(sizes), dtype=torch.float64))

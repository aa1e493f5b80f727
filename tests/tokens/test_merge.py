"""Pieces merged to words."""

import pytest
from hypothesis import given, settings

from regard.tokens import Tokens, groups, merge_tokens, patches, read
from tests.tokens import made
from tests.tokens.test_read import TEXT, check_laws


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

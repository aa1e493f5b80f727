"""Real tokenizers, any text: the tokens say the text, and nothing in them is hidden."""

import unicodedata

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import TraceError
from regard.tokens import Reader, Tokens, read
from tests.tokens import made

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.lists(
    st.sampled_from(
        [*" ".join(made.LINES), *"\u200d\u200f\u202e\x00\x1b\u2028\u3000𓀀ﷺ", " the", "猫", "👩‍👧", "##", "▁"]
    ),
    max_size=40,
).map("".join)


def check_laws(tokens: Tokens, glue: str = "") -> None:
    """Offsets are in range and in order, cover all of the text but glue, and nothing shown is hidden."""
    assert tokens.text is not None
    assert tokens.offsets is not None
    assert tokens.special is not None
    assert tokens.words is not None
    start = stop = 0
    for offset, special, word in zip(tokens.offsets, tokens.special, tokens.words):
        assert (offset is None) == (word is None)
        assert not (special and offset is not None)
        if offset is None:
            continue
        first, last = offset
        assert 0 <= first <= last <= len(tokens.text)
        assert first >= start
        assert last >= stop
        assert set(tokens.text[stop:first]) <= set(glue)
        start, stop = first, max(stop, last)
    assert stop == len(tokens.text)
    words = [word for word in tokens.words if word is not None]
    assert words == sorted(words)
    assert set(words) == set(range(len(set(words))))
    for shown in tokens.shown:
        assert shown
        check_visible(shown)


def check_visible(shown: str) -> None:
    for character in shown:
        joiner = character in "\u200c\u200d"
        assert joiner or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"), shown
    assert shown == shown.strip()


@pytest.mark.parametrize("name", made.EVERY)
@settings(max_examples=40)
@given(text=TEXT)
def test_any_text_is_read_as_the_tokenizer_decodes_it(name, text):
    tokenizer = made.EVERY[name]()
    ids = tokenizer.encode(text).ids
    tokens = read(tokenizer, ids)
    assert len(tokens) == len(ids)
    assert tokens.text == tokenizer.decode(ids)
    check_laws(tokens, glue=" " if name in made.GLUED else "")


@settings(max_examples=100)
@given(text=TEXT)
def test_byte_level_offsets_are_those_of_the_encoder(text):
    encoding = made.byte_level().encode(text)
    tokens = read(made.byte_level(), encoding.ids)
    assert tokens.text == text
    assert list(tokens.offsets) == encoding.offsets


@settings(max_examples=100)
@given(
    words=st.lists(st.sampled_from(["playing", "cats", "unbelievable", "кошка", "猫", "3", "собака", ","]), max_size=9)
)
def test_offsets_and_words_of_word_pieces_are_those_of_the_encoder(words):
    text = " ".join(words).replace(" ,", ",")
    encoding = made.word_piece().encode(text)
    tokens = read(made.word_piece(), encoding.ids)
    assert tokens.text == text
    theirs = zip(encoding.offsets, encoding.special_tokens_mask)
    assert list(tokens.offsets) == [None if special else offset for offset, special in theirs]
    assert firsts(tokens.words) == firsts(encoding.word_ids)
    assert list(tokens.special) == [bool(special) for special in encoding.special_tokens_mask]


def firsts(words):
    """Whether each token begins a word, which does not depend on how words are counted."""
    return [word is None or word != before for before, word in zip([None, *words], words)]


@settings(max_examples=50)
@given(ids=st.lists(st.integers(0, 419), max_size=30))
def test_any_ids_are_read_even_where_their_bytes_are_no_text(ids):
    for name in ("byte-level", "by decoding", "unigram", "Llama"):
        known = [token for token in ids if made.EVERY[name]().id_to_token(token) is not None]
        check_laws(read(made.EVERY[name](), known))
    assert read(made.byte_level(), ids).text == made.byte_level().decode(ids)


def test_a_character_in_several_tokens_is_never_bytes():
    tokenizer = made.byte_level()
    tokens = read(tokenizer, tokenizer.encode("a 𓀀").ids)
    assert tokens.shown == ("a", "·", "𓀀⟨1/4⟩", "𓀀⟨2/4⟩", "𓀀⟨3/4⟩", "𓀀⟨4/4⟩")
    assert tokens.offsets == ((0, 1), (1, 2), *[(2, 3)] * 4)
    assert tokens.words == (0, 1, 1, 1, 1, 1)
    cut = read(tokenizer, tokenizer.encode("a 𓀀").ids[:-1])
    assert cut.shown == ("a", "·", "⟨F0⟩", "⟨93⟩", "⟨80⟩")
    assert cut.text == "a \ufffd"
    assert cut.offsets[2:] == ((2, 3),) * 3


@pytest.mark.parametrize("name", ["unigram", "Llama", "Gemma"])
def test_bytes_that_stand_for_what_the_vocabulary_lacks_are_characters_again(name):
    tokenizer = made.EVERY[name]()
    tokens = read(tokenizer, tokenizer.encode("cat 𓀀\r").ids)
    shown = [shown for shown, special in zip(tokens.shown, tokens.special) if not special]
    assert shown[-5:] == ["𓀀⟨1/4⟩", "𓀀⟨2/4⟩", "𓀀⟨3/4⟩", "𓀀⟨4/4⟩", "␍"]
    assert tokens.text == "cat 𓀀\r"


def test_an_unknown_id_is_shown_as_one_and_stands_for_no_text():
    ids = made.byte_level().encode("cat").ids
    tokens = read(made.byte_level(), [-100, *ids, 999_999, 2**40])
    assert (tokens.shown[0], *tokens.shown[-2:]) == ("⟨id -100⟩", "⟨id 999999⟩", "⟨id 1099511627776⟩")
    assert tokens.text == "cat"
    assert tokens.offsets[0] is None
    assert not any(tokens.special)


def test_an_added_token_is_what_it_says():
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(made.byte_level().to_str())
    tokenizer.add_tokens(["<café>"])
    tokens = read(tokenizer, tokenizer.encode("a<café> b").ids)
    assert tokens.text == "a<café> b"
    assert "<café>" in tokens.shown


@pytest.mark.parametrize(
    "ids",
    [[3, 5], (3, 5), range(3, 5), torch.tensor([3, 5]), np.array([3, 5], dtype=np.int32)],
    ids=lambda x: type(x).__name__,
)
def test_ids_come_as_any_sequence(ids):
    assert len(read(made.byte_level(), ids)) == 2


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (7, "not int"),
        ("cat", "not str"),
        (torch.tensor([[3, 5]]), "more than one axis"),
        (torch.tensor(3), "not Tensor"),
        ([[3], [5]], "more than one axis"),
        ([0.5], "one of them is float"),
        ([True], "one of them is bool"),
        ([None], "one of them is NoneType"),
        ({"input_ids": [3]}, "not dict"),
    ],
    ids=str,
)
def test_what_are_no_ids_is_refused_in_a_sentence(ids, said):
    with pytest.raises(TraceError, match=said):
        read(made.byte_level(), ids)


@pytest.mark.parametrize(
    ("tokenizer", "said"),
    [
        (7, "a int came, which can neither decode ids nor spell them"),
        (None, "a NoneType came"),
        ({"cat": 3}, "a dict came"),
        ("bert-base-uncased", "the string 'bert-base-uncased' came"),
        (b"cat", "the string b'cat' came"),
        (Reader, "the class Reader came"),
        (["the", 5], "one of them is int"),
        (["a", "b", "c"], "3 token strings came for 2 ids; give one string per id"),
    ],
    ids=str,
)
def test_what_is_no_tokenizer_is_refused_in_a_sentence(tokenizer, said):
    with pytest.raises(TraceError, match=said):
        read(tokenizer, [3, 5])


def test_a_tokenizer_of_other_ids_is_refused():
    with pytest.raises(TraceError, match="knows none of the 2 ids, such as 900000"):
        read(made.word_piece(), [900_000, 900_001])


def test_strings_instead_of_a_tokenizer_keep_their_ids():
    tokens = read(["[CLS]", "New York", "cat\n"], torch.tensor([101, 7, 9]))
    assert tokens.shown == ("[CLS]", "New York", "cat⏎")
    assert tokens.ids == (101, 7, 9)
    assert tokens.special == (True, False, False)


def test_a_reader_is_used_many_times_and_says_the_same():
    reader = Reader(made.unigram())
    for line in made.LINES[:5]:
        ids = made.unigram().encode(line).ids
        assert reader(ids) == read(made.unigram(), ids)
        assert reader(ids).text == line

"""Tokens themselves: what is visible, what is short, and strings as they are spelled."""

import unicodedata
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import TraceError
from regard.tokens import Tokens
from regard.tokens.assemble import characters
from regard.tokens.decoders import ALPHABET
from regard.tokens.visible import columns, cut, visible
from regard.tokens.words import starts_word
from tests.tokens.test_read import check_visible

SEEN = [
    ("cat", "cat"),
    (" cat", "·cat"),
    ("cat  ", "cat··"),
    ("   ", "···"),
    ("New York", "New York"),
    ("a\nb\tc\r", "a⏎b⇥c␍"),
    ("\x00\x1b\x7f", "␀␛␡"),
    ("\x85", "⟨U+0085⟩"),
    ("\u200fשלום", "⟨U+200F⟩שלום"),
    ("a\u202eb", "a⟨U+202E⟩b"),
    ("\ufeffx\u00adx\u3000", "⟨U+FEFF⟩x⟨U+00AD⟩x⟨U+3000⟩"),
    ("a\u200db", "a⟨U+200D⟩b"),
    ("👩‍👧", "👩‍👧"),
    ("می‌خواهم", "می‌خواهم"),
    ("\u200d👧", "⟨U+200D⟩👧"),
    ("\u0301a\u0301", "◌\u0301a\u0301"),
    (" \u0301", "·◌\u0301"),
    ("☀\ufe0f", "☀\ufe0f"),
    ("\ufe0f", "⟨U+FE0F⟩"),
    ("\ud800\ue000\uffff", "⟨U+D800⟩⟨U+E000⟩⟨U+FFFF⟩"),
    ("ㅤ\u2800", "⟨U+3164⟩⟨U+2800⟩"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "shown"), SEEN, ids=[ascii(text) for text, _ in SEEN])
def test_nothing_is_hidden(text, shown):
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_whatever_the_text_no_character_of_what_is_shown_acts(text):
    check_visible(visible(text))
    visible(text).encode("utf-8")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 30))
def test_a_short_text_fits_and_is_cut_only_in_its_middle(text, width):
    shown = visible(text)
    short = cut(shown, width)
    assert columns(short) <= width
    if columns(shown) <= width:
        assert short == shown
        return
    head, _, tail = short.partition("…") if "…" not in shown else (short, "", "")
    assert "…" in shown or (shown.startswith(head) and shown.endswith(tail))
    assert "…" in shown or tail == "" or unicodedata.category(tail[0])[0] != "M"


def test_a_short_text_keeps_letters_with_their_marks_and_names_whole():
    assert cut("e\u0301e\u0301e\u0301e\u0301e\u0301", 3) == "e\u0301…e\u0301"
    assert cut("a⟨U+200F⟩bcdef", 6) == "a…ef"
    assert cut("人工智能", 1) == "…"


def test_tokens_are_shortened_for_axes():
    assert Tokens.of(["cat", "Donaudampfschifffahrt"]).short(5) == ("cat", "Do…rt")
    with pytest.raises(TraceError, match="in 0 columns; give 1 or more"):
        Tokens.of(["cat"]).short(0)


def test_tokens_do_not_change_and_have_one_entry_each():
    tokens = Tokens(("a", "b"))
    with pytest.raises(FrozenInstanceError):
        tokens.text = "ab"
    with pytest.raises(TraceError, match="2 tokens came with 3 ids; give one per token"):
        Tokens(("a", "b"), ids=(1, 2, 3))


def test_some_tokens_are_picked_with_all_that_is_known_of_them():
    tokens = Tokens.of(["[CLS]", "un", "##seen", "cat"]).pick([3, 0])
    assert tokens == Tokens(("cat", "[CLS]"), None, ((7, 10), None), (False, True), (1, None), "unseen cat")
    with pytest.raises(TraceError, match="token 5 was asked for, but there are 2"):
        tokens.pick([5])


def test_a_long_sequence_has_a_short_repr():
    assert len(repr(Tokens.of(["internationalisation"] * 5000))) < 160
    assert repr(Tokens.of(["a", "b"])) == "Tokens(2: a b; special)"


SPELLED = [
    (["The", "Ġcat", "Ċ"], "The cat\n", ("The", "·cat", "⏎")),
    (["ðŁĺ", "Ģ", "Ġok"], "😀 ok", ("😀⟨1/2⟩", "😀⟨2/2⟩", "·ok")),
    (["▁The", "▁cat", "s", "<0x0A>", "</s>"], "The cats\n", ("The", "·cat", "s", "⏎", "</s>")),
    (["[CLS]", "play", "##ing", ",", "[SEP]"], "playing,", ("[CLS]", "play", "ing", ",", "[SEP]")),
    (["the</w>", "ca", "t</w>"], "the cat", ("the", "ca", "t")),
    (["<0xE7>", "<0x8C>", "<0xAB>"], "猫", ("猫⟨1/3⟩", "猫⟨2/3⟩", "猫⟨3/3⟩")),
    (["cat", "sat"], None, ("cat", "sat")),
    (["## title", "##x"], None, ("## title", "##x")),
    (["#", "###"], None, ("#", "###")),
    (["Ġorġ", "mar"], None, ("Ġorġ", "mar")),
    (["Ġesù"], None, ("Ġesù",)),
    (["Ġa", "我"], None, ("Ġa", "我")),
    (["", " "], None, ("∅", "·")),
    ([], None, ()),
]


@pytest.mark.parametrize(("words", "text", "shown"), SPELLED, ids=[" ".join(words) for words, _, _ in SPELLED])
def test_strings_are_read_as_they_are_spelled_or_as_they_are(words, text, shown):
    tokens = Tokens.of(words)
    assert (tokens.text, tokens.shown) == (text, shown)


@pytest.mark.parametrize(
    ("words", "said"), [("cat", "one string, 'cat'"), (7, "not int"), (["a", None], "is NoneType")]
)
def test_what_are_no_strings_is_refused(words, said):
    with pytest.raises(TraceError, match=said):
        Tokens.of(words)


def test_the_letters_of_bytes_are_those_of_the_tokenizers_package():
    from tokenizers import pre_tokenizers

    assert set(ALPHABET) == set(pre_tokenizers.ByteLevel.alphabet())
    assert sorted(ALPHABET.values()) == list(range(256))
    for byte in range(128):
        (spelled, _), *_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(chr(byte))
        assert ALPHABET[spelled] == byte


@given(st.binary(max_size=40), st.integers(0, 9))
def test_bytes_become_characters_as_python_makes_them_wherever_they_are_cut(data, before):
    for padding in (b"", b"x" * (4096 - before)):
        text, starts = characters(padding + data)
        assert text == (padding + data).decode("utf-8", "replace")
        assert len(starts) == len(text) + 1
        assert starts[-1] == len(padding + data)


def test_characters_over_many_windows_start_where_they_start():
    line = "aé猫😀" * 3000
    text, starts = characters(line.encode())
    assert text == line
    assert starts[:6] == [0, 1, 3, 6, 10, 11]
    assert starts[-1] == len(line.encode())


CUTS = [
    ("play|ing", False), ("the| cat", True), ("the |cat", True), ("cat|,", True), ("don|'t", False), ("don'|t", False),
    ("'|tis", True), ("3|.14", False), ("3.|14", False), ("end|.", True), (".|.", False), ("喜|欢", True),
    ("cat|猫", True), ("แ|ม", True), ("น|ั", False), ("e|\u0301", False), ("👩|‍👧", False), ("👩‍|👧", False),
    ("👍|🏽", False), ("😀|😀", True), ("🇩|🇪", False), ("🇩🇪|🇫🇷", True), ("🇩🇪🇫|🇷", False), ("x_|y", False),
    ("кош|ка", False), ("a|1", False), ("\n|a", True), ("\n|\n", True), ("!|?", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "starts"), CUTS, ids=[ascii(text) for text, _ in CUTS])
def test_words_begin_where_people_see_them_begin(text, starts):
    left, right = text.split("|")
    assert starts_word(left + right, len(left), left) == starts


def test_a_token_of_spaces_belongs_to_the_word_after_it():
    assert not starts_word("a cat", 2, " ")

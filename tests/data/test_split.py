"""No sentence stands in two parts, whatever its translations, its order or its case."""

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.pairs import Pair, read_pairs
from regard.data.split import fold_text, references, split
from regard.errors import DataError

SENTENCES = st.text(alphabet="abAB .!é", min_size=1, max_size=4)
PAIRS = st.lists(st.builds(Pair, SENTENCES, st.sampled_from("xyz")), max_size=40)


def plain(text: str) -> str:
    """The letters of a text in the alphabet above, by another way."""
    return text.casefold().translate(str.maketrans("", "", " .!")) or text


@given(PAIRS, st.integers(0, 9), st.randoms())
def test_parts_hold_every_pair_once_and_share_no_sentence(pairs, seed, order):
    distinct = {plain(pair.source) for pair in pairs}
    assert {fold_text(pair.source) for pair in pairs} == {plain(one).casefold() for one in distinct}
    if len(distinct) < 6:
        return
    parts = split(pairs, validation=2, test=3, seed=seed)
    sources = [{plain(pair.source) for pair in part} for part in parts]
    assert [len(one) for one in sources] == [len(distinct) - 5, 2, 3]
    assert len(set.union(*sources)) == len(distinct)
    assert sorted(pair for part in parts for pair in part) == sorted(pairs)
    assert all(part == [pair for pair in pairs if plain(pair.source) in one] for part, one in zip(parts, sources))

    other = list(pairs)
    order.shuffle(other)
    assert [sorted(part) for part in split(other, validation=2, test=3, seed=seed)] == [sorted(part) for part in parts]


def test_seeds_differ_and_each_sentence_is_tested_about_equally_often():
    pairs = [Pair(f"sentence {n}", "x") for n in range(50)]
    tests = [
        frozenset(pair.source for pair in split(pairs, validation=3, test=10, seed=seed).test) for seed in range(200)
    ]
    assert len(set(tests)) == 200
    often = [sum(pair.source in test for test in tests) for pair in pairs]
    assert all(20 <= one <= 62 for one in often)  # 40 expected, standard deviation 5.7


def test_shares_are_rounded_and_nothing_may_be_asked_for():
    pairs = [Pair(f"sentence {n}", "x") for n in range(37)]
    assert [len(part) for part in split(pairs, validation=0.1, test=0.25, seed=1)] == [24, 4, 9]
    assert [len(part) for part in split(pairs, validation=0, test=0.0, seed=1)] == [37, 0, 0]


@pytest.mark.parametrize("wanted", [-1, -0.5, 1.0, 7.5, float("nan"), True], ids=str)
def test_a_number_that_is_neither_count_nor_share_is_refused(wanted):
    with pytest.raises(DataError, match=r"test is .*; give how many sentences, or a share"):
        split([Pair("a", "b"), Pair("c", "d")], validation=0, test=wanted, seed=0)


def test_parts_that_leave_nothing_to_learn_from_are_refused():
    pairs = [Pair("a", "b"), Pair("A!", "c"), Pair("d", "e"), Pair("f", "g")]
    with pytest.raises(
        DataError, match=r"1 sentences for validation and 2 for the test leave nothing .* 3 distinct ones"
    ):
        split(pairs, validation=1, test=2, seed=0)
    with pytest.raises(DataError, match="0 distinct ones"):
        split([], validation=0, test=0, seed=0)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What's up?", "whats  UP"),
        ("Straße", "STRASSE"),
        ("ＴＯＭ！", "tom"),
        ("cafe\u0301", "café"),
        ("他走了。", "他走了！"),
        ("x²", "x2"),
    ],
)
def test_sentences_that_differ_in_dress_are_one(one, other):
    assert fold_text(one) == fold_text(other)


@pytest.mark.parametrize(("one", "other"), [("?!", "..."), ("C++", "C"), ("他", "她"), ("a", "b"), ("café", "cafe")])
def test_sentences_that_differ_in_letters_or_signs_are_two(one, other):
    assert fold_text(one) != fold_text(other)


@given(st.text(st.characters(exclude_categories=("Cs", "Cn"))))
def test_punctuation_around_a_sentence_changes_nothing(text):
    if any(unicodedata.category(one)[0] in "LMNS" for one in fold_text(text)):
        assert fold_text(f"« {text} !»") == fold_text(text)


def test_references_are_all_translations_of_a_sentence():
    pairs = [Pair("a", "1"), Pair("b", "2"), Pair("a", "3"), Pair("a", "1"), Pair("A", "4")]
    assert references(pairs) == [("a", ["1", "3"]), ("b", ["2"]), ("A", ["4"])]


def test_tatoeba_splits_without_leaking_in_both_directions(shared):
    path = shared / "data" / "tatoeba-cmn-eng" / "cmn.tsv.gz"
    for swap in (False, True):
        pairs = read_pairs(path, swap=swap)[:9_719]
        random.Random(7).shuffle(pairs)
        parts = split(pairs, validation=50, test=150, seed=11)
        sources = [{fold_text(pair.source) for pair in part} for part in parts]
        assert [len(sources[1]), len(sources[2])] == [50, 150]
        assert sum(map(len, sources)) == len(set.union(*sources))
        assert sum(map(len, parts)) == len(pairs) == 9_719
        assert max(len(one.targets) for one in references(parts.test)) > 1

"""BPE-dropout beside `tokenizers`, beside algorithm 1 of its paper, and its laws."""

import json
from collections import Counter
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from regard.data import bpe_dropout
from regard.data.bpe_dropout import BpeDropout
from regard.data.bpe_splits import BpeSplits, split_words
from regard.data.grammar import sentences
from regard.data.special import END, UNKNOWN
from regard.data.vocabulary import Vocabulary
from regard.errors import ConfigError

ODD = [
    "Ünïcode – “quotes”",
    "naïve  cafés",
    "猫 and <eos> and \t tabs",
    "e\u0301 x\u0303",
    "🐈🐈 don't",
    "a",
    "aaaaaaaaaaaaa",
]


@cache
def learn(**settings) -> tuple[list[str], Vocabulary]:
    texts = [pair.source for pair in sentences(400, seed=3, part="train")]
    return texts, Vocabulary.train(texts, kind="bpe", **{"size": 900} | settings)


def list_rows(cut) -> list[list[int]]:
    return [cut[at] for at in range(len(cut.lengths))]


def write_out(vocabulary: Vocabulary, word: str, p: float) -> dict[tuple[str, ...], float]:
    """How likely each split of a word is by algorithm 1 of the paper, every choice of dropped merges in plain loops."""
    merges = [tuple(pair) for pair in json.loads(vocabulary.json)["model"]["merges"]]
    rank = {pair: at for at, pair in enumerate(merges)}
    ends: Counter[tuple[str, ...]] = Counter()
    open_splits = {tuple(word): 1.0}
    while open_splits:
        split, chance = open_splits.popitem()
        offers = sorted((rank[pair], at) for at, pair in enumerate(pairwise(split)) if pair in rank)
        for skipped, (_, at) in enumerate(offers):
            joined = (*split[:at], split[at] + split[at + 1], *split[at + 2 :])
            open_splits[joined] = open_splits.get(joined, 0.0) + chance * p**skipped * (1 - p)
        ends[split] += chance * p ** len(offers)
    return ends


@pytest.mark.parametrize("settings", [{}, {"byte_fallback": False}, {"lower": True}], ids=str)
def test_without_dropout_it_is_the_vocabulary(settings):
    texts, vocabulary = learn(**settings)
    texts = [*texts, *ODD]
    rows = list_rows(BpeDropout(texts, vocabulary, 0).cut(5))
    assert rows == [[*vocabulary.encode(text), END] for text in texts]
    assert (UNKNOWN in [one for row in rows for one in row]) == (settings == {"byte_fallback": False})


@pytest.mark.parametrize("p", [0.1, 0.5, 1])
def test_whatever_the_pieces_the_text_is_the_same(p):
    texts, vocabulary = learn()
    texts = [*texts, *ODD]
    rows = list_rows(BpeDropout(texts, vocabulary, p, seed=7).cut(2))
    assert [vocabulary.decode(row) for row in rows] == [vocabulary.decode(vocabulary.encode(text)) for text in texts]
    assert rows != list_rows(BpeDropout(texts, vocabulary, 0).cut(2))


def test_with_all_merges_dropped_only_characters_are_left():
    texts, vocabulary = learn()
    for text, row in zip(texts, list_rows(BpeDropout(texts, vocabulary, 1).cut(0)), strict=True):
        assert [vocabulary.tokenizer.id_to_token(one) for one in row[:-1]] == list("▁" + text.replace(" ", "▁"))


@pytest.mark.parametrize("p", [0.1, 0.4])
@pytest.mark.parametrize("word", ["teacher", "yesterday"])
def test_splits_are_as_likely_as_the_algorithm_of_the_paper_makes_them(p, word):
    _, vocabulary = learn()
    count = 20_000
    texts = BpeDropout([word] * count, vocabulary, p, seed=1)
    found = Counter(tuple(vocabulary.tokenizer.id_to_token(one) for one in row[:-1]) for row in list_rows(texts.cut(0)))
    wanted = write_out(vocabulary, "▁" + word, p)
    assert len(wanted) > 20
    assert sum(wanted.values()) == pytest.approx(1)
    assert found.keys() <= wanted.keys()
    for split, chance in wanted.items():
        assert abs(found[split] / count - chance) < 5 * (chance * (1 - chance) / count) ** 0.5 + 2 / count


def test_a_cut_is_a_function_of_seed_epoch_and_text_alone():
    texts, vocabulary = learn()
    dropout = BpeDropout(texts, vocabulary, 0.2, seed=4)
    whole = list_rows(dropout.cut(3))
    assert list_rows(BpeDropout(texts, vocabulary, 0.2, seed=4).cut(3)) == whole
    assert list_rows(dropout.cut(3, [70, 5, 311])) == [whole[70], whole[5], whole[311]]
    for other in (
        dropout.cut(2),
        BpeDropout(texts, vocabulary, 0.2, seed=5).cut(3),
        BpeDropout(texts, vocabulary, 0.2, seed=4, stream=1).cut(3),
    ):
        assert list_rows(other) != whole


def test_neither_portions_nor_what_is_kept_change_a_cut(monkeypatch):
    texts, vocabulary = learn()
    whole = list_rows(BpeDropout(texts, vocabulary, 0.3).cut(1))
    monkeypatch.setattr(bpe_dropout, "AT_ONCE", 100)
    monkeypatch.setattr(bpe_dropout, "MOST_SPLITS", 50)
    few = BpeDropout(texts, vocabulary, 0.3)
    few.cut(0)
    before = few.splits.age
    assert list_rows(few.cut(1)) == whole
    assert few.splits.age == before + 1


def test_two_texts_of_the_same_words_are_cut_on_their_own():
    _, vocabulary = learn()
    rows = list_rows(BpeDropout(["the teacher waits for the teacher"] * 40, vocabulary, 0.3).cut(0))
    assert len({tuple(row) for row in rows}) > 30


def test_a_text_that_would_become_too_long_is_cut_as_usual():
    texts, vocabulary = learn()
    usual = [[*vocabulary.encode(text), END] for text in texts]
    longest = max(map(len, usual)) - 1
    rows = list_rows(BpeDropout(texts, vocabulary, 0.6, longest=longest).cut(0))
    free = list_rows(BpeDropout(texts, vocabulary, 0.6).cut(0))
    assert max(map(len, free)) > longest + 1 >= max(map(len, rows))
    too_long = [len(row) > longest + 1 for row in free]
    assert any(too_long)
    assert not all(too_long)
    wanted = [one if long else other for long, one, other in zip(too_long, usual, free, strict=True)]
    assert rows == wanted


def test_texts_of_nothing_and_no_texts_are_cut_too():
    _, vocabulary = learn()
    assert list_rows(BpeDropout(["", "the cat", " "], vocabulary, 0).cut(0)) == [
        [END], [*vocabulary.encode("the cat"), END], [END],
    ]  # fmt: skip
    assert len(BpeDropout([], vocabulary, 0.1).cut(0).lengths) == 0


def test_words_are_split_as_the_tokenizer_splits_them():
    _, vocabulary = learn()
    words, rows = split_words(ODD, vocabulary)
    splits = BpeSplits(vocabulary)
    begun = np.asarray([splits.begin(word) for word in words])
    letters = [vocabulary.decode(splits.list_pieces(begun[row])[0]) for row in rows]
    assert letters == [vocabulary.normalise(text) for text in ODD]


def test_what_cannot_be_is_refused():
    texts, vocabulary = learn()
    for p in (-0.1, 1.5):
        with pytest.raises(ConfigError, match="give 0 to 1"):
            BpeDropout(texts, vocabulary, p)
    with pytest.raises(ConfigError, match="give one of kind 'bpe'"):
        BpeSplits(Vocabulary.train(texts, kind="characters"))

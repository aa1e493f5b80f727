"""Pairs that were read and found right, one or more of every pattern, and a few alignments word by word."""

from pathlib import Path

import pytest

from regard.data.grammar.aligned import AlignedPair, finish
from regard.data.grammar.draw import Draw
from regard.data.grammar.parts import PATTERNS, part_of

NAMED = {f"{one.__module__.rpartition('.')[2]}.{one.__name__.rstrip('_')}": one for one in PATTERNS}
GOLDEN = [line.split("\t") for line in (Path(__file__).parent / "golden.tsv").read_text("utf-8").splitlines()]


def said(pair: AlignedPair) -> dict[str, str]:
    """Each Chinese word with the English words that it means, in order; a word said twice is kept once."""
    return {
        word: " ".join(pair.source_words[source] for target, source in pair.links if target == index)
        for index, word in enumerate(pair.target_words)
    }


def found(pattern: str, source: str) -> AlignedPair:
    """The first sentence of a pattern that reads so."""
    for key in range(20_000):
        pair = finish(NAMED[pattern](Draw(str(key))), pattern)
        if pair.source == source:
            return pair
    raise AssertionError(f"{pattern} never says {source}")


def test_every_pattern_has_a_golden_pair():
    assert len(GOLDEN) >= 60
    assert {pattern for pattern, _, _ in GOLDEN} == set(NAMED)


@pytest.mark.parametrize(("pattern", "source", "target"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_a_pattern_says_what_was_read_and_found_right(pattern, source, target):
    pair = finish(NAMED[pattern](Draw(pattern)), pattern)
    assert (pair.source, pair.target) == (source, target)


def test_the_cat_sits_on_the_mat_in_training_and_every_word_means_the_right_one():
    pair = found("events.posture", "The cat sat on the mat.")
    assert pair.source_words == ("The", "cat", "sat", "on", "the", "mat", ".")
    assert pair.target == "猫坐在垫子上。"
    assert pair.target_words == ("猫", "坐", "在", "垫子", "上", "。")
    assert said(pair) == {"猫": "cat", "坐": "sat", "在": "on", "垫子": "mat", "上": "on", "。": "."}
    assert part_of(pair.source, len(pair.source_words)) == "train"


@pytest.mark.parametrize(
    ("pattern", "source", "words"),
    [
        ("things.exists", "There is a dog under the table.",
         {"桌子": "table", "下面": "under", "有": "There is", "一": "a", "只": "", "狗": "dog", "。": "."}),
        ("doing.went", "She went home yesterday.",
         {"她": "She", "昨天": "yesterday", "回": "went", "家": "home", "了": "went", "。": "."}),
        ("states.skill", "I cannot swim.", {"我": "I", "不": "cannot", "会": "cannot", "游泳": "swim", "。": "."}),
        ("questions.is_it", "Is she tired?", {"她": "she", "累": "tired", "吗": "Is", "\uff1f": "?"}),
        ("events.already", "He has not come back yet.",
         {"他": "He", "还": "yet", "没": "has not", "回来": "come back", "。": "."}),
        ("states.job", "Mr Wang is a teacher.",
         {"王": "Wang", "先生": "Mr", "是": "is", "一": "a", "位": "", "老师": "teacher", "。": "."}),
        ("requests.please", "Please sit down.", {"请": "Please", "坐下": "sit down", "。": "."}),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith((".", "?")) else "",
)  # fmt: skip
def test_words_mean_each_other(pattern, source, words):
    assert said(found(pattern, source)) == words

"""Parts that share no sentence, lists that depend on nothing but their names, and words that stay apart."""

import re
from itertools import pairwise

import pytest

from regard.data.grammar import PARTS, sentence, sentences, word_spans
from regard.data.grammar.draw import HELD_OUT
from regard.data.grammar.nouns import BY_NAME
from regard.data.grammar.parts import LONG
from regard.data.grammar.people import PEOPLE
from regard.data.grammar.phrase import Phrase, weave
from regard.data.grammar.verbs import ON_OBJECTS
from regard.errors import DataError

COUNTS = {"train": 4000, "validation": 101, "test": 103, "unseen": 151, "long": 109}


@pytest.fixture(scope="module")
def parts():
    return {part: sentences(count, seed=5, part=part) for part, count in COUNTS.items()}


def test_a_pair_depends_on_nothing_but_seed_part_and_index(parts):
    for part in PARTS:
        assert [sentence(index, seed=5, part=part) for index in (0, 7, 100)] == [parts[part][i] for i in (0, 7, 100)]
    assert sentences(13, seed=5) == parts["train"][:13]
    assert sentences(13, seed=6) != parts["train"][:13]


def test_no_two_parts_share_a_sentence(parts):
    for first in PARTS:
        for second in PARTS:
            if first < second:
                other = {pair.source for pair in parts[second]}
                assert not other & {pair.source for pair in parts[first]}, (first, second)
    train = {pair.source for pair in sentences(1000, seed=6)}
    assert not train & {pair.source for part in PARTS[1:] for pair in parts[part]}


def test_held_out_words_meet_only_in_the_unseen_part(parts):
    names = {name: noun.more for name, noun in BY_NAME.items()} | {noun.one: noun.more for noun, _ in PEOPLE}
    forms = {verb.base: (verb.base, verb.third, verb.past, verb.participle, verb.ing) for verb in ON_OBJECTS}
    before = r"(?: to)?(?: (?:the|a|an|this|that|these|those|some|many|two|three|four|my|your|his|her|our|their))?"
    patterns = []
    for first, noun in HELD_OUT:
        heads = "|".join(forms.get(first, (first,)))
        between = before if first in forms else ""
        patterns.append(rf"(?:{heads}){between} (?:{noun}|{names[noun]})\b")
    meeting = re.compile(rf"\b(?:{'|'.join(patterns)})")
    for part in ("train", "validation", "test", "long"):
        assert not [pair.source for pair in parts[part] if meeting.search(pair.source)]
    assert sum(bool(meeting.search(pair.source)) for pair in parts["unseen"]) > 0.6 * COUNTS["unseen"]


def test_each_held_out_word_is_learned_in_other_company(parts):
    known = {word.lower() for pair in parts["train"] for word in pair.source_words}
    forms = {verb.base: {verb.base, verb.third, verb.past, verb.participle, verb.ing} for verb in ON_OBJECTS}
    names = {name: {name, noun.more} for name, noun in BY_NAME.items()} | {n.one: {n.one, n.more} for n, _ in PEOPLE}
    for first, second in HELD_OUT:
        assert known & forms.get(first, {first}), first
        assert known & names[second], second


def test_unseen_sentences_hold_hardly_a_word_that_some_thousand_others_do_not(parts):
    english, chinese = ({w.lower() for p in parts["train"] for w in p[side]} for side in (2, 3))
    strange = [
        pair
        for pair in parts["unseen"]
        if {word.lower() for word in pair.source_words} - english or set(pair.target_words) - chinese
    ]
    assert len(strange) <= 0.03 * COUNTS["unseen"]


def test_long_sentences_are_long_and_the_others_are_of_many_lengths(parts):
    assert min(len(pair.source_words) for pair in parts["long"]) >= LONG
    assert max(len(pair.source_words) for pair in parts["long"]) >= 35
    lengths = {len(pair.source_words) for pair in parts["train"]}
    assert lengths >= set(range(4, 33))


def test_there_is_much_to_say_with_few_words(parts):
    train = parts["train"]
    assert len({pair.source for pair in train}) > 0.9 * len(train)
    assert len({word.lower() for pair in train for word in pair.source_words}) <= 900
    assert len({character for pair in train for character in pair.target}) <= 700
    assert len({pair.pattern for pair in train}) >= 80


def test_words_join_to_the_text_and_spans_cut_them_out_again(parts):
    for part in PARTS:
        for pair in parts[part][:500]:
            assert "".join(pair.target_words) == pair.target
            source, target = word_spans(pair)
            assert tuple(pair.source[begin:end] for begin, end in source) == pair.source_words
            assert tuple(pair.target[begin:end] for begin, end in target) == pair.target_words
            assert all(first[1] <= second[0] for first, second in pairwise(source))
            assert not pair.source.translate(dict.fromkeys(map(ord, " "))).replace("".join(pair.source_words), "")


def test_a_part_that_is_not_there_is_refused_by_name():
    with pytest.raises(DataError, match="part 'dev' is not known; choose one of train, validation, test"):
        sentence(0, seed=0, part="dev")
    with pytest.raises(DataError, match="-3 sentences were asked for"):
        sentences(-3, seed=0)


def test_a_pattern_whose_languages_differ_is_refused():
    with pytest.raises(ValueError, match="the slots or marks of"):
        weave("the cat:1 {where}", "猫:2 {where}", where=Phrase((), ()))
    with pytest.raises(ValueError, match="write the same ones in both"):
        weave("{who} sat", "坐", who=Phrase((), ()))

"""The pieces that make words likely: against plain loops, and against the trainer of `tokenizers`."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, trainers

from regard.data.unigram import best, expect_uses, lattice, learn_pieces

WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 9), min_size=1, max_size=7)


def ways_of(word, pieces):
    """Every way to put a word together from pieces."""
    if not word:
        yield []
    for stop in range(1, len(word) + 1):
        if word[:stop] in pieces:
            yield from ([word[:stop], *rest] for rest in ways_of(word[stop:], pieces))


@given(WORDS, st.lists(st.text("abc", min_size=2, max_size=4), max_size=8, unique=True))
def test_expected_uses_and_best_ways_equal_plain_loops(words, longer):
    pieces = ["a", "b", "c", *longer]
    chance = dict(zip(pieces, np.random.default_rng(2).dirichlet(np.ones(len(pieces)))))
    uses, likeliest = Counter(), []
    for word, count in words.items():
        all_ways = list(ways_of(word, pieces))
        likely = [np.prod([chance[piece] for piece in way]) for way in all_ways]
        likeliest.append(np.log(max(likely)))
        for way, share in zip(all_ways, np.asarray(likely) / sum(likely)):
            for piece in way:
                uses[piece] += share * count
    ways = lattice(list(words), {piece: at for at, piece in enumerate(pieces)})
    values = np.asarray(list(chance.values()))
    found = expect_uses(ways, values, np.asarray(list(words.values()), dtype=np.float64))
    np.testing.assert_allclose(found, [uses[piece] for piece in pieces], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(best(ways, np.log(values)), likeliest, rtol=1e-9)


def test_a_word_need_not_be_a_piece_of_itself():
    ways = lattice(["ab", "b"], {"a": 0, "b": 1, "ab": 2}, whole=False)
    assert best(ways, np.asarray([-2.0, -3.0, -1.0])).tolist() == [-5.0, -np.inf]


@given(WORDS, st.integers(3, 12))
def test_pieces_are_few_and_hold_the_alphabet_whatever_the_order(words, size):
    found = learn_pieces(words, "abc", size)
    assert len(found) <= size
    assert {"a", "b", "c"} <= {piece for piece, _ in found}
    assert sum(np.exp(score) for _, score in found) == pytest.approx(1, abs=1e-4)
    assert found == learn_pieces(dict(sorted(words.items(), reverse=True)), "cba", size)


def test_very_long_words_and_unknown_letters_are_learned_from():
    found = dict(learn_pieces({"ab" * 500: 3, "xyz": 2, "a-b": 1}, "ab", 40))
    assert {"a", "b", "ab"} <= set(found)
    assert set("".join(found)) == {"a", "b"}
    assert max(map(len, found)) <= 16


def test_texts_become_as_likely_as_by_the_trainer_of_tokenizers():
    random = np.random.default_rng(4)
    stems, ends = ["walk", "talk", "jump", "play", "paint", "climb", "look"], ["", "s", "ed", "ing", "er", "ers"]
    drawn = random.zipf(1.3, (4_001, 2)) - 1
    words = Counter(stems[a % len(stems)] + ends[b % len(ends)] for a, b in drawn)
    size, alphabet = 36, sorted(set("".join(words)))
    ours = learn_pieces(words, alphabet, size)
    theirs = Tokenizer(models.Unigram())
    trainer = trainers.UnigramTrainer(vocab_size=size, show_progress=False, special_tokens=[], max_piece_length=16)
    theirs.train_from_iterator([[word] * count for word, count in words.items()], trainer)

    def surprise(pieces):
        """Of all words, by the likeliest way each."""
        names, scores = zip(*pieces)
        ways = lattice(list(words), {name: at for at, name in enumerate(names)})
        return -float(best(ways, np.asarray(scores)) @ np.asarray(list(words.values())))

    told = [(name, score) for name, score in json.loads(theirs.to_str())["model"]["vocab"]]
    assert len(ours) == size
    assert surprise(ours) <= 1.02 * surprise(told)

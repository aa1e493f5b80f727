"""Sequences that repeat: the same whoever asks, and known exactly where they can be."""

import numpy as np
import pytest
import torch

from regard.data import repeats

SIZES = {"length": 47, "vocabulary": 31}
PINNED = [139, 81, 122, 128, 89, 109, 137, 89, 109, 137, 89, 109]


def test_a_sequence_depends_on_nothing_but_its_seed_and_index():
    torch.manual_seed(1)
    np.random.seed(1)
    some = repeats.batch([5, 2, 900_000], seed=3, **SIZES)
    torch.manual_seed(2)
    np.random.seed(2)
    state = torch.get_rng_state()
    for row, index in enumerate([5, 2, 900_000]):
        alone = repeats.sequence(index, seed=3, **SIZES)
        assert torch.equal(alone.ids, some.ids[row])
        assert torch.equal(alone.known, some.known[row])
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(repeats.sequence(5, seed=4, **SIZES).ids, some.ids[0])
    assert not torch.equal(some.ids[0], some.ids[1])


def test_the_first_sequences_are_those_that_the_shipped_model_was_scored_on():
    ids = repeats.sequence(0, seed=1_000_003, length=12, vocabulary=140).ids.tolist()
    assert ids == PINNED


@pytest.mark.parametrize("clean", [True, False])
def test_known_is_what_every_earlier_occurrence_foretells(clean):
    ids, known = repeats.batch(range(200), clean=clean, **SIZES)
    assert ids.shape == known.shape == (200, 47)
    assert ids.min() >= 0
    assert ids.max() < 31
    for row, marks in zip(ids.tolist(), known.tolist()):
        for t in range(47):
            foretold = {row[j + 1] for j in range(t - 1) if row[j] == row[t - 1]} if t else set()
            assert marks[t] == (foretold == {row[t]})


def test_clean_sequences_are_one_string_said_again_and_again():
    ids, known = repeats.batch(range(100), clean=True, **SIZES)
    periods = set()
    for row, marks in zip(ids.tolist(), known.tolist()):
        period = row[1:].index(row[0]) + 1
        periods.add(period)
        assert len(set(row[:period])) == period
        assert row == (row[:period] * 47)[:47]
        assert marks == [False] * (period + 1) + [True] * (46 - period)
    assert periods <= set(range(2, 24))
    assert len(periods) > 15


def test_sequences_differ_in_all_that_could_be_learned_by_heart():
    ids, known = repeats.batch(range(1000), **SIZES)
    assert 0.3 < known.double().mean() < 0.7
    first = known.int().argmax(1)
    assert len(first.unique()) > 20  # where the repeat begins
    spread = torch.bincount(ids.flatten(), minlength=31) / ids.numel()
    assert spread[:27].min() > 0.5 / 31  # every token is used
    assert spread[27:].mean() > 1.2 * spread[:27].mean()  # separators more than others


def test_every_word_is_there_once_and_can_be_written_in_a_text():
    words = repeats.VOCABULARY
    assert len(set(words)) == len(words) == 140
    assert words[-4:] == repeats.SEPARATORS
    assert all(word.split() == [word] for word in words)


def test_sizes_that_leave_nothing_to_repeat_are_refused():
    with pytest.raises(ValueError, match="length 3 and vocabulary 9 came; give at least 4 and 5"):
        repeats.sequence(0, length=3, vocabulary=9)
    with pytest.raises(ValueError, match="length 9 and vocabulary 4 came"):
        repeats.sequence(0, length=9, vocabulary=4)
    ids, known = repeats.batch(range(50), length=4, vocabulary=5)
    assert ids.shape == known.shape == (50, 4)

"""Which tokens are hidden: by the shares of the paper, and whole words where that is wanted."""

import numpy as np
import pytest

from regard.data.byte_level import MASK, RESERVED, train_byte_level
from regard.data.special import PAD
from regard.tasks.masking import find_word_starts, hide_tokens

TEXTS = ["unbelievable internationalisation of cats' whiskers, 3.14 times", "the catfish believes in 猫咪 café"] * 4


@pytest.fixture(scope="module")
def tokenizer():
    return train_byte_level(TEXTS, 290)


@pytest.mark.parametrize("whole", [False, True])
def test_the_shares_are_those_of_the_paper(whole):
    """Devlin et al. 2019, §3.1: 15 % are asked for; of those 80 % are hidden, 10 % random, 10 % stay."""
    ids = np.random.default_rng(0).integers(0, 1000, 200_000)
    starts = np.arange(1000) < 600 if whole else None
    given, target = hide_tokens(ids, 1000, (3, 4), starts)
    asked, text = target != PAD, ids >= len(RESERVED)
    assert asked[text].mean() == pytest.approx(0.15, abs=0.005)
    assert not asked[~text].any()
    assert np.array_equal(given[~asked], ids[~asked])
    assert np.array_equal(target[asked], ids[asked])
    assert (given[asked] == MASK).mean() == pytest.approx(0.8, abs=0.01)
    assert (given[asked] == ids[asked]).mean() == pytest.approx(0.1, abs=0.01)
    other = given[asked & (given != ids) & (given != MASK)]
    assert len(other) / asked.sum() == pytest.approx(0.1, abs=0.01)
    assert len(RESERVED) <= other.min() < 40  # any token of text
    assert 960 < other.max() < 1000
    assert np.array_equal(hide_tokens(ids[:77], 1000, (3, 4), starts)[0], given[:77])  # whatever is padded after it


def test_a_word_is_asked_for_as_a_whole_or_not_at_all():
    random = np.random.default_rng(1)
    ids, starts = random.integers(5, 90, 30_000), random.random(90) < 0.5
    _, target = hide_tokens(ids, 90, (7,), starts)
    bounds = np.flatnonzero(starts[ids])
    words = np.split(target != PAD, bounds)[1:]
    assert all(word.all() or not word.any() for word in words)
    assert max(map(len, words)) > 5
    assert np.mean([word[0] for word in words]) == pytest.approx(0.15, abs=0.015)


def test_other_tokens_are_hidden_by_another_seed():
    ids = np.arange(5, 205)
    assert not np.array_equal(hide_tokens(ids, 300, (0, 1, 2))[1], hide_tokens(ids, 300, (0, 2, 2))[1])


@pytest.mark.parametrize("text", TEXTS[:2])
def test_words_begin_where_the_pieces_of_the_library_say_so(tokenizer, text):
    """Before a space, and where letters and marks meet; the library cuts at digits and apostrophes once more."""
    encoded = tokenizer.encode(text, add_special_tokens=False)
    starts = find_word_starts(tokenizer)[encoded.ids]
    theirs = [at == 0 or word != encoded.word_ids[at - 1] for at, word in enumerate(encoded.word_ids)]
    pieces = [text[slice(*span)] for span in encoded.offsets]
    for ours, begins, piece in list(zip(starts, theirs, pieces))[1:]:
        if piece.strip().isascii() and not piece.strip().isdigit():
            assert ours == begins, piece
    assert starts.sum() > len(text.split()) > 3
    assert starts[1:].sum() < len(starts) - 5  # some words have several pieces

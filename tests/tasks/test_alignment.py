"""Alignment: by hand on a small table, and the error rate as Och and Ney write it."""

import pytest
import torch

from regard.data.grammar import sentences, word_spans
from regard.tasks.alignment import error_rate, merge_to_words


def test_pieces_of_words_are_added_and_averaged():
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])  # two tokens of one target word; three of the source
    words = merge_to_words(weights, [(0, 1), (1, 2)], [(0, 2), (2, 4), (5, 8)], [(0, 2)], [(0, 4), (5, 8)])
    torch.testing.assert_close(words, torch.tensor([[0.45, 0.55]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("found", "true", "want"),
    [({(0, 0)}, {(0, 0)}, 0.0), ({(0, 1)}, {(0, 0)}, 1.0), ({(0, 0), (1, 2)}, {(0, 0), (1, 1)}, 0.5)],
)
def test_the_error_rate_is_one_minus_twice_what_both_have(found, true, want):
    assert error_rate(found, true) == want


def test_spans_of_the_grammar_cut_out_its_words():
    for pair in sentences(40, seed=3):
        spans = word_spans(pair)
        assert [pair.source[a:b] for a, b in spans.source] == list(pair.source_words)
        assert [pair.target[a:b] for a, b in spans.target] == list(pair.target_words)

"""Whether texts find their partners: places counted by hand, and Spearman as scipy has it."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies
from scipy.stats import spearmanr

from regard.tasks.retrieval_scores import correlate_ranks, score_retrieval


def by_loop(pairs, said):
    """Each distinct text ranks all distinct others but itself; the best place of its partners, behind what is equal."""
    queries, candidates, partners = {}, {}, {}
    for (one, two), (text, other) in zip(pairs.tolist(), said.tolist()):
        if text != other:
            queries.setdefault(text, one)
            candidates.setdefault(other, two)
            partners.setdefault(text, set()).add(other)
    places = []
    for text, vector in queries.items():
        cosines = {name: sum(x * y for x, y in zip(vector, one)) for name, one in candidates.items() if name != text}
        best = max(cosines[name] for name in partners[text])
        places.append(1 + sum(value >= best for name, value in cosines.items() if name not in partners[text]))
    return np.mean([place == 1 for place in places]), np.mean([1 / place if place <= 10 else 0 for place in places])


def test_scores_are_those_of_a_loop():
    pairs = torch.nn.functional.normalize(torch.randn(90, 2, 7, dtype=torch.float64), dim=-1)
    pairs[:, 1] += 0.8 * pairs[:, 0]
    said = torch.randint(0, 60, (90, 2))
    accuracy, mrr = by_loop(pairs, said)
    found = score_retrieval(pairs, said)
    assert found == (pytest.approx(accuracy), pytest.approx(mrr))
    assert 0 < found.accuracy < found.mrr < 1


def test_vectors_that_are_all_alike_or_no_numbers_win_nothing():
    said = torch.arange(60).view(30, 2)
    assert score_retrieval(torch.ones(30, 2, 4), said) == (0, 0)
    assert score_retrieval(torch.full((30, 2, 4), torch.nan), said) == (0, 0)
    assert score_retrieval(torch.ones(3, 2, 4), torch.tensor([[1, 1], [2, 2], [3, 3]])) == (0, 0)
    assert score_retrieval(torch.ones(1, 2, 4), said[:1]) == (1, 1)  # one partner among one


@given(
    strategies.lists(strategies.tuples(strategies.integers(0, 5), strategies.floats(-1, 1)), min_size=3, max_size=40)
)
def test_spearman_is_that_of_scipy(values):
    one, two = np.array(values, dtype=np.float64).T
    wanted = 0.0 if len(set(one)) == 1 or len(set(two)) == 1 else spearmanr(one, two).statistic
    assert correlate_ranks(one, two) == pytest.approx(wanted, abs=1e-12)

"""The contrastive loss against loops in float64 and against torch, with gradients, and what is no wrong answer."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.errors import ConfigError, ShapeError
from regard.tasks.contrastive_loss import NONE, contrastive_loss, mark_same, pair_loss

B, M, TAU = 7, 5, 0.13


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def cosine(one, two):
    return sum(x * y for x, y in zip(one, two)) / math.sqrt(sum(x * x for x in one) * sum(x * x for x in two))


def by_loop(vectors, said):
    """As the papers write it: each text looks for its partner, each partner for its text, pair by pair."""
    rows, total = vectors.tolist(), 0.0
    for i, (text, other, _) in enumerate(said):
        found, back = 0.0, 0.0
        for j, (one, two, three) in enumerate(said):
            common = i != j and {text, other} & {one, two}
            if not common:
                found += math.exp(cosine(rows[i][0], rows[j][1]) / TAU)
                back += math.exp(cosine(rows[i][1], rows[j][0]) / TAU)
            if three != NONE and three not in (text, other):
                found += math.exp(cosine(rows[i][0], rows[j][2]) / TAU)
        right = math.exp(cosine(rows[i][0], rows[i][1]) / TAU)
        total -= 0.5 * (math.log(right / found) + math.log(right / back))
    return total


PLAIN = [[2 * i, 2 * i + 1, NONE] for i in range(B)]
NEGATIVES = [[3 * i, 3 * i + 1, 3 * i + 2 if i % 2 else NONE] for i in range(B)]
REPEATED = [[0, 1, 9], [2, 1, NONE], [0, 3, 4], [5, 0, 6], [7, 7, 2], [8, 10, 8], [11, 12, 10]]


@pytest.mark.parametrize("said", [PLAIN, NEGATIVES, REPEATED], ids=["pairs", "negatives", "repeated texts"])
def test_the_loss_is_that_of_a_loop(said):
    vectors, named = draw(B, 3, M), torch.tensor(said)
    found = pair_loss(vectors, named, vectors, named, temperature=TAU)
    assert float(found.detach()) == pytest.approx(by_loop(vectors, said), rel=1e-12)


def test_the_loss_and_its_gradients_are_those_of_cross_entropy():
    vectors, named = draw(B, 3, M), torch.tensor(PLAIN)
    found = pair_loss(vectors, named, vectors, named, temperature=TAU)
    logits = F.cosine_similarity(vectors[:, None, 0], vectors[None, :, 1], dim=-1) / TAU
    right = torch.arange(B)
    plain = [F.cross_entropy(one, right, reduction="sum") for one in (logits, logits.T)]
    wanted = sum(plain) / 2
    assert_close(found, wanted)
    assert_close(*(torch.autograd.grad(one, vectors)[0] for one in (found, wanted)))


def test_gradients_are_those_of_finite_differences():
    named = torch.tensor(REPEATED)
    assert torch.autograd.gradcheck(lambda one: pair_loss(one, named, one, named, temperature=TAU), draw(B, 3, M))


def test_a_copy_of_the_right_answer_costs_nothing():
    queries, candidates = draw(1, M), draw(4, M)
    twice = torch.cat([candidates, candidates[:1]])
    ignored = torch.tensor([[False, False, False, False, True]])
    right = torch.tensor([0])
    alone = contrastive_loss(queries, candidates, right, temperature=TAU)
    assert_close(contrastive_loss(queries, twice, right, temperature=TAU, ignored=ignored), alone)
    assert contrastive_loss(queries, twice, right, temperature=TAU) > alone
    assert_close(contrastive_loss(queries, candidates, right, temperature=TAU, ignored=torch.zeros(1, 4) == 1), alone)


def test_the_partner_itself_is_never_ignored_and_no_queries_cost_nothing():
    queries, candidates, every = draw(2, M), draw(3, M), torch.ones(2, 3, dtype=torch.bool)
    assert float(contrastive_loss(queries, candidates, torch.tensor([2, 0]), temperature=TAU, ignored=every)) == 0
    none = contrastive_loss(queries[:0], candidates, torch.tensor([], dtype=torch.int64), temperature=TAU)
    none.backward()
    assert float(none) == 0
    assert candidates.grad.eq(0).all()


def test_rows_of_a_batch_add_up_to_the_whole():
    """As several processes compute it: each its own pairs, among those of all."""
    vectors, named = draw(B, 3, M), torch.tensor(REPEATED)
    parts = [
        pair_loss(vectors[some], named[some], vectors, named, start=some.start, temperature=TAU)
        for some in (slice(0, 2), slice(2, 3), slice(3, B))
    ]
    assert_close(sum(parts), pair_loss(vectors, named, vectors, named, temperature=TAU))


def test_texts_in_common_are_marked():
    said = torch.tensor([[1, 2], [3, 4], [2, 5], [4, 3]])
    assert mark_same(said[:1], said).tolist() == [[True, False, True, False]]
    assert mark_same(said, said).equal(mark_same(said, said).T)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match=r"temperature is 0\.0, but cosines are divided by it"):
        contrastive_loss(draw(1, M), draw(2, M), torch.tensor([0]), temperature=0.0)
    with pytest.raises(ShapeError, match=r"ignored has shape \(2, 1\) for 1 queries and 2 candidates"):
        contrastive_loss(
            draw(1, M), draw(2, M), torch.tensor([0]), temperature=1.0, ignored=torch.zeros(2, 1, dtype=torch.bool)
        )

"""A long map looked at from far by some of its queries: exact where it looks, and bounded where it does not."""

import math

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.map import AttentionMap, cores, softmax_strips
from regard.attention.map.sampled import CONFIDENCE, draw_rows, share_beyond
from regard.errors import ShapeError
from tests.attention.test_strips import MASKS, OPTIONS, draw

Q, K = 13, 19


def far(map, high, wide):
    """The largest of each block of the dense map, −inf where all is hidden."""
    hidden = map.dense().masked_fill(~map.allowed[...], -torch.inf)
    padded = torch.nn.functional.pad(hidden, (0, -K % wide, 0, -Q % high), value=-torch.inf)
    return padded.unflatten(-1, (-1, wide)).unflatten(-3, (-1, high)).amax((-3, -1))


@pytest.mark.parametrize("least", [0, 1 << 60], ids=["strips", "whole rows"])
@pytest.mark.parametrize(("mask", "options"), [*((mask, "plain") for mask in MASKS), *(("causal", o) for o in OPTIONS)])
def test_all_queries_give_the_exact_map_and_some_give_a_part_of_it(mask, options, least, monkeypatch):
    monkeypatch.setattr(softmax_strips, "LEAST", least)
    map = regard.attend(*draw(), mask=MASKS[mask], **OPTIONS[options]).weights
    whole = map.sample(4, 5, queries=4)
    assert whole.exact
    assert (whole.beyond, whole.error) == (0.0, 0.0)
    assert whole.block == (4, 4)
    assert_close(whole.largest, far(map, 4, 4))
    assert_close(whole.entropy, map.entropy().mean(-1))
    some = map.sample(4, 5, queries=2)
    assert not some.exact
    assert bool((some.largest <= whole.largest + 1e-12).all())
    assert torch.equal(some.largest == -torch.inf, whole.largest == -torch.inf)  # hidden is never guessed


def test_what_is_stored_is_sampled_too_and_its_entropy_has_no_bound():
    weights = torch.rand(2, 3, Q, K, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    map = AttentionMap.stored(weights)
    assert_close(map.sample(2, 3, queries=99).largest, far(map, 7, 7))
    assert math.isinf(map.sample(2, 3, queries=2).error)


def test_the_rows_are_those_of_the_seed_and_of_every_band():
    edges = [0, 5, 10, 13]
    drawn = draw_rows(edges, 4, seed=7)
    assert torch.equal(drawn, draw_rows(edges, 4, seed=7))
    assert not torch.equal(drawn, draw_rows(edges, 4, seed=8))
    assert [int(((drawn >= a) & (drawn < b)).sum()) for a, b in ((0, 5), (5, 10), (10, 13))] == [4, 4, 3]
    assert torch.equal(drawn, drawn.unique())


def test_the_share_that_may_be_beyond_is_that_of_the_hypergeometric_distribution():
    for size, count in ((256, 16), (20, 3), (7, 6), (9, 9), (5, 1)):
        missed = round(share_beyond([size], count) * size)
        chance = [math.comb(size - k, count) / math.comb(size, count) for k in range(size)]
        assert chance[missed] > 1 - CONFIDENCE or missed == 0
        assert count >= size or missed + 1 == size or chance[missed + 1] <= 1 - CONFIDENCE


def test_the_bounds_hold_as_often_as_they_say():
    """Rows that differ as much as they can: half of each band looks at one key, the others at all."""
    n = 64
    scores = torch.zeros(n, n)
    scores[torch.randperm(n, generator=torch.Generator().manual_seed(1))[: n // 2], 3] = 50.0
    map = AttentionMap.stored(scores.softmax(-1))
    x = regard.attend(scores, torch.eye(n), torch.eye(n), scale=1.0).weights
    assert_close(x.dense(), map.dense())
    exact, right, wrong = float(x.entropy().mean()), 0, 0
    high = x.dense().unflatten(0, (2, 32)).unflatten(-1, (4, 16)).amax(-1)  # band, query, cell
    for seed in range(200):
        some = x.sample(2, 4, queries=5, seed=seed)
        right += abs(float(some.entropy) - exact) <= some.error
        wrong += int(((high > some.largest[:, None] + 1e-6).double().mean(1) > some.beyond + 1e-9)[:, 0].sum())
    assert right >= 190
    assert 0 < wrong <= 20  # of 400 cells that hold such rows; a bound that is never missed would be a loose one


def test_no_cells_and_no_queries_are_refused():
    map = AttentionMap.stored(torch.eye(3))
    with pytest.raises(ShapeError, match="at least 1 of each"):
        map.sample(3, 3, queries=0)
    with pytest.raises(ShapeError, match="nothing to look at"):
        AttentionMap.stored(torch.zeros(0, 3)).sample(2, 2)


def test_one_thread_and_two_give_the_same(monkeypatch):
    monkeypatch.setattr(softmax_strips, "LEAST", 0)
    map = regard.attend(*draw(), mask=regard.causal()).weights
    one = map.sample(4, 5, queries=2)
    monkeypatch.setattr(cores, "count_threads", lambda: 2)
    two = map.sample(4, 5, queries=2)
    assert torch.equal(one.largest, two.largest)
    assert torch.equal(one.entropy, two.entropy)

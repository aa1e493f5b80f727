"""Long maps are walked strip by strip on all cores: every number against the dense matrix in float64."""

import threading

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.map import cores, product, softmax_strips, statistics, strip_statistics
from regard.attention.map.deadline import time_limit
from regard.errors import MapError

Q, K, LOW = 13, 19, torch.finfo(torch.float32).min
BLIND = torch.rand(Q, K, generator=torch.Generator().manual_seed(1)) > 0.93
BLOCKS = {"single rows": (1, 4), "small": (4, 5), "wide": (3, 64), "high": (64, 3)}
MASKS = {
    "open": None,
    "causal": regard.causal(),
    "window": regard.window(6, 2),
    "dilated": regard.window(9, 0, dilation=2, keep_first=3),
    "from the first": regard.causal(align="first"),
    "some rows see nothing": regard.allowed(BLIND, axes="q k"),
    "none sees anything": regard.allowed(torch.zeros(Q, K, dtype=torch.bool), axes="q k"),
}
OPTIONS = {
    "plain": {},
    "sink": {"sink_logits": torch.tensor([0.3, -2.0], dtype=torch.float64)},
    "capped": {"softcap": 3.0},
    "biased": {"bias": torch.randn(1, 2, Q, K, dtype=torch.float64, generator=torch.Generator().manual_seed(2))},
}


CASES = [(mask, "plain", blocks) for mask in MASKS for blocks in BLOCKS]
CASES += [(mask, options, "small") for mask in MASKS for options in OPTIONS if options != "plain"]


@pytest.fixture(params=["small", "wide"])
def blocks(request, monkeypatch):
    """Every map is long, and its blocks are small."""
    queries, keys = BLOCKS[request.param]
    monkeypatch.setattr(softmax_strips, "LEAST", 0)
    monkeypatch.setattr(softmax_strips, "QUERIES", queries)
    monkeypatch.setattr(softmax_strips, "KEYS", keys)
    monkeypatch.setattr(strip_statistics, "KEYS", keys)
    monkeypatch.setattr(statistics, "NARROW", 1)


def draw(dtype=torch.float64, b=2, h=2, groups=1, d=11, e=4, size=3.0):
    chance = torch.Generator().manual_seed(5)
    q = torch.randn(b, h, Q, d, generator=chance, dtype=torch.float64) * size
    k, v = (torch.randn(b, groups, K, width, generator=chance, dtype=torch.float64) for width in (d, e))
    return q.to(dtype), k.to(dtype), v.to(dtype)


def dense(q, k, mask, sink_logits=None, softcap=None, bias=None):
    """Scores, weights and who may look, in float64 and all at once."""
    scores = q.double() @ k.double().repeat_interleave(2, 1).mT / q.shape[-1] ** 0.5
    scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
    scores = scores if bias is None else scores + bias
    allowed = torch.ones(2, 2, Q, K, dtype=torch.bool) if mask is None else mask.dense(Q, K, batch=2, heads=2)
    hidden = scores.masked_fill(~allowed, -torch.inf)
    if sink_logits is not None:
        extra = sink_logits.view(2, 1, 1).expand(2, 2, Q, 1)
        hidden = torch.cat([hidden, extra], -1)
    weights = hidden.softmax(-1).nan_to_num(0.0)[..., :K]
    return weights * allowed.any(-1, keepdim=True), hidden.logsumexp(-1), allowed


@pytest.mark.parametrize(("mask", "options", "blocks"), CASES, indirect=["blocks"])
def test_long_maps_equal_the_dense_matrix(mask, options, blocks):
    q, k, v = draw()
    map = regard.attend(q, k, v, mask=MASKS[mask], **OPTIONS[options]).weights
    assert softmax_strips.has_strips(map.source)
    weights, log, allowed = dense(q, k, MASKS[mask], **OPTIONS[options])
    assert_close(map.entropy(), torch.special.entr(weights).sum(-1))
    assert_close(map.log_normaliser(), log.masked_fill(~allowed.any(-1), -torch.inf))
    for rows, columns in ((5, 4), (13, 10)):
        pooled = map.pool(rows, columns)
        for r in range(rows):
            lines = [i for i in range(Q) if i * rows // Q == r]
            for c in {0, columns // 2, columns - 1}:
                there = [j for j in range(K) if j * columns // K == c]
                cell, seen = weights[:, :, lines][..., there], allowed[:, :, lines][..., there]
                assert_close(pooled.max[..., r, c], cell.amax((-1, -2)))
                assert_close(pooled.mean[..., r, c], cell.sum((-1, -2)) / seen.sum((-1, -2)).clamp_min(1))


@pytest.mark.parametrize("size", [1.0, 300.0, 1e4])
def test_in_float32_scores_of_any_size_keep_their_precision(size, blocks):
    q, k, v = draw(torch.float32, size=size)
    map = regard.attend(q, k, v, mask=regard.causal()).weights
    scores = map.scores[...].double().masked_fill(~regard.causal().dense(Q, K), -torch.inf)
    largest = float(scores[scores.isfinite()].abs().max())
    bound = 64 * torch.finfo(torch.float32).eps * max(largest, 1.0)  # of a score: d products, and their sum
    exact = torch.special.entr(scores.softmax(-1)).sum(-1)
    assert (map.entropy() - exact).abs().max() < 20 * bound
    assert (map.log_normaliser() - scores.logsumexp(-1)).abs().max() < 2 * bound


def test_a_row_that_is_pushed_down_everywhere_is_still_a_row(blocks):
    bias = torch.zeros(1, 1, Q, K)
    bias[:, :, 3] = LOW
    zero = torch.zeros(1, 1, K, 2)
    found = regard.attend(zero[..., :Q, :], zero, zero, bias=bias).weights.entropy()
    assert_close(found, torch.full((1, 1, Q), float(torch.tensor(float(K)).log())))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_changes_no_number(threads, blocks, monkeypatch):
    q, k, v = draw(torch.float32)
    map = regard.attend(q, k, v, mask=regard.causal()).weights
    alone = (map.entropy(), *map.pool(5, 4))
    monkeypatch.setattr(cores, "count_threads", lambda: threads)
    for ours, theirs in zip((map.entropy(), *map.pool(5, 4)), alone, strict=True):
        assert torch.equal(ours, theirs)


def test_small_maps_and_other_kinds_have_no_strips():
    q, k, v = draw()
    assert not softmax_strips.has_strips(regard.attend(q, k, v).weights.source)
    stored = regard.AttentionMap.stored(torch.zeros(1, 1).expand(1 << 12, 1 << 12))
    assert not softmax_strips.has_strips(stored.source)


def test_products_are_those_of_numpy_and_heed_what_the_user_allowed():
    a, b = torch.randn(17, 9), torch.randn(23, 9)
    assert_close(product.multiply(a, b).double(), a.double() @ b.double().mT, atol=1e-5, rtol=1e-5)
    assert product.multiply(a[:0], b).shape == (0, 23)
    assert product.multiply(a[:, :0], b[:, :0]).eq(0).all()
    assert product.is_full_precision()
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        assert not product.is_full_precision()
    finally:
        torch.set_float32_matmul_precision(before)


def test_threads_take_one_core_each_and_leave_the_others_theirs():
    own = torch.get_num_threads()
    found = list(cores.map_on_cores(lambda _: (torch.get_num_threads(), torch.is_grad_enabled()), range(5), 2))
    assert found == [(1, False)] * 5
    later = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert (torch.get_num_threads(), later) == (own, [own])


def test_a_walk_over_a_long_map_heeds_the_time_limit(blocks):
    q, k, v = draw()
    map = regard.attend(q, k, v).weights
    with time_limit(0.0), pytest.raises(MapError, match="was stopped"):
        map.entropy()

"""The map against the dense matrix in float64: every part, every statistic, every block size."""

import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

import regard
from regard.attention.map import blocks
from regard.attention.map.blocks import walk_blocks
from regard.attention.map.rows import widen
from regard.attention.mask import rule
from regard.errors import MapError, ShapeError, Stale
from tests.attention.cases import qkv

MASKS = {
    "open": None,
    "causal": regard.causal(),
    "padding": regard.padding([3, 7]),
    "window": regard.window(2, 1),
    "blind rows": rule(lambda b, h, q, k: (q % 2 == 0) & (k > q)),
}


def made(mask=None, **options):
    """A map, its weights and who may look, the slow way."""
    q, k, v = qkv(hk=3)
    a = regard.attend(q, k, v, mask=mask, **options)
    weights = a.weights.dense()
    allowed = torch.ones(2, 6, 5, 7, dtype=torch.bool) if mask is None else mask.dense(5, 7, batch=2, heads=6)
    scores = q @ k.repeat_interleave(2, 1).mT / 11**0.5
    exact = scores.masked_fill(~allowed, -torch.inf).softmax(-1).nan_to_num(0.0)
    assert_close(weights, exact)
    return a.weights, exact, allowed, scores


@pytest.fixture(params=[1, 7, 40, 1 << 20])
def budget(request, monkeypatch):
    """Blocks from a single row to everything at once."""
    monkeypatch.setattr(blocks, "BUDGET", request.param)
    monkeypatch.setattr(
        blocks.walk_blocks, "__defaults__", (request.param,)
    ) if blocks.walk_blocks.__defaults__ else None
    inner = getattr(blocks.walk_blocks, "__wrapped__", None)
    if inner is not None and inner.__defaults__:
        monkeypatch.setattr(inner, "__defaults__", (request.param,))
    return request.param


@pytest.mark.parametrize("name", MASKS)
def test_statistics_equal_the_dense_matrix_for_every_block_size(name, budget):
    map, weights, allowed, scores = made(MASKS[name])
    assert_close(map.entropy(), torch.special.entr(weights).sum(-1))
    far = (torch.arange(5)[:, None] + 2 - torch.arange(7)).abs().double()
    assert_close(map.distance(), (weights * far).sum(-1))
    assert_close(map.received(), weights.sum(-2) / allowed.sum(-2).clamp_min(1))
    assert_close(map.sink(), weights[..., 0])
    assert_close(map.sink(3), weights[..., :3].sum(-1))
    assert_close(map.log_normaliser(), scores.masked_fill(~allowed, -torch.inf).logsumexp(-1))
    assert_close(map.log_weights[...], weights.log())
    assert_close(map.scores[...], scores)
    assert torch.equal(map.allowed[...], allowed)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("k", [1, 3, 7, 9])
def test_top_gives_the_strongest_visible_keys(name, k, budget):
    map, weights, allowed, _ = made(MASKS[name])
    got, keys = map.top(k)
    assert got.shape == keys.shape == (2, 6, 5, k)
    for index in torch.cartesian_prod(torch.arange(2), torch.arange(6), torch.arange(5)).tolist():
        row, seen = weights[tuple(index)], allowed[tuple(index)]
        order = sorted((j for j in range(7) if seen[j]), key=lambda j: (-row[j].item(), j))[:k]
        assert keys[tuple(index)].tolist() == order + [-1] * (k - len(order))
        assert_close(got[tuple(index)], torch.cat([row[order], torch.zeros(k - len(order), dtype=row.dtype)]))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (5, 7), (3, 7), (9, 9)])
@pytest.mark.parametrize("name", MASKS)
def test_pooling_takes_the_largest_and_the_mean_of_what_may_be_seen(name, rows, columns, budget):
    map, weights, allowed, _ = made(MASKS[name])
    pooled = map.pool(rows, columns)
    rows, columns = min(rows, 5), min(columns, 7)
    assert pooled.max.shape == pooled.mean.shape == (2, 6, rows, columns)
    for r in range(rows):
        for c in range(columns):
            here = [i for i in range(5) if i * rows // 5 == r]
            there = [j for j in range(7) if j * columns // 7 == c]
            cell, seen = weights[:, :, here][..., there], allowed[:, :, here][..., there]
            assert_close(pooled.max[..., r, c], cell.amax((-1, -2)))
            assert_close(pooled.mean[..., r, c], cell.sum((-1, -2)) / seen.sum((-1, -2)).clamp_min(1))


INDICES = [
    (0,), (1, 4), (slice(None), 2), (slice(1, 2), slice(1, 5, 2)), ([1, 0], [3, 3, 0]), (-1, -2), (...,),
    (0, 1, 2), (1, 5, 2, 6), (slice(None), slice(None), 3), (0, 2, slice(1, 4), slice(2, 6)), (..., 4), (..., 2, 3),
    (0, 0, [4, 1, 1]), (1, slice(2, 4), slice(None, None, 2), [6, 0]), (..., slice(None), slice(3, 3)),
    (0, 3, slice(3, 1), slice(None)), (1, torch.tensor([True, False, True, False, False, True]), 0),
    (torch.tensor(1), 2, torch.tensor([0, 4])),
]  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_every_index_equals_that_of_the_dense_matrix(name, index):
    map, weights, _, _ = made(MASKS[name])
    got = map[index]
    expected = weights
    for axis, one in reversed(list(enumerate(spread(index, 4)))):  # axis by axis, as a map is indexed
        expected = expected[(slice(None),) * axis + (one,)]
    got = got if isinstance(got, torch.Tensor) else got.dense()
    assert_close(got, expected)


def spread(index, rank):
    if ... in [i if i is ... else None for i in index]:
        at = [i is ... for i in index].index(True)
        index = (*index[:at], *[slice(None)] * (rank - len(index) + 1), *index[at + 1 :])
    return [*index, *[slice(None)] * (rank - len(index))]


@given(st.data())
@settings(max_examples=60)
def test_a_map_of_a_map_is_the_same_part(data):
    map, weights, _, _ = made(data.draw(st.sampled_from(list(MASKS.values()))))
    b, h = data.draw(st.integers(0, 1)), data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    one = map[b][h]
    assert_close(one.dense(), weights[b][h])
    pick = data.draw(st.integers(0, len(h) - 1))
    assert_close(one[pick].entropy(), torch.special.entr(weights[b, h[pick]]).sum(-1))
    assert_close(map[:, h[pick]][b].dense(), weights[b, h[pick]])


def test_touching_batch_and_head_gives_a_map_and_more_gives_a_tensor():
    map, *_ = made()
    assert isinstance(map[0], regard.AttentionMap)
    assert map[0].shape == (6, 5, 7)
    assert isinstance(map[0, 3], regard.AttentionMap)
    assert map[...] is not None
    assert isinstance(map[0, 3, 2], torch.Tensor)
    assert map[0, 3, 2].shape == (7,)
    assert map.rows(2).shape == (2, 6, 7)
    assert map.rows([2, 3]).shape == (2, 6, 2, 7)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ((2,), "there is no entry along axis 0 2: the map has 2"),
        ((0, 0, 5), "there is no query 5: the map has 5"),
        ((0, 0, 0, -8), "there is no key -8: the map has 7"),
        ((0, 0, [1, 9]), "there is no query 9"),
        ((0, 0, 0, 0, 0), "5 indices were given, but the map has 4 axes"),
        ((..., 0, ...), "once at most"),
        ((None,), "None is no index"),
        ((1.5,), "not indexed by float"),
        ((0, [0.5]), "whole numbers"),
    ],
)
def test_wrong_indices_are_named(index, words):
    map, *_ = made()
    with pytest.raises(IndexError, match=words):
        map[index]


def test_dense_and_slices_are_differentiable_and_statistics_are_not():
    q, k, v = qkv(grad=True)
    map = regard.attend(q, k, v, mask=regard.causal()).weights
    exact = (q @ k.mT / 11**0.5).masked_fill(~regard.causal().dense(5, 7), -torch.inf).softmax(-1)
    for ours, theirs in ((map.dense(), exact), (map[1, 2, 3], exact[1, 2, 3]), (map.rows([1, 4]), exact[:, :, [1, 4]])):
        assert_close(
            torch.autograd.grad(ours.square().sum(), (q, k)),
            torch.autograd.grad(theirs.square().sum(), (q, k), retain_graph=True),
        )
    assert not map.entropy().requires_grad
    assert not map.top(2)[0].requires_grad
    assert map.detach().dense().requires_grad is False


def test_blocks_together_are_the_whole():
    map, weights, _, _ = made(regard.causal())
    for budget in (1, 7, 40, 100, 10_000):
        whole = torch.full_like(weights, torch.nan)
        largest = 0
        for block in walk_blocks(map.source, budget):
            part = block.part.weights(block.rows, block.columns)
            whole[(*block.lead, ..., block.rows, slice(None))] = widen(part, block.columns, 7)
            largest = max(largest, part.numel())
        assert_close(whole, weights)
        assert largest <= max(budget, 7)


def test_a_map_of_stored_weights_answers_the_same_questions():
    map, weights, allowed, _ = made(regard.causal())
    stored = regard.AttentionMap.stored(weights, mask=regard.causal())
    assert stored.kind == "stored"
    for name in ("entropy", "distance", "received", "sink"):
        assert_close(getattr(stored, name)(), getattr(map, name)())
    assert_close(stored.top(3), map.top(3))
    assert_close(stored.pool(2, 3), map.pool(2, 3))
    assert_close(stored[1, 4].dense(), weights[1, 4])
    assert torch.equal(stored.allowed[0, 2], allowed[0, 2])
    with pytest.raises(MapError, match="this map is stored, so its scores are not known"):
        stored.scores[0]
    with pytest.raises(MapError, match="log-normaliser; this map is stored"):
        stored.log_normaliser()
    kept = weights.clone()
    changed = regard.AttentionMap.stored(kept)
    kept.zero_()
    with pytest.raises(Stale, match="written to after the map was made"):
        changed.dense()


def test_an_implied_map_answers_the_same_questions():
    map, weights, _, _ = made()
    asked = []

    def imply(chosen, rows):
        asked.append(chosen)
        part = weights
        for axis, one in reversed(list(enumerate(chosen))):
            part = part[(slice(None),) * axis + (one,)]
        return part[..., rows, :]

    implied = regard.AttentionMap.implied(imply, (2, 6, 5, 7), device=torch.device("cpu"), dtype=torch.float64)
    assert implied.kind == "implied"
    assert_close(implied.dense(), weights)
    assert_close(implied[1][[4, 2]][0].dense(), weights[1, 4])
    assert_close(implied[1, 2].entropy(), map[1, 2].entropy())
    assert_close(implied[0].top(2), map[0].top(2))
    assert asked
    with pytest.raises(MapError, match="implied, so its scores are not known"):
        implied.scores[0, 0, 0]


@pytest.mark.parametrize(
    "weigh",
    [regard.sparsemax, regard.entmax, regard.sigmoid, regard.top_k(2)],
    ids=lambda w: getattr(w, "__name__", repr(w)),
)
def test_other_normalisers_have_maps_too(weigh, budget):
    q, k, v = qkv()
    map = regard.attend(q, k, v, weigh=weigh, mask=regard.causal()).weights
    weights = weigh(q @ k.mT / 11**0.5, regard.causal().dense(5, 7))
    assert_close(map.dense(), weights)
    assert_close(map.entropy(), torch.special.entr(weights).sum(-1))
    assert_close(map.pool(2, 3).max[0, 0, 0, 0], weights[0, 0, :3, :3].max())
    got, keys = map.top(3)
    assert_close(got, weights.gather(-1, keys))
    with pytest.raises(MapError, match="only a softmax computed from q and k has a log-normaliser"):
        map.log_normaliser()


def test_ties_go_to_the_lower_key_whatever_the_block_size(budget):
    q, k = torch.ones(1, 1, 4, 2), torch.ones(1, 1, 50, 2)
    k[..., [3, 17, 30], :] = 2.0
    map = regard.attend(q, k, k).weights
    assert map.top(2)[1][0, 0].tolist() == [[3, 17]] * 4
    assert map.top(5)[1][0, 0].tolist() == [[3, 17, 30, 0, 1]] * 4


def test_a_map_asked_after_its_tensors_changed_is_stale_not_wrong():
    q, k, v = qkv(dtype=torch.float32)
    map = regard.attend(q, k, v).weights
    before = map[0, 0, 0]
    k.add_(1.0)
    with pytest.raises(Stale, match="k was written to after the map was made"):
        map[0, 0, 0]
    with pytest.raises(Stale):
        map.entropy()
    assert before.isfinite().all()


def test_tokens_are_counted():
    map, *_ = made()
    named = map.with_names(list("abcde"), list("tuvwxyz"))
    assert named.tokens[1][6] == "z"
    assert named[0, 3].tokens == named.tokens
    with pytest.raises(ShapeError, match="3 queries and 3 keys were named, but the map has 5 and 7"):
        map.with_names(list("abc"))


def test_a_map_shows_itself():
    map, weights, _, _ = made(regard.causal())
    assert repr(map) == "AttentionMap (b 2, h 6, q 5, k 7), computed, softmax"
    assert map.numpy().shape == (2, 6, 5, 7)
    assert_close(torch.tensor(map.numpy()), weights)
    page = map._repr_html_()
    assert page.count("<svg") == 8
    assert f'fill-opacity="{weights[0, 0, 0, 0]:.3f}"' in page
    assert "4 more not shown" in page


def test_a_map_draws_one_head_with_its_tokens(tmp_path):
    map, weights, allowed, _ = made(regard.causal())
    figure = map.with_names(list("abcde"), list("tuvwxyz"))[1, 3].draw(title="head 3", to=tmp_path / "map.svg")
    shown = figure.axes[0].collections[0].get_array()
    assert_close(torch.tensor(shown.filled(0.0)).reshape(5, 7), weights[1, 3])
    assert torch.equal(torch.tensor(~shown.mask).reshape(5, 7), allowed[1, 3])
    assert ">z</text>" in (tmp_path / "map.svg").read_text()
    with pytest.raises(ShapeError, match=r"a picture shows one head.*map\[0, 3\]"):
        map.draw()
    x = torch.randn(600, 4)
    assert regard.attend(x, x, x).weights.draw().axes


def test_a_map_travels_between_processes_and_copies():
    q, k, v = qkv()
    map = regard.attend(q, k, v, mask=regard.causal() & regard.padding([3, 7])).weights.with_names(
        list("abcde"), list("tuvwxyz")
    )
    for twin in (pickle.loads(pickle.dumps(map)), copy.deepcopy(map)):
        assert_close(twin.dense(), map.dense())
        assert twin.tokens == map.tokens
        assert_close(twin[1, 2].entropy(), map[1, 2].entropy())
    stored = regard.AttentionMap.stored(map.dense())
    assert_close(copy.deepcopy(stored).dense(), map.dense())


def test_a_kept_map_survives_what_is_written_later():
    q, k, v = qkv(dtype=torch.float32)
    map = regard.attend(q, k, v, mask=regard.causal()).weights
    kept, before = map.keep(), map.dense()
    k.zero_()
    assert torch.equal(kept.dense(), before)
    with pytest.raises(Stale):
        map.keep()


@pytest.mark.parametrize("call", [lambda m: m.top(0), lambda m: m.pool(0, 3), lambda m: m.sink(0)])
def test_questions_for_nothing_are_refused(call):
    map, *_ = made()
    with pytest.raises(ShapeError, match="give"):
        call(map)


# Precision


def test_large_scores_cost_no_precision():
    q, k, _ = qkv(d=16, e=16, q=64, k=200, dtype=torch.float32)
    for size in (1.0, 30.0, 300.0):  # logits up to about 1e4
        exact = ((q * size).double() @ k.double().mT / 4).softmax(-1)
        map = regard.attend(q * size, k, k).weights
        logits = (q * size).double() @ k.double().mT / 4
        bound = 4e-7 * max(1.0, logits.abs().max().item())  # the scores themselves are rounded to float32
        assert (map.dense() - exact).abs().max() < bound
        assert (map.entropy() - torch.special.entr(exact).sum(-1)).abs().max() < 20 * bound
        assert map.entropy().min() >= 0
        assert map.log_normaliser().isfinite().all()


def test_a_long_row_keeps_its_sum():
    q, k = torch.randn(3, 8), torch.randn(32_768, 8)
    map = regard.attend(q, k, k).weights
    assert_close(map.rows([0, 1, 2]).double().sum(-1), torch.ones(3, dtype=torch.float64), atol=1e-5, rtol=0)
    exact = (q.double() @ k.double().mT / 8**0.5).softmax(-1)
    assert_close(map.entropy().double(), torch.special.entr(exact).sum(-1), atol=1e-5, rtol=1e-6)
    assert_close(map.top(4)[0].double(), exact.topk(4).values, atol=1e-8, rtol=1e-5)


def test_a_weight_that_underflows_is_told_from_a_blocked_one():
    q, k = torch.tensor([[30.0]]), torch.tensor([[10.0], [0.0], [-10.0]])
    map = regard.attend(q, k, k, mask=rule(lambda b, h, q, k: k < 2), scale=1.0).weights
    assert map[0].tolist() == [1.0, 0.0, 0.0]
    assert map.log_weights[0].tolist() == [0.0, -300.0, -torch.inf]
    assert map.top(3)[1].tolist() == [[0, 1, -1]]

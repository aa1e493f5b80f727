"""error() is what comparing two matrices by hand gives, without either of them."""

from functools import partial

import pytest
import torch

import regard
from regard.attention.map import blocks
from regard.attention.matrix_free import Linformer, Performer
from regard.attention.matrix_free import error as module
from regard.errors import MapError

B, H, G, Q, K, D, E = 2, 6, 3, 11, 23, 5, 4


def drawn(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    shapes = ((B, H, Q, D), (B, G, K, D), (B, G, K, E))
    return [torch.randn(s, dtype=dtype, generator=generator) for s in shapes]


def by_hand(a, q, k, v, mask):
    exact = regard.attend(q.double(), k.double(), v.double(), mask=mask, path="explicit")
    mix = (a.mix - exact.mix).norm() / exact.mix.norm()
    away = (a.weights.dense() - exact.weights.dense()).abs().sum(-1) / 2
    return mix.item(), away.mean().item(), away.max().item()


@pytest.mark.parametrize("mask", [None, regard.padding([9, K]), regard.padding([0, 5])])
@pytest.mark.parametrize("make", [lambda: Performer(D, 16), lambda: Linformer(K, 8), lambda: None])
@pytest.mark.parametrize("budget", [1 << 20, 60])
def test_it_is_what_a_comparison_by_hand_gives(monkeypatch, mask, make, budget):
    monkeypatch.setattr(module, "walk_blocks", partial(blocks.walk_blocks, budget=budget))
    tensors = drawn()
    a = regard.attend(*tensors, mask=mask, by=make())
    found = a.error()
    expected = by_hand(a, *tensors, mask)
    assert (found.mix, *found.weights) == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_exact_paths_are_exact_to_rounding():
    q, k, v = (x.repeat(1, 1, 100, 1) for x in drawn())
    masks = [None, regard.causal(), regard.window(9), regard.padding([1000, 2300])]
    seen = {regard.attend(q, k, v, mask=mask).path for mask in masks}
    assert {"fused", "banded", "sliced"} <= seen
    for mask in masks:
        error = regard.attend(q, k, v, mask=mask).error()
        assert 0 < error.mix < 1e-5
        assert 0 <= error.weights.mean <= error.weights.largest < 1e-5
    score = regard.Additive(query=D, key=D, hidden=3)
    assert regard.attend(*drawn(), score=score).error().mix < 1e-6


def test_the_exact_map_stands_behind_an_implied_one():
    q, k, v = drawn()
    a = regard.attend(q, k, v, mask=regard.causal(), by=Performer(D, 16))
    exact = regard.attend(q, k, v, mask=regard.causal()).weights
    assert a.weights.exact.kind == "computed"
    assert a.weights.exact.dense().equal(exact.dense())
    assert a.weights[1, 4].exact.dense().equal(exact[1, 4].dense())
    assert exact.exact is exact
    with pytest.raises(MapError, match="this map is stored"):
        _ = regard.AttentionMap.stored(exact.dense()).exact


def test_a_mix_without_its_values_says_what_is_missing():
    a = regard.attend(*drawn())
    with pytest.raises(MapError, match="needs the values"):
        a._replace(v=None).error()

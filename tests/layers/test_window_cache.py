"""Caches that hold a window, at lengths that are computed by strips: every way of cutting a text gives the same."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.kernels import fused
from regard.layers.longformer import LongformerAttention

B, M, H, G, D = 2, 10, 4, 2, 6
T, W, F = 640, 37, 3
exact = {"rtol": 1e-10, "atol": 1e-10}
CUTS = {
    "prefill and steps": [600] + [1] * 40,
    "chunks": [300, 290, 50],
    "a chunk after a step": [1, 300, 1, 338],
    "less than the window, then all": [W - 1, T - W + 1],
}


def drawn(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def reader(turned=True):
    positions = regard.Rotary(D) if turned else None
    return regard.MultiHead(M, H, kv_heads=G, head_width=D, positions=positions).double()


def looked_at(layer, x, keep_first):
    """The same without strips and without a cache: one matrix, from the definition of the mask."""
    at = torch.arange(T)
    seen = (at <= at[:, None]) & ((at >= at[:, None] - W) | (at < keep_first))
    return layer(x, mask=regard.allowed(seen, axes="q k"))


@pytest.fixture
def paths(monkeypatch):
    """Which kernels were taken."""
    found = []

    def remembered(*given):
        mix, path = fused.attend_fused(*given)
        found.append(path)
        return mix, path

    monkeypatch.setattr("regard.attention.attend.attend_fused", remembered)
    return found


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("keep_first", [0, F])
@pytest.mark.parametrize("turned", [False, True], ids=["plain", "rotary"])
@torch.no_grad()
def test_steps_and_chunks_give_what_one_shot_gives(paths, cut, keep_first, turned):
    layer, x = reader(turned), drawn(B, T, M)
    mask = regard.causal() & regard.window(W, keep_first=keep_first)
    cache = regard.KeyValueCache(window=W, keep_first=keep_first)
    whole = looked_at(layer, x, keep_first)
    assert_close(layer(x, mask=mask), whole, **exact)
    assert paths.pop() == "banded"
    assert_close(torch.cat([layer(part, mask=mask, cache=cache) for part in x.split(cut, 1)], 1), whole, **exact)
    assert "banded" in paths or max(cut) < 500
    assert len(cache) == W + keep_first
    assert cache.seen == T


@torch.no_grad()
def test_positions_stay_exact_however_often_the_window_has_wrapped():
    layer, x, steps = reader(), drawn(1, 900, M), 300
    mask = regard.causal() & regard.window(W, keep_first=F)
    cache = regard.KeyValueCache(window=W, keep_first=F)
    whole = layer(x, mask=mask)
    layer(x[:, :-steps], mask=mask, cache=cache)
    for step in range(900 - steps, 900):  # no mask: a single token sees all that is held
        assert_close(layer(x[:, step : step + 1], cache=cache), whole[:, step : step + 1], **exact)
        last = torch.arange(step + 1 - W, step + 1)
        assert torch.equal(cache.positions, torch.cat([torch.arange(F), last]))
    turned = regard.Rotary(D)(layer.to_k(x[0]).unflatten(-1, (G, D)).transpose(0, 1), 0)
    assert_close(cache.keys[0], turned[:, cache.positions], **exact)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@torch.no_grad()
def test_a_longformer_decodes_from_its_window_and_its_first_tokens(cut):
    layer = LongformerAttention(12, 2, before=W, after=0, positions=regard.Rotary(6)).double()
    x, mask, places = drawn(B, T, 12), regard.causal(), [0, 2]
    cut = cut if cut[0] > max(places) else [cut[0] + cut[1], *cut[2:]]  # global tokens come first
    cache = regard.KeyValueCache(window=W, keep_first=F)
    parts = [layer(part, global_at=places, mask=mask, cache=cache) for part in x.split(cut, 1)]
    assert_close(torch.cat(parts, 1), layer(x, global_at=places, mask=mask), **exact)
    assert len(cache) == W + F

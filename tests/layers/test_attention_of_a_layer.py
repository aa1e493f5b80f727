"""MultiHead(attention=…): the same layer with another mechanism, or within a mask of its own."""

import copy

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.matrix_free import Linformer, Performer
from regard.errors import PathError, ShapeError
from regard.layers import listen

M, H, G, T, D = 24, 6, 3, 17, 4
X = torch.randn(2, T, M, generator=torch.Generator().manual_seed(0))


def layer(attention=None, **more):
    torch.manual_seed(1)
    return regard.MultiHead(M, H, kv_heads=G, attention=attention, **more)


def test_a_mechanism_is_part_of_the_layer():
    made = layer(Performer(D, 32))
    assert "attention.directions" in made.state_dict()
    assert [n for n, _ in layer(Linformer(T, 8)).named_parameters() if "attention" in n] == ["attention.of_keys"]
    other = layer(Performer(D, 32, generator=torch.Generator().manual_seed(5)))
    other.load_state_dict(made.state_dict())
    assert other(X).equal(made(X))
    assert copy.deepcopy(made)(X).equal(made(X))
    made.double()
    assert made(X.double()).dtype == torch.float64


@pytest.mark.parametrize("mask", [None, regard.causal(), regard.causal() & regard.padding([9, T])])
def test_it_computes_what_attend_computes(mask):
    performer = Performer(D, 32)
    plain, made = layer(), layer(performer)
    a = made.attend(X, mask=mask)
    q, k, v = (getattr(plain, f"to_{name}")(X).unflatten(-1, (-1, D)).transpose(1, 2) for name in ("q", "k", "v"))
    assert a.path == "performer"
    assert_close(a.mix, regard.attend(q, k, v, mask=mask, by=performer).mix)
    assert a.error().mix > 0
    many = layer(Performer(D, 20_000))
    assert_close(many(X / 2, mask=mask), plain(X / 2, mask=mask), atol=0.02, rtol=0)


def test_all_of_it_learns():
    for made in (layer(Linformer(T, 8)), layer(Performer(D, 32), positions=regard.Rotary(D))):
        made(X, mask=regard.padding([9, T])).square().sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in made.parameters() if p.numel() > G * D)


def test_a_cache_gives_what_one_call_gives():
    made = layer(Performer(D, 32), positions=regard.Rotary(D))
    whole, cache = made(X, mask=regard.causal()), regard.KeyValueCache()
    parts = [made(x, mask=regard.causal(), cache=cache) for x in X.split([9, 1, 7], 1)]
    assert_close(torch.cat(parts, 1), whole, atol=1e-5, rtol=1e-5)


def test_it_is_heard_and_watched_as_implied():
    made = layer(Performer(D, 32))
    with listen() as heard:
        out = made(X)
    assert heard[0][1].weights.kind == "implied"
    with regard.watch(made) as trace:
        assert made(X).equal(out)
    assert_close(trace.layers[0].weights.dense(), heard[0][1].weights.dense().detach())


def test_a_mask_of_the_layer_is_kept_beside_that_of_the_call():
    within, plain = layer(regard.longformer(2, global_at=[0])), layer()
    assert "attention=longformer(2" in repr(within)
    assert list(within.state_dict()) == list(plain.state_dict())
    mine = regard.longformer(2, global_at=[0])
    assert within(X).equal(plain(X, mask=mine))
    assert within(X, mask=regard.causal()).equal(plain(X, mask=mine & regard.causal()))
    seen = torch.rand(2, 1, T, T, generator=torch.Generator().manual_seed(3)) < 0.7
    both = seen & mine.dense(T, T)
    assert_close(within(X, mask=seen), plain(X, mask=both))
    assert_close(within(X, mask=lambda b, h, q, k: k <= q), plain(X, mask=mine & regard.causal()))


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"dropout": 0.1}, "dropout"),
        ({"softcap": 3.0}, "softcap"),
        ({"sinks": True}, "sinks"),
        ({"positions": regard.ALiBi(H)}, "positions"),
        ({"score": regard.Gaussian()}, "score"),
    ],
)
def test_what_the_mechanism_cannot_do_is_refused_when_the_layer_is_made(more, named):
    with pytest.raises(PathError, match=f"{named}= came with by=Performer"):
        layer(Performer(D), **more)


def test_wrong_sizes_are_refused_when_the_layer_is_made():
    with pytest.raises(ShapeError, match=r"make it as Performer\(4\)"):
        layer(Performer(64))
    with pytest.raises(ShapeError, match="mixes for 5"):
        layer(Linformer(T, heads=5))
    assert layer(Linformer(T, heads=H))(X).shape == X.shape

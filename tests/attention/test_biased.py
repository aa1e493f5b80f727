"""Attention under a bias that learns, by its own gradient, beside the same stage by stage."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention import attend as whole
from regard.attention.kernels.biased import attend_biased

B, H, Q, K, D, E = 2, 3, 5, 7, 4, 6
BIASES = {"all": (B, H, Q, K), "heads": (1, H, Q, K), "keys": (1, 1, 1, K), "batch": (B, 1, Q, 1)}
MASKS = {"none": None, "causal": regard.causal(), "padding": regard.padding([7, 4]), "rows": regard.window(1, 1)}


def drawn(bias=(1, H, Q, K), dtype=torch.float64):
    shapes = (B, H, Q, D), (B, H, K, D), (B, H, K, E), bias
    return tuple(torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("mask", MASKS)
def test_it_is_what_the_stages_give(mask, bias):
    q, k, v, added = drawn(BIASES[bias])
    one, other = (
        regard.attend(q, k, v, bias=added, mask=MASKS[mask], scale=0.7, path=path) for path in (None, "explicit")
    )
    assert one.mix.grad_fn.name() == "BiasedSoftmaxBackward"
    assert other.mix.grad_fn.name() != "BiasedSoftmaxBackward"
    assert_close(one.mix, other.mix)
    assert_close(one.weights.dense() @ v, one.mix)
    given = torch.randn_like(one.mix)
    for a, b in zip(*(torch.autograd.grad(x.mix, (q, k, v, added), given) for x in (one, other))):
        assert_close(a, b)


@pytest.mark.parametrize("wanted", [(True, True), (False, False)], ids=str)
def test_derivatives_of_both_orders_are_those_of_small_differences(wanted):
    learns = (*wanted, True, True)
    given = [x.detach().requires_grad_(need) for x, need in zip(drawn(), learns)]

    def mix(*some):
        left = iter(some)
        q, k, v, bias = (next(left) if need else x for x, need in zip(given, learns))
        return regard.attend(q, k, v, bias=bias, mask=regard.window(2, 1)).mix

    learned = tuple(x for x in given if x.requires_grad)
    assert torch.autograd.gradcheck(mix, learned)
    assert torch.autograd.gradgradcheck(mix, learned)


def test_buckets_get_the_gradient_that_the_stages_give():
    bias = regard.positions.Buckets(H, buckets=8, furthest=16).double()
    q, k, v, _ = drawn()
    found = []
    for path in (None, "explicit"):
        mix = regard.attend(q, k, v, bias=bias, path=path).mix
        found.append(torch.autograd.grad(mix.square().sum(), (q, bias.embedding.weight)))
    for a, b in zip(*found):
        assert_close(a, b)


def test_what_is_hidden_is_never_read_and_rows_that_see_nothing_are_zero():
    q, k, v, bias = drawn()
    k, v = k.detach(), v.detach()
    want = regard.attend(q, k, v, bias=bias, mask=regard.padding([7, 4]), path="explicit").mix
    k[1, :, 4:], v[1, :, 5:] = torch.nan, torch.inf
    assert_close(regard.attend(q, k, v, bias=bias, mask=regard.padding([7, 4])).mix, want)
    assert not regard.attend(q, k[:, :, :7], v, bias=bias, mask=regard.padding([7, 0])).mix[1].any()


@pytest.mark.parametrize("settings", [{"softcap": 3.0}, {"sink_logits": torch.zeros(H)}, {"weigh": regard.sparsemax}])
def test_what_is_unusual_goes_stage_by_stage(settings, monkeypatch):
    asked = []
    monkeypatch.setattr(whole, "attend_biased", lambda *x: asked.append(attend_biased(*x)))
    q, k, v, bias = (x.detach().float() for x in drawn())
    learns = bias.clone().requires_grad_()
    regard.attend(q, k, v, bias=learns, **settings)
    regard.attend(q, k[:, :1], v[:, :1], bias=bias)  # grouped, and nothing that asks for a gradient: the fused kernel
    regard.attend(q, k[:, :1], v[:, :1], bias=learns)
    assert asked == [None, None]

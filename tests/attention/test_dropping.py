"""Attention that drops weights by its own gradient, beside the same stage by stage."""

import itertools

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention import attend as whole
from regard.attention.kernels.dropping import attend_dropping

B, H, Q, K, D, E = 2, 3, 5, 7, 4, 6


def drawn(dtype=torch.float64):
    shapes = (B, H, Q, D), (B, H, K, D), (B, H, K, E)
    return tuple(torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes)


def both(q, k, v, **settings):
    """The same call by this way and stage by stage, with the same draws."""
    found = []
    for path in (None, "explicit"):
        generator = torch.Generator().manual_seed(11)
        found.append(regard.attend(q, k, v, dropout=0.3, path=path, generator=generator, **settings))
    return found


MASKS = {"none": None, "causal": regard.causal(), "padding": regard.padding([7, 4]), "rows": regard.window(1, 1)}


@pytest.mark.parametrize("mask", MASKS)
def test_it_is_what_the_stages_give(mask):
    q, k, v = drawn()
    settings = {"mask": MASKS[mask], "scale": 0.7}
    one, other = both(q, k, v, **settings)
    assert one.mix.grad_fn.name() == "DroppedSoftmaxBackward"
    assert other.mix.grad_fn.name() != "DroppedSoftmaxBackward"
    assert_close(one.mix, other.mix)
    assert_close(one.weights.used() @ v, one.mix)  # what was dropped can be shown later
    given = torch.randn_like(one.mix)
    for a, b in zip(*(torch.autograd.grad(x.mix, (q, k, v), given) for x in (one, other))):
        assert_close(a, b)


@pytest.mark.parametrize("wanted", list(itertools.product([True, False], repeat=3))[:-1], ids=str)
def test_derivatives_of_both_orders_are_those_of_small_differences(wanted):
    given = [x.detach().requires_grad_(need) for x, need in zip(drawn(), wanted)]

    def mix(*some):
        left = iter(some)
        all_three = [next(left) if need else x for x, need in zip(given, wanted)]
        return regard.attend(*all_three, dropout=0.4, generator=torch.Generator().manual_seed(3)).mix

    learned = tuple(x for x in given if x.requires_grad)
    assert torch.autograd.gradcheck(mix, learned)
    assert torch.autograd.gradgradcheck(mix, learned)


def test_what_is_hidden_is_never_read_and_rows_that_see_nothing_are_zero():
    q, k, v = (x.detach() for x in drawn())
    want = both(q, k, v, mask=regard.padding([7, 4]))[1].mix
    k[1, :, 4:], v[1, :, 5:] = torch.nan, torch.inf
    assert_close(both(q, k, v, mask=regard.padding([7, 4]))[0].mix, want)
    assert not both(q, k, v, mask=regard.padding([7, 0]))[0].mix[1].any()


@pytest.mark.parametrize(
    "settings",
    [
        {"softcap": 3.0},
        {"sink_logits": torch.zeros(H)},
        {"bias": torch.zeros(1, 1, Q, K)},
        {"weigh": regard.sparsemax},
        {"dropout": 1.0},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_what_is_unusual_goes_stage_by_stage(settings, monkeypatch):
    asked = []
    monkeypatch.setattr(whole, "attend_dropping", lambda *x: asked.append(attend_dropping(*x)))
    regard.attend(*(x.float() for x in drawn()), **{"dropout": 0.3} | settings)
    assert asked == [None]


def test_half_precision_and_grouped_heads_go_stage_by_stage():
    q, k, v = (x.detach() for x in drawn(torch.float32))
    for some in ((q.half(), k.half(), v.half()), (q, k[:, :1], v[:, :1]), (q[0], k[0], v[0])):
        assert regard.attend(*some, dropout=0.3).mix.shape[-1] == E

"""R-Drop beside its formula in plain torch on the whole logits, in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.errors import ConfigError, PathError, ShapeError
from regard.training.loss import Loss, smoothed_loss
from regard.training.r_drop import r_drop_loss

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def draw(*lead, width=5, words=11, padded=0.3, scale=1.0, dtype=torch.float64):
    """hidden of two passes that differ, weight, bias and targets; a share of the targets is padding."""
    generator = torch.Generator().manual_seed(len(lead) + words)
    normal = {"dtype": dtype, "generator": generator}
    hidden = torch.randn(2, *lead, width, **normal)
    weight, bias = scale * torch.randn(words, width, **normal), scale * torch.randn(words, **normal)
    targets = torch.randint(1, words, lead, generator=generator)
    targets[torch.rand(lead, generator=generator) < padded] = 0
    return hidden, weight, bias, targets


def plain(hidden, weight, bias, targets, *, alpha, smoothing=0.1):
    """Half of equation 4 of the paper, by what torch has for each of its terms."""
    first, second = (F.linear(half, weight, bias).flatten(0, -2) for half in hidden)
    labels, kept = targets.flatten(), targets.flatten() != 0
    settings = {"ignore_index": 0, "reduction": "sum"}
    costs = [F.cross_entropy(logits, labels, label_smoothing=smoothing, **settings) for logits in (first, second)]
    p, q = (logits[kept].log_softmax(-1) for logits in (first, second))
    divergence = [F.kl_div(b, a, log_target=True, reduction="sum") for a, b in ((p, q), (q, p))]
    whole = sum(costs) + alpha * sum(divergence) / 2
    nll = sum(F.cross_entropy(logits, labels, **settings) for logits in (first, second)) / 2
    return Loss(whole / 2, int(kept.sum()), nll)


def gradients(way, hidden, weight, bias, targets, factor=1.0, **settings):
    given = [None if x is None else x.detach().clone().requires_grad_() for x in (hidden, weight, bias)]
    loss = way(*given, targets, **settings)
    return loss, torch.autograd.grad(loss.sum * factor, [x for x in given if x is not None])


def must_agree(hidden, weight, bias, targets, chunk=None, factor=1.0, **settings):
    want, want_gradients = gradients(plain, hidden, weight, bias, targets, factor, **settings)
    found, found_gradients = gradients(r_drop_loss, hidden, weight, bias, targets, factor, chunk=chunk, **settings)
    assert_close(found.sum, want.sum, **EXACT)
    assert_close(found.nll, want.nll.detach(), **EXACT)
    assert found.count == want.count
    assert not found.nll.requires_grad
    for one, other in zip(found_gradients, want_gradients, strict=True):
        assert_close(one, other, **EXACT)


@pytest.mark.parametrize("lead", [(1,), (7,), (3, 13)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("alpha", [0, 0.7, 5.0])
@pytest.mark.parametrize("biased", [True, False])
def test_it_is_the_formula_of_the_paper(lead, smoothing, alpha, biased):
    hidden, weight, bias, targets = draw(*lead)
    must_agree(hidden, weight, bias if biased else None, targets, smoothing=smoothing, alpha=alpha, factor=0.37)


@pytest.mark.parametrize("chunk", [1, 2, 7, 36, 1000])
@pytest.mark.parametrize("padded", [0.0, 0.5])
def test_chunks_need_not_divide_the_words(chunk, padded):
    must_agree(*draw(37, padded=padded), chunk=chunk, alpha=3.0)


def test_the_chunk_that_is_taken_when_none_is_given_makes_several():
    must_agree(*draw(83, words=70_001, width=3), alpha=2.0)


def test_passes_that_are_sure_of_different_words_stay_finite_and_right():
    hidden, weight, bias, targets = draw(19, scale=40.0)
    logits = F.linear(hidden, weight, bias)
    assert (logits[0] - logits[1]).abs().max() > 100
    must_agree(hidden, weight, bias, targets, chunk=4, alpha=5.0)


def test_two_passes_that_agree_cost_what_one_costs():
    hidden, weight, bias, targets = draw(4, 9)
    hidden = hidden[:1].repeat(2, 1, 1, 1)
    want, (_, into_weight, into_bias) = gradients(smoothed_loss, hidden[0], weight, bias, targets)
    found, (_, weight_too, bias_too) = gradients(r_drop_loss, hidden, weight, bias, targets, alpha=7.0)
    for one, other in ((found.sum, want.sum), (found.nll, want.nll), (weight_too, into_weight), (bias_too, into_bias)):
        assert_close(one, other, **EXACT)


def test_derivatives_are_those_of_small_differences():
    hidden, weight, bias, targets = draw(6)
    given = tuple(x.requires_grad_() for x in (hidden, weight, bias))
    assert torch.autograd.gradcheck(lambda *x: r_drop_loss(*x, targets, chunk=4, alpha=1.5).sum, given)


def test_padding_alone_costs_nothing():
    hidden, weight, bias, _ = draw(3, 4)
    loss, found = gradients(r_drop_loss, hidden, weight, bias, torch.zeros(3, 4, dtype=torch.long), alpha=5.0)
    assert (loss.sum.item(), loss.count, loss.nll.item()) == (0.0, 0, 0.0)
    assert not any(x.any() for x in found)


def test_without_gradients_it_gives_the_same_numbers():
    hidden, weight, bias, targets = draw(17)
    with torch.no_grad():
        loss = r_drop_loss(hidden, weight.requires_grad_(), bias, targets, chunk=5, alpha=5.0)
    assert not loss.sum.requires_grad
    assert_close(loss.sum, plain(hidden, weight.detach(), bias, targets, alpha=5.0).sum, **EXACT)


def test_in_float32_it_is_close():
    given = draw(50, words=300, width=16, dtype=torch.float32)
    loss, found = gradients(r_drop_loss, *given, alpha=5.0)
    want, wanted = gradients(plain, *(x.double() if x.is_floating_point() else x for x in given), alpha=5.0)
    assert_close(loss.sum.double(), want.sum, rtol=1e-5, atol=1e-5)
    for one, other in zip(found, wanted):
        assert_close(one.double(), other, rtol=1e-4, atol=1e-5 * float(other.abs().max()))


def test_what_does_not_fit_is_refused():
    hidden, weight, bias, targets = draw(4)
    with pytest.raises(ShapeError, match="wanted \\(2, …, m\\)"):
        r_drop_loss(hidden[:1], weight, bias, targets, alpha=1.0)
    with pytest.raises(ShapeError, match="one target per row"):
        r_drop_loss(hidden, weight, bias, targets[:3], alpha=1.0)
    for alpha in (-1.0, math.inf):
        with pytest.raises(ConfigError, match="how far two passes differ"):
            r_drop_loss(hidden, weight, bias, targets, alpha=alpha)
    loss = r_drop_loss(hidden.requires_grad_(), weight, bias, targets, alpha=1.0).sum
    with pytest.raises(PathError, match="no second derivative"):
        torch.autograd.grad(loss, hidden, create_graph=True)

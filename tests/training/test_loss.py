"""The loss beside F.cross_entropy on the whole logits, in values and in every gradient."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regard.errors import ConfigError, DtypeError, PathError, RegardError, ShapeError
from regard.training.loss import Loss, smoothed_loss
from tests.child import in_child

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def drawn(*lead, width=5, words=11, padded=0.3, scale=1.0, dtype=torch.float64):
    """hidden, weight, bias and targets; a share of the targets is padding."""
    hidden = torch.randn(*lead, width, dtype=dtype)
    weight, bias = scale * torch.randn(words, width, dtype=dtype), scale * torch.randn(words, dtype=dtype)
    targets = torch.randint(1, words, lead)
    targets[torch.rand(lead) < padded] = 0
    return hidden, weight, bias, targets


def plain(hidden, weight, bias, targets, smoothing=0.1, pad=0):
    logits = F.linear(hidden, weight, bias).flatten(0, -2)
    settings = {"ignore_index": pad, "reduction": "sum"}
    whole = F.cross_entropy(logits, targets.flatten(), label_smoothing=smoothing, **settings)
    return Loss(whole, int((targets != pad).sum()), F.cross_entropy(logits, targets.flatten(), **settings))


def gradients(way, hidden, weight, bias, targets, factor=1.0, **settings):
    """The loss, and the gradients of `factor` times it."""
    given = [None if x is None else x.detach().clone().requires_grad_() for x in (hidden, weight, bias)]
    loss = way(*given, targets, **settings)
    return loss, torch.autograd.grad(loss.sum * factor, [x for x in given if x is not None])


def must_agree(hidden, weight, bias, targets, chunk=None, factor=1.0, **settings):
    want, want_gradients = gradients(plain, hidden, weight, bias, targets, factor, **settings)
    found, found_gradients = gradients(smoothed_loss, hidden, weight, bias, targets, factor, chunk=chunk, **settings)
    assert_close(found.sum, want.sum, **EXACT)
    assert_close(found.nll, want.nll, **EXACT)
    assert found.count == want.count
    assert not found.nll.requires_grad
    assert len(found_gradients) == len(want_gradients)
    for one, other in zip(found_gradients, want_gradients):
        assert_close(one, other, **EXACT)


@pytest.mark.parametrize("lead", [(1,), (7,), (3, 13), (2, 3, 6)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("biased", [True, False])
def test_it_is_cross_entropy(lead, smoothing, biased):
    hidden, weight, bias, targets = drawn(*lead)
    must_agree(hidden, weight, bias if biased else None, targets, smoothing=smoothing, factor=0.37)


@pytest.mark.parametrize("chunk", [1, 2, 7, 36, 37, 1000])
@pytest.mark.parametrize("padded", [0.0, 0.5])
def test_chunks_need_not_divide_the_rows(chunk, padded):
    must_agree(*drawn(37, padded=padded), chunk=chunk)


def test_the_chunk_that_is_taken_when_none_is_given_makes_several():
    must_agree(*drawn(83, words=70_001, width=3))


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e5])
def test_logits_may_be_extreme(scale):
    hidden, weight, bias, targets = drawn(19, scale=scale)
    assert F.linear(hidden, weight, bias).abs().max() > scale
    must_agree(hidden, weight, bias, targets, chunk=4)
    must_agree(hidden, weight, bias, targets, chunk=4, smoothing=0.0)


def test_in_float32_extreme_logits_stay_finite_and_close():
    given = drawn(23, scale=1e4, dtype=torch.float32)
    loss, found = gradients(smoothed_loss, *given, chunk=5)
    want, wanted = gradients(plain, *(x.double() if x.is_floating_point() else x for x in given))
    assert_close(loss.sum.double(), want.sum, rtol=1e-5, atol=1e-5)
    for one, other in zip(found, wanted):
        assert_close(one.double(), other, rtol=1e-3, atol=1e-3 * float(other.abs().max()))


def test_no_probability_is_so_small_that_processors_stumble():
    hidden, weight = torch.tensor([[1.0], [1.0]]), torch.linspace(-100.0, 100.0, 41)[:, None]  # e⁻²⁰⁰ to 1
    _, found = gradients(smoothed_loss, hidden, weight, None, torch.tensor([40, 39]), smoothing=0.0)
    denormal = (found[1] != 0) & (found[1].abs() < torch.finfo(torch.float32).tiny)
    assert not denormal.any()
    wanted = gradients(plain, hidden.double(), weight.double(), None, torch.tensor([40, 39]), smoothing=0.0)[1]
    assert_close(found[1].double(), wanted[1], rtol=1e-5, atol=1e-6)


def test_derivatives_are_those_of_small_differences():
    hidden, weight, bias, targets = drawn(6)
    given = tuple(x.requires_grad_() for x in (hidden, weight, bias))
    assert torch.autograd.gradcheck(lambda *x: smoothed_loss(*x, targets, chunk=4).sum, given)


@pytest.mark.parametrize("wanted", list(itertools.product([True, False], repeat=3))[:-1], ids=str)
def test_only_what_asks_for_a_gradient_gets_one(wanted):
    given = drawn(9)
    targets, found, want = given[3], [], []
    for way, into in ((smoothed_loss, found), (plain, want)):
        leaves = [x.detach().clone().requires_grad_(need) for x, need in zip(given, wanted)]
        way(*leaves, targets).sum.backward()
        into += [x.grad for x in leaves]
    assert [x is not None for x in found] == list(wanted)
    for one, other in zip(found, want):
        assert_close(one, other, **EXACT)


def test_without_gradients_it_gives_the_same_numbers():
    hidden, weight, bias, targets = drawn(17)
    weight.requires_grad_()
    with torch.no_grad():
        loss = smoothed_loss(hidden, weight, bias, targets, chunk=5)
    assert not loss.sum.requires_grad
    assert_close(loss.sum, plain(hidden, weight, bias, targets).sum.detach(), **EXACT)
    with torch.inference_mode():
        assert_close(smoothed_loss(hidden, weight, bias, targets).nll, loss.nll, **EXACT)


@pytest.mark.parametrize("shape", [(6,), (0,), (2, 0), (3, 4)])
def test_padding_alone_costs_nothing(shape):
    hidden, weight, bias, _ = drawn(*shape)
    loss, found = gradients(smoothed_loss, hidden, weight, bias, torch.zeros(shape, dtype=torch.long))
    assert (loss.sum.item(), loss.count, loss.nll.item()) == (0.0, 0, 0.0)
    assert [x.shape for x in found] == [hidden.shape, weight.shape, bias.shape]
    assert not any(x.any() for x in found)


def test_what_stands_in_padded_rows_is_not_looked_at():
    hidden, weight, bias, targets = drawn(4, 7)
    spoilt = hidden.masked_fill((targets == 0)[..., None], torch.nan)
    want, want_gradients = gradients(smoothed_loss, hidden, weight, bias, targets)
    found, found_gradients = gradients(smoothed_loss, spoilt, weight, bias, targets)
    assert_close(found, want, rtol=0, atol=0)
    for one, other in zip(found_gradients, want_gradients):
        assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("pad", [-100, 4])
def test_any_id_may_mean_padding(pad):
    hidden, weight, bias, targets = drawn(29)
    must_agree(hidden, weight, bias, targets.masked_fill(targets == 0, pad), pad=pad)


def test_a_weight_that_is_used_elsewhere_too_gets_both_gradients():
    _, weight, bias, targets = drawn(3, 8)
    read, found = torch.randint(0, 11, (3, 8)), []
    for way in (plain, smoothed_loss):
        tied = weight.clone().requires_grad_()
        way(torch.tanh(F.embedding(read, tied)), tied, bias, targets).sum.backward()
        found.append(tied.grad)
    assert_close(*found, **EXACT)


def test_backward_may_be_called_twice_and_adds_up():
    hidden, weight, bias, targets = drawn(12)
    weight.requires_grad_()
    loss = smoothed_loss(hidden, weight, bias, targets).sum
    loss.backward(retain_graph=True)
    once = weight.grad.clone()
    (3 * loss).backward()
    assert_close(weight.grad, 4 * once, **EXACT)


def test_a_second_derivative_is_refused():
    hidden, weight, bias, targets = drawn(8)
    loss = smoothed_loss(hidden.requires_grad_(), weight, bias, targets).sum
    with pytest.raises(PathError, match="has no second derivative"):
        torch.autograd.grad(loss, hidden, create_graph=True)


@in_child
def test_half_the_precision_is_summed_in_float32():
    hidden, weight, bias, targets = drawn(31, dtype=torch.float32)
    given = [x.to(torch.bfloat16) for x in (hidden, weight, bias)]
    loss, found = gradients(smoothed_loss, *given, targets)
    want, wanted = gradients(smoothed_loss, *(x.float() for x in given), targets)
    assert loss.sum.dtype == loss.nll.dtype == torch.float32
    assert_close(loss.sum, want.sum, rtol=0, atol=0)
    assert {x.dtype for x in found} == {torch.bfloat16}
    for one, other in zip(found, wanted):
        assert_close(one, other.to(torch.bfloat16), rtol=0, atol=0)


@in_child
def test_autocast_changes_nothing_here():
    hidden, weight, bias, targets = drawn(14, dtype=torch.float32)
    want, wanted = gradients(smoothed_loss, hidden, weight, bias, targets)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, found = gradients(smoothed_loss, hidden, weight, bias, targets)
        mixed, _ = gradients(smoothed_loss, hidden.bfloat16(), weight, bias, targets)
    assert_close(loss.sum, want.sum, rtol=0, atol=0)
    assert mixed.sum.dtype == torch.float32
    for one, other in zip(found, wanted):
        assert_close(one, other, rtol=0, atol=0)


def test_a_model_that_has_gone_wrong_shows_it():
    hidden, weight, bias, targets = drawn(5, padded=0.0)
    assert smoothed_loss(hidden.fill_(torch.nan), weight, bias, targets).sum.isnan()


BAD = [
    ({"targets": torch.ones(4)}, DtypeError, "whole numbers"),
    ({"hidden": torch.ones(4, 5, dtype=torch.long)}, DtypeError, "floating point"),
    ({"targets": torch.ones(5, dtype=torch.long)}, ShapeError, "one target per row"),
    ({"weight": torch.ones(5, 11)}, ShapeError, "one row per word"),
    ({"bias": torch.ones(5)}, ShapeError, "one number per word"),
    ({"targets": torch.tensor([1, 2, 11, 3])}, ShapeError, "a target is 11, but there are 11 words"),
    ({"targets": torch.tensor([1, -7, 2, 3])}, ShapeError, "a target is -7"),
    ({"smoothing": 1.5}, ConfigError, "a share"),
    ({"chunk": 0}, ConfigError, "counts rows"),
]


@pytest.mark.parametrize(("changed", "kind", "words"), BAD, ids=[words for _, _, words in BAD])
def test_what_does_not_fit_is_refused(changed, kind, words):
    given = {"hidden": torch.ones(4, 5), "weight": torch.ones(11, 5), "bias": None}
    given |= {"targets": torch.tensor([1, 2, 3, 0])} | changed
    with pytest.raises(kind, match=words) as caught:
        smoothed_loss(**given)
    assert isinstance(caught.value, RegardError)

"""Weighers against SciPy, the entmax package and bisection, and the promises that all of them keep."""

import math
from functools import partial
from types import SimpleNamespace

import entmax as theirs
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.special import softmax as scipy_softmax
from torch.autograd import grad, gradcheck, gradgradcheck
from torch.testing import assert_close

from regard.attention.weigh import entmax, sigmoid, softmax, sparsemax, top_k
from regard.errors import MaskError
from tests.oracles import bisect_entmax

F64 = torch.float64
WEIGHERS = {
    "softmax": softmax,
    "softmax with sink": partial(softmax, sink=0.5),
    "sparsemax": sparsemax,
    "entmax 1.5": entmax,
    "entmax 1.3": partial(entmax, alpha=1.3),
    "entmax 1.8": partial(entmax, alpha=1.8),
    "sigmoid": sigmoid,
    "sigmoid with bias": partial(sigmoid, bias=-1.1),
    "top_k": top_k(2),
}
every_weigher = pytest.mark.parametrize("weigh", WEIGHERS.values(), ids=WEIGHERS)
any_weigher = st.sampled_from(list(WEIGHERS.values()))
ADDS_TO_ONE = [
    softmax,
    sparsemax,
    entmax,
    *(WEIGHERS[name] for name in ("entmax 1.3", "entmax 1.8", "top_k")),
]


def logits(*shape, spread=1.5, seed=0, dtype=F64):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed)).mul(spread).to(dtype)


def example_mask():
    """(2, 3, 1, 5, 7) has a blind row, a row with one key and all sorts of others."""
    allowed = torch.rand(2, 1, 5, 7, generator=torch.Generator().manual_seed(3)) > 0.4
    allowed[0, 0, 1] = False
    allowed[1, 0, 2] = torch.arange(7) == 4
    return allowed


@st.composite
def masked_scores(draw):
    """Scores of any small shape, zero sizes included, and a mask that broadcasts to them."""
    lead = draw(st.lists(st.integers(0, 3), max_size=2))
    q, k = draw(st.integers(0, 4)), draw(st.integers(0, 6))
    scores = logits(*lead, q, k, spread=draw(st.sampled_from([0.0, 0.1, 2.0, 50.0])), seed=draw(st.integers(0, 99)))
    shape = [n if draw(st.booleans()) else 1 for n in scores.shape]
    cells = draw(st.lists(st.booleans(), min_size=math.prod(shape), max_size=math.prod(shape)))
    return scores, torch.tensor(cells, dtype=torch.bool).reshape(shape)


def weigh_and_differentiate(weigh, scores, allowed):
    """Weights, and the gradient of a sum in which no two cells count the same."""
    scores = scores.clone().requires_grad_()
    weights = weigh(scores, allowed)
    (slope,) = grad((weights * logits(*weights.shape, seed=1)).sum(), scores, create_graph=True)
    (curve,) = grad(slope.square().sum(), scores) if slope.requires_grad else (torch.zeros_like(slope),)
    return weights.detach(), slope.detach(), curve.detach()


# what all of them promise


@given(any_weigher, masked_scores())
def test_hidden_cells_weigh_exactly_zero_and_visible_ones_never_less(weigh, given):
    scores, allowed = given
    weights = weigh(scores, allowed)
    assert weights.shape == scores.shape
    assert not weights[~allowed.expand_as(scores)].any()
    assert (weights >= 0).all()
    assert weights.isfinite().all()


@given(st.sampled_from(ADDS_TO_ONE), masked_scores())
def test_a_row_adds_to_one_or_to_zero_where_nothing_may_be_seen(weigh, given):
    scores, allowed = given
    sees = allowed.expand_as(scores).any(-1)
    assert_close(weigh(scores, allowed).sum(-1), sees.to(F64))


@given(any_weigher, masked_scores(), st.sampled_from([math.nan, math.inf, -math.inf, 1e300]))
def test_what_stands_in_a_hidden_cell_reaches_neither_weights_nor_gradients(weigh, given, poison):
    scores, allowed = given
    clean = weigh_and_differentiate(weigh, scores, allowed)
    dirty = weigh_and_differentiate(weigh, scores.masked_fill(~allowed, poison), allowed)
    for a, b in zip(clean, dirty, strict=True):
        assert torch.equal(a, b)


@given(any_weigher, masked_scores())
def test_a_hidden_cell_and_a_score_of_minus_infinity_are_the_same(weigh, given):
    scores, allowed = given
    by_mask = weigh_and_differentiate(weigh, scores, allowed)
    by_score = weigh_and_differentiate(weigh, scores.masked_fill(~allowed, -math.inf), None)
    for a, b in zip(by_mask, by_score, strict=True):
        assert torch.equal(a, b)


@given(any_weigher, masked_scores())
def test_hiding_keys_equals_leaving_them_out(weigh, given):
    scores, allowed = given
    weights = weigh(scores, allowed)
    allowed = allowed.expand_as(scores)
    for row in np.ndindex(*scores.shape[:-1]):
        few = scores[row][allowed[row]]
        assert_close(weights[row][allowed[row]], weigh(few[None])[0])


@every_weigher
@pytest.mark.parametrize("how", ["mask", "scores"])
def test_a_row_that_may_look_nowhere_is_zero_with_zero_gradients_of_two_orders(weigh, how):
    scores, allowed = logits(3, 4, 5), torch.ones(3, 4, 5, dtype=torch.bool)
    if how == "mask":
        allowed[1, 2] = False
    else:
        scores[1, 2] = -math.inf
    with torch.autograd.detect_anomaly(check_nan=True):  # not even on the way
        parts = weigh_and_differentiate(weigh, scores, allowed)
    for part in parts:
        assert part.isfinite().all()
        assert not part[1, 2].any()


@every_weigher
def test_a_nan_that_may_be_seen_reaches_its_row_and_no_other(weigh):
    scores, allowed = logits(3, 5), torch.ones(3, 5, dtype=torch.bool)
    scores[1, 2], allowed[1, 0] = math.nan, False
    weights = weigh(scores, allowed)
    assert weights[1, 2].isnan()
    assert weights[1, 0] == 0
    assert weights[[0, 2]].isfinite().all()


@every_weigher
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_no_keys_give_no_weights(weigh, shape):
    scores = torch.zeros(3, *shape, requires_grad=True)
    assert weigh(scores).shape == scores.shape
    assert weigh(scores, torch.zeros(3, *shape, dtype=torch.bool)).shape == scores.shape
    weigh(scores).sum().backward()


@every_weigher
@pytest.mark.parametrize("dtype", [torch.float32, F64, torch.float16, torch.bfloat16], ids=str)
def test_huge_scores_stay_finite_in_every_precision(weigh, dtype):
    scores = torch.tensor([[1e4, -1e4, 9.9e3, 0.0, 1e4]], dtype=dtype)
    weights, slope, curve = weigh_and_differentiate(weigh, scores, None)
    assert weights.dtype == dtype
    assert_close(weights[0, [0, 4]].double(), weights[0, [0, 0]].double())
    assert weights.isfinite().all()
    assert slope.isfinite().all()
    assert curve.isfinite().all()


@every_weigher
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_rounded_once_at_the_end(weigh, dtype):
    scores, allowed = logits(2, 3, 5, 7, dtype=dtype), example_mask()
    assert torch.equal(weigh(scores, allowed), weigh(scores.float(), allowed).to(dtype))


@every_weigher
def test_float64_is_kept_in_float64(weigh):
    scores = logits(3, 5)
    assert weigh(scores).dtype == F64
    assert not torch.equal(weigh(scores), weigh(scores.float()).double())


@every_weigher
def test_first_and_second_gradients_are_right(weigh):
    scores, allowed = logits(2, 3, 5, spread=0.7).requires_grad_(), torch.ones(2, 1, 5, dtype=torch.bool)
    allowed[0, 0, 3] = False
    allowed[1] = torch.arange(5) == 9  # blind
    assert gradcheck(weigh, (scores, allowed), check_forward_ad=True)
    assert gradgradcheck(weigh, (scores, allowed))


@every_weigher
def test_vmap_over_scores_over_the_mask_and_over_both(weigh):
    scores, allowed = logits(2, 5, 7), example_mask()[:, 0]
    assert_close(torch.vmap(weigh)(scores, allowed), weigh(scores, allowed))
    assert_close(torch.vmap(weigh, (0, None))(scores, allowed[0]), weigh(scores, allowed[0]))
    expected = torch.stack([weigh(scores[0], one) for one in allowed])
    assert_close(torch.vmap(weigh, (None, 0))(scores[0], allowed), expected)


@every_weigher
def test_forward_derivatives_equal_backward_ones(weigh):
    scores, allowed = logits(5, 7), example_mask()[1, 0]
    call = lambda s: weigh(s, allowed)  # noqa: E731
    assert_close(torch.func.jacfwd(call)(scores), torch.func.jacrev(call)(scores))


@every_weigher
def test_strides_do_not_matter_and_nothing_is_changed(weigh):
    scores, allowed = logits(2, 7, 5).mT, example_mask()[:, 0]
    kept = scores.clone(), allowed.clone()
    assert_close(weigh(scores, allowed), weigh(scores.contiguous(), allowed.contiguous()))
    assert torch.equal(scores, kept[0])
    assert torch.equal(allowed, kept[1])


@pytest.mark.parametrize("weigh", [w for n, w in WEIGHERS.items() if n != "top_k"])
def test_the_order_of_keys_does_not_matter(weigh):
    scores, order = logits(3, 7), torch.tensor([3, 1, 6, 0, 5, 2, 4])
    assert_close(weigh(scores[:, order]), weigh(scores)[:, order])


@every_weigher
def test_a_mask_that_does_not_fit_is_refused_quoting_both_shapes(weigh):
    with pytest.raises(MaskError, match=r"allowed \(2, 3, 4\) does not broadcast to scores \(3, 5\)"):
        weigh(logits(3, 5), torch.ones(2, 3, 4, dtype=torch.bool))
    with pytest.raises(MaskError, match="must be 1 or the same"):
        weigh(logits(1, 1, 5), torch.ones(3, 5, dtype=torch.bool))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8], ids=str)
def test_a_mask_of_numbers_is_refused(dtype):
    with pytest.raises(TypeError, match=r"(?i)bool"):
        softmax(logits(3, 5), torch.ones(3, 5, dtype=dtype))


# softmax


def test_softmax_equals_scipy_where_keys_are_visible():
    scores, allowed = logits(2, 3, 5, 7), example_mask()
    expected = scipy_softmax(np.where(allowed, scores, -1e300), axis=-1) * allowed.any(-1, keepdim=True).numpy()
    assert_close(softmax(scores, allowed).numpy(), expected * allowed.numpy())


def test_all_equal_scores_give_the_exact_mean():
    assert torch.equal(softmax(torch.full((1, 8), 3.3)), torch.full((1, 8), 0.125))


def test_sinks_equal_gpt_oss():
    gpt_oss = pytest.importorskip("transformers.models.gpt_oss.modeling_gpt_oss")
    q, k, v = logits(2, 3, 5, 11), logits(2, 3, 7, 11, seed=1), logits(2, 3, 7, 13, seed=2)
    sinks = torch.tensor([-1.0, 0.5, 3.0], dtype=F64)
    module = SimpleNamespace(num_key_value_groups=1, sinks=sinks, training=False)
    mix, expected = gpt_oss.eager_attention_forward(module, q, k, v, None, scaling=0.3, dropout=0.0)
    weights = softmax(q @ k.mT * 0.3, sink=sinks[:, None, None])
    assert_close(weights, expected)
    assert_close((weights @ v).transpose(1, 2), mix)


def test_a_sink_of_minus_infinity_is_no_sink_and_one_of_zero_is_off_by_one():
    scores, allowed = logits(2, 3, 5, 7), example_mask()
    assert_close(softmax(scores, allowed, sink=-math.inf), softmax(scores, allowed))
    powers = scores.exp() * allowed
    assert_close(softmax(scores, allowed, sink=0.0), powers / (1 + powers.sum(-1, keepdim=True)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_a_learned_sink_gets_its_gradient_but_none_from_blind_rows(dtype):
    sink = torch.zeros(3, 1, 1, requires_grad=True)
    weights = softmax(logits(2, 3, 5, 7, dtype=dtype), torch.zeros(5, 7, dtype=torch.bool), sink=sink)
    weights.sum().backward()
    assert weights.dtype == dtype
    assert torch.equal(sink.grad, torch.zeros(3, 1, 1))


def test_a_learned_sink_has_right_first_and_second_gradients():
    allowed = torch.tensor([[True, False, True], [False, False, False]])
    inputs = logits(2, 2, 3).requires_grad_(), logits(2, 1, 1, seed=1).requires_grad_()
    assert gradcheck(lambda s, sink: softmax(s, allowed, sink=sink), inputs, check_forward_ad=True)
    assert gradgradcheck(lambda s, sink: softmax(s, allowed, sink=sink), inputs)


# sparsemax and entmax

SPARSE = {
    "sparsemax": (sparsemax, theirs.sparsemax, 2.0),
    "entmax 1.5": (entmax, theirs.entmax15, 1.5),
    "entmax 1.3": (partial(entmax, alpha=1.3), partial(theirs.entmax_bisect, alpha=1.3, n_iter=100), 1.3),
    "entmax 1.9": (partial(entmax, alpha=1.9), partial(theirs.entmax_bisect, alpha=1.9, n_iter=100), 1.9),
    "entmax 1.01": (partial(entmax, alpha=1.01), partial(theirs.entmax_bisect, alpha=1.01, n_iter=100), 1.01),
}


@pytest.mark.parametrize(("ours", "package", "alpha"), SPARSE.values(), ids=SPARSE)
@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
def test_sparse_weights_and_their_gradients_equal_the_entmax_package(ours, package, alpha, spread):
    scores = logits(2, 5, 70, spread=spread).requires_grad_()
    assert_close(ours(scores), package(scores, dim=-1), rtol=1e-6, atol=1e-9)
    pull = logits(2, 5, 70, seed=1)
    slopes = [grad((weigh * pull).sum(), scores)[0] for weigh in (ours(scores), package(scores, dim=-1))]
    assert_close(*slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("ours", "package", "alpha"), SPARSE.values(), ids=SPARSE)
def test_masked_sparse_weights_equal_bisection_in_plain_loops(ours, package, alpha):
    scores, allowed = logits(2, 3, 5, 7), example_mask()
    assert_close(ours(scores, allowed).numpy(), bisect_entmax(scores.numpy(), allowed.numpy(), alpha))


@pytest.mark.parametrize("ours", [sparsemax, entmax, partial(entmax, alpha=1.3)])
def test_many_keys_in_float32_are_as_exact_as_float32_is(ours):
    for spread in (0.0, 1e-3, 1.0):
        scores = logits(3, 4096, spread=spread)
        scores[1, 0] += 1.5
        assert_close(ours(scores.float()).double(), ours(scores), rtol=1e-3, atol=1e-6)
        assert_close(ours(scores.float()).sum(-1), torch.ones(3), rtol=0, atol=2e-5)


def test_ties_are_shared_evenly():
    scores = torch.tensor([[1.0, 1.0, 1.0, 0.0, -9.0]], dtype=F64)
    for weigh in (sparsemax, entmax, partial(entmax, alpha=1.7)):
        weights = weigh(scores)
        assert torch.equal(weights[0, :3], weights[0, [0, 0, 0]])
        assert_close(
            weights.numpy(),
            bisect_entmax(scores.numpy(), alpha={sparsemax: 2.0, entmax: 1.5}.get(weigh, 1.7)),
        )


def test_entmax_ends_in_softmax_and_sparsemax():
    scores, allowed = logits(2, 3, 5, 7), example_mask()
    assert torch.equal(entmax(scores, allowed, alpha=1.0), softmax(scores, allowed))
    assert torch.equal(entmax(scores, allowed, alpha=2.0), sparsemax(scores, allowed))
    assert_close(entmax(scores, allowed, alpha=1.0001), softmax(scores, allowed), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("alpha", [0.5, 2.5, math.nan])
def test_an_alpha_beyond_softmax_and_sparsemax_is_refused(alpha):
    with pytest.raises(ValueError, match=rf"alpha {alpha} is not between 1 \(softmax\) and 2 \(sparsemax\)"):
        entmax(logits(2, 3), alpha=alpha)


# sigmoid


def test_sigmoid_equals_scipy_with_a_number_or_a_tensor_as_bias():
    scores, allowed, bias = logits(2, 3, 5, 7), example_mask(), logits(3, 1, 1, seed=1)
    assert_close(sigmoid(scores, allowed, bias=-2.0).numpy(), expit(scores.numpy() - 2) * allowed.numpy())
    assert_close(sigmoid(scores, allowed, bias=bias).numpy(), expit((scores + bias).numpy()) * allowed.numpy())


# top-k


@given(masked_scores(), st.integers(1, 8))
def test_top_k_equals_softmax_over_python_s_own_sorting(given, k):
    scores, allowed = given
    scores = scores.round()  # many ties
    weights, allowed = top_k(k)(scores, allowed), allowed.expand_as(scores)
    for row in np.ndindex(*scores.shape[:-1]):
        seen = [j for j in range(scores.shape[-1]) if allowed[row][j]]
        best = sorted(seen, key=lambda j: (-scores[row][j].item(), j))[:k]
        expected = torch.zeros(scores.shape[-1], dtype=F64)
        expected[best] = torch.from_numpy(scipy_softmax(scores[row][best].numpy())) if best else expected[best]
        assert_close(weights[row], expected)


def test_equal_scores_go_to_the_first_keys_however_many_there_are():
    weights = top_k(3)(torch.zeros(1, 5000))
    assert weights.nonzero()[:, 1].tolist() == [0, 1, 2]


def test_top_k_shows_itself_and_compares_by_value():
    assert repr(top_k(3)) == "top_k(3)"
    assert top_k(3) == top_k(3) != top_k(4)


@pytest.mark.parametrize("k", [0, -1])
def test_keeping_no_key_is_refused(k):
    with pytest.raises(ValueError, match=rf"top_k\({k}\) keeps no key; keep at least 1"):
        top_k(k)

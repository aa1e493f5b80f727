"""Scores against loops, SciPy and torch's own; their edges; their words when they refuse."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention.score import Additive, Bilinear, Cosine, Dot, Gaussian, ScaledDot, Score
from regard.errors import ShapeError
from tests.oracles import dot, loop_additive, loop_bilinear, loop_cosine, loop_gaussian, loop_scores


def qk(*lead, q=3, k=4, d=5, e=5, seed=0):
    """Every size is different, so a swapped axis cannot pass."""
    draw = partial(torch.randn, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return draw(*lead, q, d), draw(*lead, k, e)


def scores_of(score, q, k):
    return score.compare(*score.prepare(q, k)) * score.scale(q.shape[-1])


def additive(d=5, e=6):
    torch.manual_seed(1)
    return Additive(query=d, key=e, hidden=7).double()


def bilinear(d=5, e=6):
    torch.manual_seed(2)
    return Bilinear(query=d, key=e).double()


def loop_of(score):
    """The formula of one pair, with the same weights."""
    match score:
        case Additive():
            w1, w2 = (
                score.query_to_hidden.weight.detach().numpy(),
                score.key_to_hidden.weight.detach().numpy(),
            )
            return partial(loop_additive, w1=w1, w2=w2, v=score.v.detach().numpy())
        case Bilinear():
            return partial(loop_bilinear, w=score.weight.detach().numpy())
        case Cosine():
            return loop_cosine
        case Gaussian():
            return partial(loop_gaussian, width=torch.as_tensor(score.width).item())
        case ScaledDot():
            return lambda q, k: dot(q, k) / len(q) ** 0.5
        case Dot():
            return dot


MAKERS = {
    "dot": lambda e: (Dot(), 5),
    "scaled dot": lambda e: (ScaledDot(), 5),
    "cosine": lambda e: (Cosine(), 5),
    "gaussian": lambda e: (Gaussian(width=1.7), 5),
    "learned gaussian": lambda e: (Gaussian(width=0.6, learned=True).double(), 5),
    "additive": lambda e: (additive(e=e), e),
    "bilinear": lambda e: (bilinear(e=e), e),
}
every_score = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@every_score
@pytest.mark.parametrize("lead", [(), (2,), (2, 3)], ids=str)
def test_scores_equal_the_formula_in_loops(make, lead):
    score, e = make(6)
    q, k = qk(*lead, e=e)
    assert_close(scores_of(score, q, k).detach().numpy(), loop_scores(q.numpy(), k.numpy(), loop_of(score)))


@every_score
def test_every_score_keeps_the_protocol_and_says_truly_whether_it_is_a_dot_product(make):
    score, e = make(6)
    assert isinstance(score, Score)
    q, k = score.prepare(*qk(2, e=e))
    if score.is_dot:
        assert_close(score.compare(q, k), q @ k.mT)


@every_score
def test_any_block_of_rows_and_columns_can_be_asked(make):
    score, e = make(6)
    q, k = score.prepare(*qk(2, q=6, k=8, e=e))
    whole = score.compare(q, k)
    assert_close(score.compare(q[:, 2:5], k[:, [7, 0]]), whole[:, 2:5][..., [7, 0]])


@every_score
def test_leading_axes_broadcast(make):
    score, e = make(6)
    (q, _), (_, k) = qk(2, 1, e=e), qk(3, e=e)
    expected = scores_of(score, q.expand(2, 3, *q.shape[-2:]), k.expand(2, 3, *k.shape[-2:]))
    assert scores_of(score, q, k).shape == (2, 3, 3, 4)
    assert_close(scores_of(score, q, k), expected)


@every_score
def test_first_and_second_gradients_are_right(make):
    score, e = make(6)
    q, k = (x.requires_grad_() for x in qk(2, q=2, k=3, e=e))
    assert gradcheck(partial(scores_of, score), (q, k), check_forward_ad=True)
    assert gradgradcheck(partial(scores_of, score), (q, k))


@pytest.mark.parametrize("name", ["learned gaussian", "additive", "bilinear"])
def test_parameters_receive_right_gradients(name):
    score, e = MAKERS[name](6)
    q, k = qk(2, e=e)
    names = [name for name, _ in score.named_parameters()]
    call = lambda *values: torch.func.functional_call(score, dict(zip(names, values)), (q, k))  # noqa: E731
    assert gradcheck(call, tuple(score.parameters()))
    assert gradgradcheck(call, tuple(score.parameters()))


@every_score
def test_vmap_over_the_batch_equals_the_batch(make):
    score, e = make(6)
    q, k = qk(2, e=e)
    assert_close(torch.vmap(partial(scores_of, score))(q, k), scores_of(score, q, k))


@every_score
@pytest.mark.parametrize(("q", "k"), [(0, 4), (3, 0), (0, 0)])
def test_no_queries_and_no_keys_give_no_scores(make, q, k):
    score, e = make(6)
    assert scores_of(score, *qk(2, q=q, k=k, e=e)).shape == (2, q, k)


@every_score
def test_inputs_are_left_as_they_were(make):
    score, e = make(6)
    q, k = qk(2, e=e)
    kept = q.clone(), k.clone()
    scores_of(score, q, k)
    assert torch.equal(q, kept[0])
    assert torch.equal(k, kept[1])


@every_score
def test_a_score_survives_copying_and_pickling(make):
    score, e = make(6)
    q, k = qk(2, e=e)
    for twin in (copy.deepcopy(score), pickle.loads(pickle.dumps(score))):
        assert_close(scores_of(twin, q, k), scores_of(score, q, k))


@pytest.mark.parametrize("score", [Dot(), ScaledDot(), Cosine(), Gaussian()], ids=repr)
def test_without_channels_every_score_is_zero(score):
    assert_close(scores_of(score, *qk(2, d=0, e=0)), torch.zeros(2, 3, 4, dtype=torch.float64))
    assert score.scale(0) == 1.0


def test_dot_is_not_scaled_and_scaled_dot_is_divided_by_the_root_of_the_width():
    q, k = qk(2, d=16, e=16)
    assert Dot().scale(16) == 1.0
    assert_close(scores_of(ScaledDot(), q, k), torch.einsum("bqd,bkd->bqk", q, k) / 4)
    assert Dot() == Dot() != ScaledDot()


def test_cosine_equals_torch_and_ignores_length():
    q, k = qk(2)
    theirs = F.cosine_similarity(q[:, :, None], k[:, None, :], dim=-1)
    assert_close(scores_of(Cosine(), q, k), theirs)
    assert_close(scores_of(Cosine(), 1e5 * q, 1e-3 * k), theirs)


def test_a_zero_vector_has_cosine_zero_and_finite_gradients_of_two_orders():
    q, k = qk(2)
    q[0, 1] = 0
    q.requires_grad_()
    scores = scores_of(Cosine(), q, k)
    assert not scores[0, 1].any()
    (first,) = torch.autograd.grad(scores.square().sum() + scores.sum(), q, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), q)
    assert first.isfinite().all()
    assert second.isfinite().all()


def test_cosine_of_long_half_precision_vectors_does_not_overflow():
    q = torch.full((2, 64), 500.0, dtype=torch.float16)
    assert_close(Cosine().prepare(q, q)[0], torch.full_like(q, 0.125))
    assert_close(scores_of(Cosine(), q, q), torch.ones(2, 2, dtype=torch.float16))


def test_gaussian_equals_scipy_distances():
    q, k = qk()
    theirs = -cdist(q.numpy(), k.numpy(), "sqeuclidean") / (2 * 1.7**2)
    assert_close(scores_of(Gaussian(1.7), q, k).numpy(), theirs)


def test_gaussian_keeps_small_distances_far_from_the_origin():
    q, k = torch.tensor([[4096.0, 0.0]]), torch.tensor([[4096.5, 0.0], [4096.0, 0.25]])
    assert_close(scores_of(Gaussian(), q, k), torch.tensor([[-0.125, -0.03125]]), rtol=0, atol=0)


def test_gaussian_with_a_tiny_width_stays_a_number():
    q = torch.zeros(1, 2)
    assert_close(scores_of(Gaussian(1e-30), q, q), torch.zeros(1, 1))


def test_gaussian_width_may_be_a_number_a_tensor_or_a_parameter():
    q, k = qk()
    theirs = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64))
    expected = scores_of(Gaussian(0.5), q, k)
    assert_close(scores_of(Gaussian(theirs), q, k), expected)
    assert_close(scores_of(Gaussian(theirs.detach()), q, k), expected)
    assert [p is theirs for p in Gaussian(theirs).parameters()] == [True]
    assert list(Gaussian(theirs.detach()).state_dict()) == ["width"]
    assert list(Gaussian(0.5, learned=True).state_dict()) == ["width"]
    assert not list(Gaussian(0.5).parameters())


def test_bilinear_equals_torch():
    score = bilinear()
    q, k = qk(e=6)
    pairs = q[:, None].expand(3, 4, 5), k[None].expand(3, 4, 6)
    assert_close(scores_of(score, q, k), F.bilinear(*pairs, score.weight[None]).squeeze(-1))


def test_additive_attention_over_equal_keys_takes_the_mean_of_the_valid_values():
    score, values = Additive(query=20, key=2, hidden=8), torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    scores = scores_of(score, torch.randn(2, 1, 20), torch.ones(2, 10, 2))
    beyond = torch.arange(10) >= torch.tensor([2, 6])[:, None, None]
    mix = torch.softmax(scores.masked_fill(beyond, -torch.inf), -1) @ values
    assert_close(mix, torch.tensor([[[2.0, 3, 4, 5]], [[10.0, 11, 12, 13]]]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Additive(query=0, key=2, hidden=8),
            "query=0 is no size; give the number of channels, at least 1",
        ),
        (lambda: Additive(query=3, key=2, hidden=-1), "hidden=-1 is no size"),
        (lambda: Bilinear(query=3, key=0), "key=0 is no size"),
        (lambda: Gaussian(0.0), "width 0.0 is no width; choose one above 0"),
        (lambda: Gaussian(float("nan")), "width nan is no width"),
        (lambda: Gaussian(torch.tensor(-2.0)), "width -2.0 is no width"),
        (lambda: Gaussian(torch.ones(3)), r"width of shape \(3,\) is not one number"),
        (lambda: Cosine(eps=0.0), "eps 0.0 cannot stand in for a length; choose one above 0"),
    ],
)
def test_sizes_that_are_none_are_refused_with_advice(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("score", [additive(), bilinear()], ids=["additive", "bilinear"])
def test_queries_and_keys_of_another_size_are_refused_quoting_both(score):
    name = type(score).__name__
    with pytest.raises(ShapeError, match=rf"{name} was built for query=5 and key=6, but q \(2, 3, 7\) ends in 7"):
        score.prepare(*qk(2, d=7, e=6))
    with pytest.raises(ShapeError, match=r"k \(2, 4, 8\) ends in 8; .* build one with query=5 and key=8"):
        score.prepare(*qk(2, d=5, e=8))


def test_float64_numpy_and_torch_agree_on_what_a_gaussian_width_is():
    assert float(Gaussian(np.float64(0.1)).width) == 0.1

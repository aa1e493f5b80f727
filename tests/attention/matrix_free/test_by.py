"""What `by=` is, and what only exact attention has."""

import pytest
import torch

import regard
from regard.attention.matrix_free import Linformer, Mechanism, Performer
from regard.attention.score import ScaledDot
from regard.attention.weigh import sparsemax
from regard.errors import PathError

D, N = 5, 7
X = torch.randn(1, 2, N, D, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("by", [Performer(D, 8), Linformer(N, 4)], ids=lambda by: by.name)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("score", regard.Gaussian()),
        ("weigh", sparsemax),
        ("bias", torch.zeros(1, 2, N, N)),
        ("softcap", 5.0),
        ("sink_logits", torch.zeros(2)),
        ("dropout", 0.1),
        ("path", "explicit"),
    ],
)
def test_what_needs_scores_or_weights_is_refused_by_name(by, name, value):
    assert isinstance(by, Mechanism)
    with pytest.raises(PathError, match=rf"{name}= came with by={type(by).__name__}.* leave out {name}= or by="):
        regard.attend(X, X, X, by=by, **{name: value})


@pytest.mark.parametrize("by", [Performer(D, 8), Linformer(N, 4)], ids=lambda by: by.name)
def test_a_scaled_product_and_softmax_may_be_said(by):
    plain = regard.attend(X, X, X, by=by).mix
    said = regard.attend(X, X, X, by=by, score=ScaledDot(), weigh=regard.softmax, dropout=0.0).mix
    assert said.equal(plain)
    assert regard.attend(X, X, X, by=by, scale=D**-0.5).mix.equal(plain)


def test_a_learned_scale_gets_a_gradient():
    for by in (Performer(D, 8), Linformer(N, 4)):
        scale = torch.full((2, 1, 1), 0.3, requires_grad=True)
        regard.attend(X, X, X, by=by, scale=scale).mix.square().sum().backward()
        assert scale.grad.abs().min() > 0


@pytest.mark.parametrize("by", [Performer(D, 8), Linformer(N, 4)], ids=lambda by: by.name)
def test_statistics_of_an_implied_map_need_no_matrix(by):
    a = regard.attend(X, X, X, by=by, mask=regard.padding([5]))
    weights = a.weights.dense().detach()
    torch.testing.assert_close(a.weights.sink(2), weights[..., :2].sum(-1))
    torch.testing.assert_close(a.weights.received()[..., :5], weights[..., :5].mean(-2))
    assert a.weights.top(3)[1].max() < 5
    assert not a.weights.allowed[0, 0, 0, 5:].any()
    with pytest.raises(regard.errors.MapError, match="implied, so its scores are not known"):
        a.weights.scores[0, 0, 0]


@pytest.mark.compiled
@pytest.mark.parametrize("by", [Performer(D, 8), Linformer(N, 4)], ids=lambda by: by.name)
def test_a_compiler_traces_both(by, count):
    def mix(x):
        return regard.attend(x, x, x, by=by, mask=regard.padding([5])).mix

    torch.testing.assert_close(torch.compile(mix, backend=count)(X), mix(X))

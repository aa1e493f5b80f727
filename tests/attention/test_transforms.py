"""attend under autograd of every order, torch.func, meta and fake tensors."""

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.testing import assert_close

import regard
from regard.attention.score import Dot
from regard.errors import PathError
from tests.attention.cases import qkv

SCORES = {
    "default": None,
    "dot": Dot(),
    "cosine": regard.Cosine(),
    "gaussian": regard.Gaussian(1.2),
    "bilinear": regard.Bilinear(query=4, key=4).double(),
    "additive": regard.Additive(query=4, key=4, hidden=3).double(),
}
MASKS = {
    "open": None,
    "causal": regard.causal(),
    "padding": regard.padding([2, 0]),
    "window": regard.window(1),
    "documents": regard.documents([0, 0, 1, 1, 1]),
    "prefix": regard.prefix(2),
    "tensor": torch.rand(2, 2, 3, 5, generator=torch.Generator().manual_seed(0)) > 0.5,
}


def small():
    return qkv(b=2, h=2, q=3, k=5, d=4, e=2, grad=True)


@pytest.mark.parametrize("path", [None, "explicit"])
@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_every_score_passes_gradcheck(score, path):
    assert gradcheck(lambda *x: regard.attend(*x, score=score, path=path).mix, small())


@pytest.mark.parametrize("path", [None, "explicit"])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_every_mask_passes_gradcheck(mask, path):
    assert gradcheck(lambda *x: regard.attend(*x, mask=mask, path=path).mix, small())


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
def test_the_explicit_path_has_second_derivatives(score):
    q, k, v = qkv(b=1, h=1, q=2, k=3, d=4, e=2, grad=True)
    mask = regard.causal()
    assert gradgradcheck(lambda *x: regard.attend(*x, score=score, mask=mask, path="explicit").mix, (q, k, v))
    assert gradgradcheck(lambda q, k: regard.attend(q, k, v, score=score, mask=mask).weights.dense(), (q, k))


def test_the_fused_path_names_the_way_to_second_derivatives():
    q, k, v = small()
    mix = regard.attend(q, k, v, path="fused").mix
    (first,) = torch.autograd.grad(mix.sum(), q, create_graph=True)
    with pytest.raises(PathError, match=r"no second derivative; attend.*path='explicit'"):
        torch.autograd.grad(first.sum(), q)


def test_forward_derivatives_take_the_explicit_path_by_themselves():
    q, k, v = (x.detach() for x in small())
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(q, torch.ones_like(q))
        a = regard.attend(dual, k, v, mask=regard.causal())
        assert a.path == "explicit"
        tangent = forward_ad.unpack_dual(a.mix).tangent
    step = 1e-6
    moved = [regard.attend(q + s * step, k, v, mask=regard.causal()).mix for s in (1, -1)]
    assert_close(tangent, (moved[0] - moved[1]) / (2 * step), atol=1e-7, rtol=1e-6)


def test_jacobians_and_hessians():
    q, k, v = (x.detach()[0, 0] for x in small())
    f = lambda q: regard.attend(q, k, v, mask=regard.causal()).mix  # noqa: E731
    exact = torch.autograd.functional.jacobian(f, q)
    assert_close(torch.func.jacrev(f)(q), exact)
    assert_close(torch.func.jacfwd(f)(q), exact)
    g = lambda q: regard.attend(q, k, v, mask=regard.causal(), path="explicit").mix.square().sum()  # noqa: E731
    assert_close(torch.func.hessian(g)(q), torch.autograd.functional.hessian(g, q))


def test_vmap_over_batch_mask_and_bias():
    q, k, v = (x.detach() for x in qkv(b=4))
    mask = torch.rand(4, 6, 5, 7) > 0.4
    bias = torch.randn(4, 6, 5, 7, dtype=torch.float64)
    expected = regard.attend(q, k, v, mask=mask, bias=bias).mix
    f = lambda q, k, v, m, b: regard.attend(q, k, v, mask=m, bias=b).mix  # noqa: E731
    assert_close(torch.vmap(f)(q, k, v, mask, bias), expected)
    assert_close(
        torch.vmap(f, in_dims=(0, 0, 0, 0, None))(q, k, v, mask, bias[0]),
        regard.attend(q, k, v, mask=mask, bias=bias[:1]).mix,
    )
    causal = torch.vmap(lambda q, k, v: regard.attend(q, k, v, mask=regard.causal()).mix)(q, k, v)
    assert_close(causal, regard.attend(q, k, v, mask=regard.causal()).mix)
    grads = torch.vmap(torch.func.grad(lambda q, k, v: regard.attend(q, k, v).mix.square().sum()))(q, k, v)
    x = q.clone().requires_grad_()
    assert_close(grads, torch.autograd.grad(regard.attend(x, k, v).mix.square().sum(), x)[0])


def test_vmap_over_the_parameters_of_a_score():
    q, k, v = (x.detach() for x in small())
    scores = [regard.Additive(query=4, key=4, hidden=3).double() for _ in range(3)]
    params, _ = torch.func.stack_module_state(scores)

    class Layer(torch.nn.Module):
        def __init__(self, score):
            super().__init__()
            self.score = score

        def forward(self, q, k, v):
            return regard.attend(q, k, v, score=self.score).mix

    base = Layer(scores[0])
    run = lambda p: torch.func.functional_call(base, {f"score.{n}": x for n, x in p.items()}, (q, k, v))  # noqa: E731
    got = torch.vmap(run)(params)
    assert_close(got, torch.stack([regard.attend(q, k, v, score=s).mix for s in scores]))


def test_partial_gradients_and_no_gradients():
    q, k, v = (x.detach() for x in small())
    for wants in range(3):
        xs = [x.clone().requires_grad_(i == wants) for i, x in enumerate((q, k, v))]
        grads = [
            torch.autograd.grad(regard.attend(*xs, path=path).mix.square().sum(), xs[wants])[0]
            for path in ("fused", "explicit")
        ]
        assert_close(*grads)
    expected = regard.attend(q, k, v, mask=regard.causal()).mix
    with torch.no_grad():
        assert_close(regard.attend(q, k, v, mask=regard.causal(), path="explicit").mix, expected)
    with torch.inference_mode():
        a = regard.attend(q, k, v, mask=regard.causal())
        assert_close(a.mix, expected)
        made_here = q.clone()
        assert_close(regard.attend(made_here, k, v).weights[0, 0, 0], regard.attend(q, k, v).weights[0, 0, 0])


def test_inputs_are_never_written_to():
    q, k, v = (x.detach() for x in small())
    before = [(x.clone(), x._version) for x in (q, k, v)]
    for options in (
        {},
        {"mask": regard.padding([2, 0])},
        {"weigh": regard.sparsemax},
        {"score": regard.Cosine()},
        {"softcap": 2.0},
        {"dropout": 0.5},
    ):
        for path in (None, "explicit"):
            a = regard.attend(q, k, v, path=path, **options)
            a.weights.dense(), a.weights.distance(), a.weights.pool(2, 2), a.weights.top(2), a.weights.received()
    for x, (old, version) in zip((q, k, v), before):
        assert torch.equal(x, old)
        assert x._version == version


@pytest.mark.parametrize("make", [lambda: None, regard.causal, lambda: regard.padding([2, 4])])
def test_meta_and_fake_tensors_have_the_right_shapes(make):
    for path in (None, "explicit"):
        q, k, v = (torch.empty(*shape, device="meta") for shape in ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)))
        a = regard.attend(q, k, v, mask=make(), path=path)
        assert a.mix.shape == (2, 4, 5, 6)
        assert a.weights.dense().shape == (2, 4, 5, 7)
        with FakeTensorMode():
            q, k, v = (torch.empty(*shape) for shape in ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6)))
            a = regard.attend(q, k, v, mask=make(), path=path)
            assert a.mix.shape == (2, 4, 5, 6)

"""What the mechanism must survive: blind rows, NaN in hidden places, huge scores, half precision."""

import math
import os
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

import regard
from tests.attention.cases import qkv

PATHS = ["fused", "explicit"]
WEIGHERS = [regard.softmax, regard.sparsemax, regard.entmax, regard.sigmoid, regard.top_k(2)]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_that_sees_nothing_is_zero_with_zero_gradients(path, dtype):
    mask = torch.ones(2, 6, 5, 7, dtype=torch.bool)
    mask[0, 1, 2] = mask[1, :, 4] = False
    q, k, v = qkv(dtype=dtype, grad=True)
    a = regard.attend(q, k, v, mask=mask, path=path)
    blind = ~mask.any(-1)
    assert a.mix[blind].eq(0).all()
    assert a.weights.dense()[blind].eq(0).all()
    assert a.weights.log_normaliser()[blind].eq(-torch.inf).all()
    grads = torch.autograd.grad(a.mix.square().sum(), (q, k, v))
    assert all(g.isfinite().all() for g in grads)
    assert grads[0][blind].eq(0).all()
    nothing = regard.attend(q, k, v, mask=torch.zeros_like(mask), path=path)
    assert nothing.mix.eq(0).all()
    assert all(g.eq(0).all() for g in torch.autograd.grad(nothing.mix.sum(), (q, k, v)))


@pytest.mark.parametrize("weigh", WEIGHERS, ids=lambda w: getattr(w, "__name__", repr(w)))
def test_blind_rows_are_zero_under_every_normaliser(weigh):
    q, k, v = qkv(grad=True)
    a = regard.attend(q, k, v, weigh=weigh, mask=regard.padding([0, 3]))
    assert a.mix[0].eq(0).all()
    assert a.weights.dense()[0].eq(0).all()
    assert a.weights.dense()[1, ..., 3:].eq(0).all()
    grads = torch.autograd.grad(a.mix.square().sum(), (q, k, v))
    assert all(g.isfinite().all() for g in grads)
    assert all(g[0].eq(0).all() for g in grads)


@pytest.mark.parametrize("poison", ["nan", "inf", "-inf"])  # as text: a NaN is not equal to itself
@pytest.mark.parametrize("path", [None, "fused", "explicit"])
@pytest.mark.parametrize("n", [7, 300])
@pytest.mark.parametrize("with_causal", [False, True])
def test_nan_in_keys_and_values_hidden_from_all_reaches_nothing(poison, path, n, with_causal):
    for kind in ("lengths", "tensor"):
        q, k, v = qkv(q=n, k=n, d=4, e=4, h=2, grad=True)
        lengths = [n // 2, n - 1]
        mask = regard.padding(lengths)
        if kind == "tensor":
            mask = regard.allowed(mask.dense(1, n, batch=2, heads=1)[:, :, 0], axes="b h k")
        mask = regard.causal() & mask if with_causal else mask
        clean = regard.attend(q, k, v, mask=mask, path="explicit")
        expected = torch.autograd.grad(clean.mix.square().sum(), (q, k, v))
        with torch.no_grad():
            bad_k, bad_v = k.clone(), v.clone()
            for b, length in enumerate(lengths):
                bad_k[b, :, length:] = float(poison)
                bad_v[b, :, length:] = float(poison)
        bad_k.requires_grad_(), bad_v.requires_grad_()
        a = regard.attend(q, bad_k, bad_v, mask=mask, path=path)
        assert_close(a.mix, clean.mix)
        assert_close(a.weights.dense(), clean.weights.dense())
        assert_close(torch.autograd.grad(a.mix.square().sum(), (q, bad_k, bad_v)), expected)
        assert_close(
            torch.autograd.grad(a.weights.dense().square().sum(), q),
            torch.autograd.grad(clean.weights.dense().square().sum(), q),
        )
        assert a.weights.entropy().isfinite().all()


@pytest.mark.parametrize("path", [None, "fused", "explicit"])
@pytest.mark.parametrize("where", ["k", "v", "both"])
@pytest.mark.parametrize("n", [9, 300])
def test_nan_hidden_from_some_queries_reaches_only_the_others(path, where, n):
    q, k, v = qkv(q=n, k=n, d=4, e=4, h=2)
    clean = regard.attend(q, k, v, mask=regard.causal()).mix
    at = n - 3
    if where != "v":
        k[0, 1, at] = math.nan
    if where != "k":
        v[0, 1, at] = math.nan
    mix = regard.attend(q, k, v, mask=regard.causal(), path=path).mix
    assert_close(mix[0, 1, :at], clean[0, 1, :at])
    assert mix[0, 1, at:].isnan().all()
    assert_close(mix[0, 0], clean[0, 0])
    assert_close(mix[1], clean[1])


def test_infinite_values_keep_their_sign_where_they_are_seen():
    x = torch.randn(4, 3, dtype=torch.float64)
    v = torch.zeros(4, 2, dtype=torch.float64)
    v[2, 0], v[3, 1] = math.inf, -math.inf
    mix = regard.attend(x, x, v, mask=regard.causal()).mix
    assert mix[:2].eq(0).all()
    assert mix[2].tolist() == [math.inf, 0.0]
    assert mix[3].tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("path", PATHS)
def test_nan_in_what_is_attended_does_propagate(path):
    q, k, v = qkv()
    for x in (q, k, v):
        kept = x[0, 0, 0, 0].clone()
        x[0, 0, 0, 0] = math.nan
        mix = regard.attend(q, k, v, path=path).mix
        assert mix[0, 0].isnan().any()
        assert mix[1].isfinite().all()
        x[0, 0, 0, 0] = kept


@pytest.mark.parametrize("path", PATHS)
def test_huge_scores_stay_finite(path):
    q, k, v = qkv(grad=True)
    a = regard.attend(q * 1e4, k, v, path=path)
    assert a.mix.isfinite().all()
    best = (q @ k.mT).argmax(-1)
    chosen = v.gather(-2, best[..., None].expand(*best.shape, 13))
    assert_close(a.mix, chosen, atol=1e-6, rtol=1e-6)
    assert all(g.isfinite().all() for g in torch.autograd.grad(a.mix.sum(), (q, k, v)))


@pytest.mark.parametrize("path", PATHS)
def test_float16_products_beyond_its_range_stay_finite(path):
    q, k, v = (x.half() for x in qkv(d=64, e=64))
    q, k = q * 300, k * 300  # q·k is about 1e6, float16 ends at 65504
    a = regard.attend(q, k, v, path=path, scale=1e-4)
    exact = regard.attend(q.double(), k.double(), v.double(), scale=1e-4)
    assert a.mix.dtype == torch.float16
    assert a.weights.dtype == torch.float32
    assert_close(a.mix.double(), exact.mix, atol=2e-3, rtol=2e-3)
    assert (a.weights.dense() - exact.weights.dense()).abs().max() < 1e-4


BOUNDS = {torch.float16: 2e-3, torch.float32: 2e-6, torch.float64: 1e-14}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", BOUNDS)
def test_the_error_against_float64_stays_below_its_stated_bound(dtype, path):
    q, k, v = (x.to(dtype) for x in qkv(q=33, k=129, d=64, e=64))
    for mask in (None, regard.causal(), regard.padding([50, 129])):
        exact = regard.attend(q.double(), k.double(), v.double(), mask=mask, path="explicit").mix
        a = regard.attend(q, k, v, mask=mask, path=path)
        assert a.mix.dtype == dtype
        assert (a.mix.double() - exact).abs().max() < BOUNDS[dtype]


CHILD = """
import torch, regard
torch.manual_seed(0)
q, k, v = (torch.randn(2, 4, n, 32, dtype=torch.bfloat16) for n in (33, 65, 65))
exact = regard.attend(q.double(), k.double(), v.double(), mask=regard.causal())
for path in ("fused", "explicit"):
    a = regard.attend(q, k, v, mask=regard.causal(), path=path)
    assert a.mix.dtype == torch.bfloat16
    error = (a.mix.double() - exact.mix).abs().max().item()
    assert error < 2e-2, (path, error)
    assert (a.weights.dense() - exact.weights.dense()).abs().max() < 1e-6
x = [t.float() for t in (q, k, v)]
bias = torch.randn(1, 4, 33, 65)
with torch.autocast("cpu", dtype=torch.bfloat16):
    fused, explicit = (regard.attend(*x, mask=regard.causal(), bias=bias, path=p) for p in ("fused", "explicit"))
    torch.nn.functional.scaled_dot_product_attention(*x)
assert fused.mix.dtype == explicit.mix.dtype == torch.bfloat16
assert (fused.mix - explicit.mix).abs().max() < 4e-2
exact = regard.attend(*(t.double() for t in (q, k, v)), mask=regard.causal(), bias=bias.double())
assert (explicit.mix.double() - exact.mix).abs().max() < 2e-2
assert (explicit.weights.dense() - exact.weights.dense()).abs().max() < 1e-6
print("fine")
"""


def test_bfloat16_and_autocast_accumulate_in_float32():
    """In a process of its own, because some processors advertise bfloat16 units that do not work."""
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    done = subprocess.run([sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "fine", done.stderr


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scale", [0.0, None, 0.5, -0.5])
def test_scales_and_equal_scores(path, scale):
    q, k, v = qkv()
    a = regard.attend(q, k, v, scale=scale, path=path)
    by = 11**-0.5 if scale is None else scale
    assert_close(a.mix, (q @ k.mT * by).softmax(-1) @ v)
    equal = regard.attend(torch.ones_like(q), torch.ones_like(k), v, scale=scale, path=path)
    assert_close(equal.mix, v.mean(-2, keepdim=True).expand_as(equal.mix))
    assert_close(equal.weights.dense(), torch.full((2, 6, 5, 7), 1 / 7, dtype=torch.float64))


@pytest.mark.parametrize("path", PATHS)
def test_weights_add_to_one_and_mix_to_the_output(path):
    q, k, v = qkv(q=20, k=500, dtype=torch.float32)
    a = regard.attend(q, k, v, mask=regard.window(40, 3), path=path)
    weights = a.weights.dense()
    assert weights.min() >= 0
    assert (weights.double().sum(-1) - 1).abs().max() < 500 * torch.finfo(torch.float32).eps
    assert_close(weights @ v, a.mix, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("path", PATHS)
def test_laws_of_attention(path):
    q, k, v = qkv(b=3, q=8, k=8)
    a = regard.attend(q, k, v, path=path).mix
    order = torch.tensor([3, 0, 7, 1, 6, 2, 5, 4])
    assert_close(regard.attend(q, k[:, :, order], v[:, :, order], path=path).mix, a)  # the order of keys is free
    assert_close(regard.attend(q[1:2], k[1:2], v[1:2], path=path).mix, a[1:2])  # a batch is its sequences
    assert_close(regard.attend(q[:, :, 2:5], k, v, path=path).mix, a[:, :, 2:5])  # queries do not meet
    longer = [torch.nn.functional.pad(x, (0, 0, 0, 5), value=9.0) for x in (k, v)]
    padded = regard.attend(q, *longer, mask=regard.padding([8, 8, 8]), path=path)
    assert_close(padded.mix, a)  # padding adds nothing
    causal = regard.attend(q, k, v, mask=regard.causal(), path=path).mix
    for n in range(1, 9):  # the future changes no past
        some = regard.attend(q[:, :, :n], k[:, :, :n], v[:, :, :n], mask=regard.causal(), path=path).mix
        assert_close(some, causal[:, :, :n])
    chunks = [
        regard.attend(q[:, :, i : i + 3], k[:, :, : i + 3], v[:, :, : i + 3], mask=regard.causal(), path=path).mix
        for i in (0, 3)
    ]
    assert_close(torch.cat(chunks, -2), causal[:, :, :6])  # chunks are the whole


def test_determinism_and_default_dtype():
    q, k, v = qkv(dtype=torch.float32)
    torch.use_deterministic_algorithms(True)
    try:
        a = regard.attend(q, k, v, mask=regard.causal() & regard.padding([3, 7]))
        a.weights.pool(2, 2), a.weights.top(2), a.weights.received()
    finally:
        torch.use_deterministic_algorithms(False)
    torch.set_default_dtype(torch.float64)
    try:
        b = regard.attend(q, k, v, mask=regard.causal() & regard.padding([3, 7]))
        assert b.mix.dtype == torch.float32
        assert torch.equal(a.mix, b.mix)
        assert b.weights.entropy().dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)

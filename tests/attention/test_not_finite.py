"""NaN and inf where there are fewer keys than a vector register holds, under each set of vector instructions."""

import os
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

import regard

NAMES = {"default": "DEFAULT", "avx2": "AVX2", "avx512": "AVX512"}


@pytest.mark.parametrize("capability", [pytest.param("default", marks=pytest.mark.slow), "avx2", "avx512"])
def test_what_is_not_finite_reaches_the_rows_that_see_it_and_no_others(capability, repository):
    """torch's kernel takes a row whose largest score is not above −inf for a row that sees nothing, and gives 0."""
    environment = os.environ | {"ATEN_CPU_CAPABILITY": capability, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.attention.not_finite"],
        cwd=repository,
        env=environment,
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    if lines and lines[0] != NAMES[capability]:
        pytest.skip(f"this CPU has no {capability}; torch takes {lines[0]} instead")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("poison", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("rank", [1, 3, 20])
def test_a_query_that_is_not_finite_reaches_its_own_row_by_way_of_linformer(rank, poison):
    q, k, v = torch.randn(2, 3, 11, 5), torch.randn(2, 3, 9, 5), torch.randn(2, 3, 9, 4)
    by = regard.Linformer(9, rank)
    clean = regard.attend(q, k, v, by=by).mix
    q[1, 2, 6, 0] = float(poison)
    mix = regard.attend(q, k, v, by=by).mix
    assert mix[1, 2, 6].isnan().all()
    mix[1, 2, 6] = clean[1, 2, 6]
    assert_close(mix, clean)


@pytest.mark.parametrize("path", [None, "explicit"])
def test_scores_of_minus_infinity_are_nan_and_what_is_hidden_is_zero(path):
    """By themselves all scores of a row are −inf: 0 / 0. A mask or a bias hides the row: nothing is seen."""
    x = torch.rand(2, 3, 6, 5) + 0.5
    q, bias = x.clone(), torch.zeros(2, 3, 6, 6)
    q[0, 1, 4, 2], bias[1, 0, 3], q[1, 2, 5, 2] = -torch.inf, -torch.inf, -torch.inf
    mask = torch.ones(2, 3, 6, 6, dtype=torch.bool)
    mask[0, 2, 1] = mask[1, 2, 5] = False
    a = regard.attend(q, x, x, bias=bias, mask=mask, path=path)
    assert a.mix[0, 1, 4].isnan().all()
    assert a.weights[0, 1, 4].isnan().all()
    assert a.weights.entropy()[0, 1, 4].isnan()
    assert a.mix[1, 0, 3].eq(0).all()
    assert a.mix[0, 2, 1].eq(0).all()
    assert a.mix[1, 2, 5].eq(0).all()
    assert a.mix.isnan().any(-1).sum() == 1
    assert a.weights.dense().isnan().any(-1).sum() == 1
    reference = regard.reference.attend(*(t.double().numpy() for t in (q, x, x)), bias=bias.numpy(), mask=mask.numpy())
    assert_close(a.mix.double(), torch.from_numpy(reference.mix), atol=1e-6, rtol=1e-5, equal_nan=True)
    assert_close(a.weights.dense().double(), torch.from_numpy(reference.weights), atol=1e-6, rtol=1e-5, equal_nan=True)


def test_a_shared_query_is_not_finite_only_where_its_keys_make_it_so():
    q, k = torch.rand(1, 2, 3, 4) + 0.5, torch.rand(3, 2, 5, 4)
    k[1, :, :, 0] = -torch.inf
    a = regard.attend(q, k, torch.randn(3, 2, 5, 4))
    assert a.mix.isnan().flatten(1).all(-1).tolist() == [False, True, False]
    assert a.mix[0].isfinite().all()
    assert a.weights.dense().isnan().flatten(1).all(-1).tolist() == [False, True, False]


def test_the_same_is_true_under_gradients_and_grouped_heads():
    q, k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    q[0, 3, 2, 1] = torch.nan
    for x in (q, k, v):
        x.requires_grad_()
    for mask in (None, regard.causal()):
        mix = regard.attend(q, k, v, mask=mask).mix
        assert mix[0, 3, 2].isnan().all()
        assert mix.isnan().any(-1).sum() == 1
        grad = torch.autograd.grad(mix[1].sum(), v)[0]
        assert grad[1].isfinite().all()

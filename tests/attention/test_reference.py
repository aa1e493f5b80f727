"""The reference against plain loops, SciPy, torch and the numbers of the documents."""

import math
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from scipy.special import expit
from scipy.special import softmax as scipy_softmax
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from regard.attention import reference
from tests.oracles import (
    bisect_entmax,
    loop_additive,
    loop_attend,
    loop_bilinear,
    loop_cosine,
    loop_gaussian,
    loop_scores,
)

assert_close = partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-12)

X = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])
X_WEIGHTS = [
    [0.2976, 0.1095, 0.1805, 0.1805, 0.2318],
    [0.1205, 0.3275, 0.1986, 0.1986, 0.1547],
    [0.1805, 0.1805, 0.2976, 0.1095, 0.2318],
    [0.1986, 0.1986, 0.1205, 0.3275, 0.1547],
    [0.2374, 0.1440, 0.2374, 0.1440, 0.2374],
]


def qkv(*lead, q=5, k=7, d=11, e=13):
    """Every size is different, so a swapped axis cannot pass."""
    draw = np.random.default_rng(0).standard_normal
    return draw((*lead, q, d)), draw((*lead, k, d)), draw((*lead, k, e))


def blind_row():
    mask = np.random.default_rng(1).random((2, 1, 5, 7)) > 0.4
    mask[1, 0, 3] = False
    return mask


MASKS = {
    "open": None,
    "causal": reference.causal_mask(5, 7),
    "window": reference.window_mask(5, 7, before=2, after=1),
    "padding": reference.padding_mask(np.array([0, 6]), 7)[:, None],
    "blind row": blind_row(),
}


# the numbers of the documents


def test_the_worked_example_has_the_scores_and_weights_of_the_documents():
    a = reference.attend(X, X, X)
    assert_close(a.scores[0], [1, 0, 0.5, 0.5, 0.75])
    assert_close(a.scores[4], [0.75, 0.25, 0.75, 0.25, 0.75])
    assert_close(a.weights, X_WEIGHTS, rtol=0, atol=5e-5)
    assert_close(a.mix, a.weights @ X)


@pytest.mark.parametrize("lengths", [[2, 3], [[1, 3], [2, 4]]], ids=["per sequence", "per query"])
def test_masked_softmax_with_valid_lengths_is_exactly_zero_beyond_them(lengths):
    scores = np.random.default_rng(0).random((2, 2, 4))
    weights = reference.softmax(scores, reference.padding_mask(np.array(lengths), 4))
    for b, q in np.ndindex(2, 2):
        length = np.array(lengths)[b] if np.ndim(lengths) == 1 else lengths[b][q]
        assert not weights[b, q, length:].any()
        assert_close(weights[b, q, :length], scipy_softmax(scores[b, q, :length]))
        assert_close(weights[b, q].sum(), 1)


def test_additive_attention_over_equal_keys_takes_the_mean_of_the_valid_values():
    draw = np.random.default_rng(0).standard_normal
    values = np.arange(40.0).reshape(1, 10, 4).repeat(2, axis=0)
    a = reference.attend(
        draw((2, 1, 20)),
        np.ones((2, 10, 2)),
        values,
        scores=partial(reference.additive_scores, w1=draw((8, 20)), w2=draw((8, 2)), v=draw(8)),
        mask=reference.padding_mask(np.array([2, 6]), 10),
    )
    assert_close(a.mix, [[[2, 3, 4, 5]], [[10, 11, 12, 13]]])


# the whole mechanism


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": -0.7},
        {"scale": 0.0},
        {"softcap": 1.5, "scale": 2.0},
        {"bias": np.random.default_rng(2).standard_normal((3, 5, 7))},
        {"sink": np.array([-1.0, 0.0, 30.0])[:, None, None]},
        {"bias": np.random.default_rng(2).standard_normal((1, 7)), "softcap": 0.8, "scale": 0.3, "sink": 0.4},
    ],
    ids=lambda options: " ".join(options) or "plain",
)
def test_attend_equals_attention_in_loops(mask, options):
    q, k, v = qkv(2, 3)
    weights, mix = loop_attend(q, k, v, mask=mask, **options)
    a = reference.attend(q, k, v, mask=mask, **options)
    assert_close(a.weights, weights)
    assert_close(a.mix, mix)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_attend_equals_torch(mask):
    q, k, v = qkv(2, 3)
    theirs = scaled_dot_product_attention(
        *map(torch.from_numpy, (q, k, v)), attn_mask=None if mask is None else torch.from_numpy(mask)
    )
    assert_close(reference.attend(q, k, v, mask=mask).mix, theirs.numpy())


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (1, 2, 3)], ids=str)
def test_any_number_of_axes_may_lead(lead):
    q, k, v = qkv(*lead)
    weights, mix = loop_attend(q, k, v)
    a = reference.attend(q, k, v)
    assert_close(a.weights, weights)
    assert_close(a.mix, mix)


def test_what_is_hidden_is_never_read():
    q, k, v = qkv(2, 3)
    mask = reference.padding_mask(np.array([4, 6]), 7)[:, None]
    clean = reference.attend(q, k, v, mask=mask)
    k[0, :, 4:], v[0, :, 4:], k[1, :, 6], v[1, :, 6] = np.nan, np.inf, np.inf, np.nan
    dirty = reference.attend(q, k, v, mask=mask)
    assert np.array_equal(clean.weights, dirty.weights)
    assert np.array_equal(clean.mix, dirty.mix)


def test_a_value_hidden_from_some_queries_reaches_only_the_others():
    q, k, v = qkv(2, q=7)
    v[:, 3] = np.nan
    mix = reference.attend(q, k, v, mask=reference.causal_mask(7, 7)).mix
    assert np.isfinite(mix[:, :3]).all()
    assert np.isnan(mix[:, 3:]).all()


@pytest.mark.parametrize(("rows", "cols"), [(0, 7), (5, 0)])
def test_no_queries_and_no_keys_mix_to_nothing(rows, cols):
    q, k, v = qkv(2, q=rows, k=cols)
    a = reference.attend(q, k, v, mask=reference.causal_mask(rows, cols))
    assert a.weights.shape == (2, rows, cols)
    assert np.array_equal(a.mix, np.zeros((2, rows, 13)))


def test_whatever_comes_in_is_computed_in_float64():
    q, k, v = (x.astype(np.float32) for x in qkv(2))
    assert {part.dtype for part in reference.attend(q, k, v)} == {np.dtype(np.float64)}
    assert_close(reference.attend(q, k, v).mix, loop_attend(*(x.astype(np.float64) for x in (q, k, v)))[1])


def test_huge_scores_stay_finite():
    q, k, v = qkv(2)
    for options in ({"scale": 1e4}, {"scale": 1e4, "sink": 1e5}, {"scale": 1e-4, "sink": 1e5}):
        with np.errstate(over="raise", invalid="raise"):
            assert np.isfinite(reference.attend(q, k, v, **options).mix).all()


def test_grouped_heads_repeat_as_torch_repeats_them():
    q, (_, k, v) = qkv(2, 6)[0], qkv(2, 3)
    ours = reference.attend(q, reference.repeat_heads(k, 6), reference.repeat_heads(v, 6)).mix
    theirs = scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v)), enable_gqa=True)
    assert_close(ours, theirs.numpy())


@pytest.mark.parametrize("causal", [False, True])
def test_multi_head_equals_torch(causal):
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(12, 3, bias=False, batch_first=True, dtype=torch.float64)
    x = torch.randn(2, 5, 12, dtype=torch.float64)
    mask = np.tri(5, dtype=bool) if causal else None
    blocked = None if mask is None else torch.from_numpy(~mask)
    wq, wk, wv = (w.T.numpy() for w in theirs.in_proj_weight.detach().chunk(3))
    ours = reference.multi_head(x.numpy(), wq, wk, wv, theirs.out_proj.weight.detach().T.numpy(), 3, mask)
    mix, weights = theirs(x, x, x, attn_mask=blocked, average_attn_weights=False)
    assert_close(ours.weights, weights.detach().numpy())
    assert_close(ours.mix, mix.detach().numpy())


# scores


@pytest.mark.parametrize("lead", [(), (2, 3)], ids=str)
def test_every_score_equals_its_formula_in_loops(lead):
    draw = np.random.default_rng(3).standard_normal
    q, k, w, w1, w2, v = (
        draw((*lead, 3, 5)),
        draw((*lead, 4, 6)),
        draw((5, 6)),
        draw((7, 5)),
        draw((7, 6)),
        draw(7),
    )
    pairs = {"w1": w1, "w2": w2, "v": v}
    assert_close(reference.additive_scores(q, k, **pairs), loop_scores(q, k, partial(loop_additive, **pairs)))
    assert_close(reference.bilinear_scores(q, k, w), loop_scores(q, k, partial(loop_bilinear, w=w)))
    k = k[..., :5].copy()
    k[..., 1, :] = 0
    assert_close(reference.cosine_scores(q, k), loop_scores(q, k, loop_cosine))
    assert_close(reference.gaussian_scores(q, k, 0.3), loop_scores(q, k, partial(loop_gaussian, width=0.3)))


# masks


@pytest.mark.parametrize(("q", "k"), [(5, 5), (3, 7), (7, 3), (1, 4)])
def test_causal_masks_are_aligned_at_the_end_as_torch_s_lower_right_ones(q, k):
    assert np.array_equal(reference.causal_mask(q, k), causal_lower_right(q, k)._materialize().numpy())


@pytest.mark.parametrize(("q", "k"), [(5, 5), (3, 7), (7, 3)])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 1), (0, 3), (9, 9)])
def test_window_masks_count_from_each_query_s_own_place(q, k, before, after):
    mask = reference.window_mask(q, k, before, after)
    for i, j in np.ndindex(q, k):
        place = k - (q - i)  # as far from the end as the query is
        assert mask[i, j] == (place - before <= j <= place + after)


# normalisers

NORMALISERS = {
    "softmax": reference.softmax,
    "sparsemax": reference.sparsemax,
    "entmax15": reference.entmax15,
    "sigmoid": reference.sigmoid,
    "top_k": partial(reference.top_k, k=2),
}
every_normaliser = pytest.mark.parametrize("normalise", NORMALISERS.values(), ids=NORMALISERS)


def scores_and_mask():
    return 2 * np.random.default_rng(4).standard_normal((2, 3, 5, 7)), blind_row()


@every_normaliser
def test_hidden_cells_and_blind_rows_weigh_zero_whatever_stands_there(normalise):
    scores, mask = scores_and_mask()
    clean = normalise(scores, mask)
    mask = np.broadcast_to(mask, scores.shape)
    assert not clean[~mask].any()
    assert not clean[1, :, 3].any()
    for poison in (np.nan, np.inf, -np.inf):
        assert np.array_equal(normalise(np.where(mask, scores, poison), mask), clean)
    assert np.array_equal(normalise(np.where(mask, scores, -np.inf)), clean)


@every_normaliser
def test_a_nan_that_may_be_seen_reaches_its_row_and_no_other(normalise):
    scores, _ = scores_and_mask()
    scores[0, 1, 2, 3] = np.nan
    weights = normalise(scores)
    assert np.isnan(weights[0, 1, 2, 3])
    assert np.isfinite(np.delete(weights.reshape(-1, 7), 7, axis=0)).all()


@every_normaliser
def test_no_keys_give_no_weights(normalise):
    assert normalise(np.zeros((2, 3, 0))).shape == (2, 3, 0)


def test_softmax_equals_scipy():
    scores, _ = scores_and_mask()
    assert_close(reference.softmax(scores), scipy_softmax(scores, axis=-1))


def test_sigmoid_equals_scipy_even_for_huge_scores():
    scores, _ = scores_and_mask()
    for stretch in (1, 1e4):
        assert_close(reference.sigmoid(scores * stretch, bias=-2.0), expit(scores * stretch - 2))


def test_sparse_weights_equal_bisection():
    scores, mask = scores_and_mask()
    for stretch in (0.1, 1, 1e4):
        assert_close(reference.sparsemax(scores * stretch, mask), bisect_entmax(scores * stretch, mask, 2.0), atol=1e-9)
        assert_close(reference.entmax15(scores * stretch, mask), bisect_entmax(scores * stretch, mask), atol=1e-9)


def test_sparse_weights_equal_the_entmax_package():
    theirs = pytest.importorskip("entmax")
    scores, _ = scores_and_mask()
    assert_close(reference.sparsemax(scores), theirs.sparsemax(torch.from_numpy(scores)).numpy())
    assert_close(reference.entmax15(scores), theirs.entmax15(torch.from_numpy(scores)).numpy())


def test_top_k_keeps_the_first_of_equal_keys_and_all_where_there_are_few():
    weights = reference.top_k(np.array([[1.0, 3, 1, 3, 3], [0, 0, 0, 0, 0]]), k=2)
    assert_close(weights, [[0, 0.5, 0, 0.5, 0], [0.5, 0.5, 0, 0, 0]])
    scores, _ = scores_and_mask()
    assert_close(reference.top_k(scores, k=99), scipy_softmax(scores, axis=-1))


# positions and kernels


@pytest.mark.parametrize("width", [6, 7])
def test_sinusoids_follow_the_paper_channel_by_channel(width):
    table = reference.sinusoid(50, width)
    for t, channel in np.ndindex(50, width):
        wave = math.sin if channel % 2 == 0 else math.cos
        assert_close(table[t, channel], wave(t / 10000 ** (2 * (channel // 2) / width)))


def test_nadaraya_watson_is_the_kernel_weighted_mean():
    draw = np.random.default_rng(5).standard_normal
    x, keys, values = draw(3), draw(4), draw(4)
    for i, y in enumerate(reference.nadaraya_watson(x, keys, values, width=0.6)):
        kernel = [math.exp(-((x[i] - key) ** 2) / (2 * 0.6**2)) for key in keys]
        assert_close(y, sum(w * v for w, v in zip(kernel, values)) / sum(kernel))


def test_the_reference_needs_no_torch():
    code = "import sys, regard.attention.reference; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

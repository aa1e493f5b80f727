"""Small forms of masks and biases: whatever comes in, every cell comes out as it was."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import regard
from regard.attention.map import AttentionMap, Computed
from regard.attention.mask import Mask, Sizes, rule
from regard.attention.mask.bits import Bits
from regard.attention.mask.spans import SpanMask
from regard.errors import MaskError, PositionError
from regard.trace.record.compact import compact_any_mask, compact_mask, split_bias
from regard.trace.record.diagonals import Diagonals

B, H, Q, K = 2, 3, 13, 19
SIZES = Sizes((B, H), Q, K)
LOWEST = torch.finfo(torch.float32).min
IDS = torch.tensor([[0] * 4 + [1] * 9 + [2] * 6, [5] * 7 + [9] * 12])


def seen_by(mask: Mask | None, sizes=SIZES):
    b, h = sizes.lead
    if mask is None:
        return torch.ones(b, h, sizes.q, sizes.k, dtype=torch.bool)
    mask.check(sizes)
    return mask.dense(sizes.q, sizes.k, batch=b, heads=h)


MASKS = {
    "causal": (regard.causal(), (1, 1, Q)),
    "causal from the first": (regard.causal(align="first"), (1, 1, Q)),
    "window": (regard.window(3, 2), (1, 1, Q)),
    "endless window": (regard.window(2**40, 0), (1, 1, Q)),
    "prefix": (regard.prefix(9), (1, 1, Q)),
    "prefix per sequence": (regard.prefix(torch.tensor([2, 17])), (B, 1, Q)),
    "padding": (regard.padding([4, 15]), (B, 1, 1)),
    "left padding": (regard.padding([0, 15], side="left"), (B, 1, 1)),
    "padding per query": (regard.padding([list(range(Q)), [7] * Q]), (B, 1, Q)),
    "padded causal": (regard.causal() & regard.padding([4, 15], side="left"), (B, 1, Q)),
    "documents": (regard.documents(IDS) & regard.causal(), (B, 1, Q)),
    "per head": (rule(lambda b, h, q, k: k <= q + h), (1, H, Q)),
    "tensor": (regard.allowed(torch.arange(K)[None] < torch.tensor([[5], [8]]), axes="b k"), (B, 1, 1)),
    "nothing": (~regard.window(99, 99), (1, 1, 1)),
}
HOLES = {
    "dilated": (regard.window(4, 4, dilation=2), (1, 1, Q, 3)),
    "window with first": (regard.window(1, keep_first=2), (1, 1, Q, 3)),
    "not causal": (~regard.window(2, 2), (1, 1, Q, 3)),
    "blocks": (regard.block_sparse(torch.tensor([[True, False, True, False]] * 3), 5), (1, 1, 1, 3)),
    "per head": (rule(lambda b, h, q, k: (k + h) % 3 > 0), (1, H, 1, 3)),
    "per sequence": (rule(lambda b, h, q, k: (k * q + b) % 3 > 0), (B, 1, Q, 3)),
}


@pytest.mark.parametrize(("mask", "shape"), MASKS.values(), ids=MASKS)
def test_one_run_of_keys_per_row_becomes_spans(mask, shape):
    for small in (compact_any_mask(mask, SIZES), compact_mask(seen_by(mask), SIZES)):
        assert isinstance(small, SpanMask)
        assert small.start.shape == shape
        assert seen_by(small).equal(seen_by(mask))


@pytest.mark.parametrize(("mask", "shape"), HOLES.values(), ids=HOLES)
def test_rows_with_holes_become_bits(mask, shape):
    for small in (compact_any_mask(mask, SIZES), compact_mask(seen_by(mask), SIZES)):
        assert isinstance(small, Bits)
        assert small.bits.shape == shape
        assert seen_by(small).equal(seen_by(mask))


def test_where_all_is_allowed_there_is_no_mask():
    assert compact_mask(torch.ones(1, 1, 1, 1, dtype=torch.bool), SIZES) is None
    assert compact_mask(torch.ones(B, 1, Q, K, dtype=torch.bool), SIZES) is None
    assert compact_any_mask(regard.window(99, 99), SIZES) is None
    assert compact_any_mask(None, SIZES) is None
    assert compact_mask(torch.ones(B, H, Q, 0, dtype=torch.bool), Sizes((B, H), Q, 0)) is None
    assert compact_mask(torch.ones(B, H, 0, K, dtype=torch.bool), Sizes((B, H), 0, K)) is None


@st.composite
def broadcast(draw):
    shape = [draw(st.sampled_from([1, size])) for size in (B, H, Q, K)]
    seed, dense = draw(st.integers(0, 999)), draw(st.sampled_from([0.02, 0.5, 0.98]))
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < dense


@given(broadcast(), st.booleans())
def test_whatever_came_in_comes_out(seen, expanded):
    whole = seen.expand(B, H, Q, K)
    assert seen_by(compact_mask(whole if expanded else seen, SIZES)).equal(whole)


@pytest.mark.parametrize("k", range(1, 27))
def test_every_run_of_every_length_is_found(k):
    starts, stops = torch.triu_indices(k + 1, k + 1, 1)
    at = torch.arange(k)
    seen = (at >= starts[:, None]) & (at < stops[:, None])
    small = compact_mask(seen[None, None], Sizes((1, 1), len(starts), k))
    found = small.dense(len(starts), k) if small else torch.ones_like(seen)
    assert small is None or isinstance(small, SpanMask)
    assert found.equal(seen)


def test_an_expanded_mask_costs_what_it_holds():
    keys = torch.ones(4, 1, 1, 1 << 20, dtype=torch.bool)
    keys[1, ..., 5:] = False
    small = compact_mask(keys.expand(4, 16, 1 << 20, 1 << 20), Sizes((4, 16), 1 << 20, 1 << 20))  # 2⁴⁶ cells
    assert small.start.shape == (4, 1, 1)
    assert small.stop.flatten().tolist() == [1 << 20, 5, 1 << 20, 1 << 20]


def test_masks_of_other_axes_are_refused_in_words():
    with pytest.raises(MaskError, match=r"shape \(5, 1, 1, 1\), but the map is \(2, 3, 13, 19\)"):
        compact_mask(torch.ones(5, 1, 1, 1, dtype=torch.bool), SIZES)


def test_maps_with_other_leading_axes_are_served_too():
    mask = regard.causal() & rule(lambda b, h, q, k: k != b)
    several = Sizes((2, 4, 3), 5, 6)
    one = Sizes((8, 3), 5, 6)
    assert seen_by(compact_any_mask(mask, several), one).equal(seen_by(mask, one))
    tensor = torch.rand(2, 1, 1, 5, 6) > 0.5
    flat = tensor.expand(2, 4, 1, 5, 6).flatten(0, 1).expand(8, 3, 5, 6)
    assert seen_by(compact_any_mask(regard.allowed(tensor), several), one).equal(flat)
    assert compact_any_mask(regard.causal(), Sizes((), 5, 6)).start.shape == (1, 1, 5)


# Biases


def whole(bias, heads=H):
    """All numbers of a bias, whatever its form."""
    if bias is None:
        return torch.zeros(B, heads, Q, K)
    if isinstance(bias, Diagonals):
        return bias.block(torch.arange(Q) + K - Q, torch.arange(K)).expand(B, heads, Q, K)
    return bias.expand(B, heads, Q, K)


def check_split(bias):
    """The parts, after seeing that together they are the whole."""
    split = split_bias(bias, SIZES)
    full = bias.expand(B, H, Q, K)
    seen = seen_by(split.mask)
    assert seen.equal(full > torch.finfo(bias.dtype).min / 2)
    assert whole(split.bias).to(full.dtype)[seen].equal(full[seen])
    return split


DISTANCE = torch.arange(K) - (torch.arange(Q) + K - Q)[:, None]
SLOPES = torch.tensor([0.5, 0.25, 0.125])[:, None, None]
HIDDEN = torch.where(seen_by(regard.causal() & regard.padding([17, 19])), 0.0, LOWEST)


@pytest.mark.parametrize("lowest", [LOWEST, -torch.inf, LOWEST * 0.6])
def test_a_float_mask_of_nothing_but_hidden_cells_leaves_no_bias(lowest):
    hidden = torch.where(seen_by(regard.causal() & regard.padding([17, 19])), 0.0, lowest)
    mask, bias, blind = check_split(hidden)
    assert (type(mask), bias, blind) == (SpanMask, None, False)


@pytest.mark.parametrize("hidden", [torch.zeros(1, 1, 1, 1), HIDDEN[:1, :1], HIDDEN], ids=["open", "causal", "padded"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_what_depends_on_the_distance_becomes_diagonals(hidden, dtype):
    near = torch.randn(H, Q + K - 1)[:, DISTANCE + K - 1]  # like T5's buckets: any number per distance
    for given_bias in (near, SLOPES * DISTANCE.abs(), near[:1]):
        bias = given_bias.to(dtype) + torch.zeros_like(hidden, dtype=dtype).masked_fill(
            hidden < 0, torch.finfo(dtype).min
        )
        split = check_split(bias)
        assert isinstance(split.bias, Diagonals)
        assert split.bias.values.dtype == dtype
        assert split.bias.values.shape[0] in (1, H)


def test_diagonals_are_a_bias_like_any_other():
    near = torch.randn(H, Q + K - 1)[:, DISTANCE + K - 1]
    mask, bias, _ = split_bias((near + HIDDEN[:1, :1]), SIZES)
    q, k = torch.randn(B, H, Q, 5), torch.randn(B, H, K, 5)
    assert isinstance(bias, regard.attention.score.bias.Bias)
    ours = AttentionMap(Computed(q, k, SIZES, mask=mask, bias=bias))
    assert_close(ours.dense(), torch.softmax(q @ k.mT + near + HIDDEN[:1, :1], -1))
    assert_close(ours[1, 2, 3], ours.dense()[1, 2, 3])
    assert bias.block(torch.tensor([18]), torch.tensor([3, 4]), torch.tensor([2])).flatten().tolist() == [
        float(near[2, 12, 3]),
        float(near[2, 12, 4]),
    ]
    with pytest.raises(PositionError, match="asked for"):
        bias.block(torch.tensor([0]), torch.tensor([18]))


def test_what_depends_on_the_key_alone_keeps_no_rows():
    keys = torch.randn(B, H, 1, K)
    _, bias, _ = check_split(keys)
    assert bias.shape == (B, H, 1, K)
    mask, bias, _ = check_split(keys + HIDDEN)  # as ALiBi models write it, with the causal mask already added
    assert isinstance(mask, SpanMask)
    assert bias.shape == (B, H, 1, K)
    _, bias, _ = check_split((keys[:1, :1] + HIDDEN).contiguous())
    assert bias.shape == (1, 1, 1, K)


def test_any_other_bias_stays_a_tensor_of_its_own_small_shape():
    free = torch.randn(1, H, Q, K)
    _, bias, _ = check_split(free)
    assert bias.data_ptr() == free.data_ptr()
    _, bias, _ = check_split(free.expand(B, H, Q, K).contiguous())
    assert bias.shape == (1, H, Q, K)
    mask, bias, _ = check_split(free + HIDDEN)
    assert isinstance(mask, SpanMask)
    assert bias.isfinite().all()
    almost = (SLOPES * DISTANCE)[None].clone()
    almost[0, 1, 7, 3] += 0.5
    assert isinstance(check_split(almost).bias, torch.Tensor)
    almost[0, 1, 7, 3] = torch.nan
    assert bool(split_bias(almost, SIZES).bias[0, 1, 7, 3].isnan())


def test_a_row_that_sees_nothing_is_blind_only_where_its_numbers_are_finite():
    hidden = torch.zeros(1, 1, Q, K)
    hidden[..., 4, :] = -torch.inf
    assert check_split(hidden).blind is False
    hidden[..., 4, 7] = LOWEST
    assert check_split(hidden).blind is True
    assert split_bias(torch.full((1, 1, 1, K), LOWEST), SIZES).blind is True
    assert split_bias(torch.full((1, 1, 1, 1), LOWEST), SIZES).blind is True


@given(broadcast(), broadcast(), st.booleans(), st.integers(0, 3))
def test_masks_and_biases_of_any_small_shape_split_exactly(seen, values, infinite, levels):
    bias = torch.where(seen, (values * levels).float(), -torch.inf if infinite else LOWEST)
    check_split(bias)


def test_nothing_is_allocated_beyond_blocks_of_rows():
    n = 2048
    bias = torch.zeros(1, 1, n, n).masked_fill_(torch.ones(n, n, dtype=torch.bool).triu(1), LOWEST)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as seen:
        split_bias(bias, Sizes((1, 1), n, n))
    most = max(event.cpu_memory_usage for event in seen.events())
    assert most <= 16 * n * n  # of one call; a mask of int64 would be twice as much

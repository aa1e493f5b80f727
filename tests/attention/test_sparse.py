"""Masks that leave most keys out are computed over the others only, and give what dense attention gives."""

from itertools import product

import pytest
import torch

import regard
from regard.attention.mask import Sizes, allowed, bigbird, causal, documents, longformer, padding, window
from regard.attention.sparse import banded, strips
from regard.errors import DtypeError, MaskError, PathError

B, H, G, D = 2, 6, 3, 5


def seeded(seed):
    return torch.Generator().manual_seed(seed)


MARKED = torch.rand(B, 53, generator=seeded(5)) < 0.1

MASKS = {
    "window": lambda: window(5, 3),
    "itself": lambda: window(0, 0),
    "one side": lambda: window(7),
    "first kept": lambda: window(4, 2, keep_first=3),
    "first kept and causal": lambda: window(4, 2, keep_first=3) & causal(),
    "twice kept": lambda: window(4, 2, keep_first=3) & window(6, 5, keep_first=2),
    "dilated": lambda: window(9, 6, dilation=3),
    "dilated and padded": lambda: window(9, 6, dilation=3) & padding([30, 45]),
    "causal": lambda: window(6, 6) & causal(),
    "causal from the first": lambda: window(20, 6) & causal(align="first"),
    "padded": lambda: window(6, 2) & padding([30, 45]),
    "padded in front": lambda: window(6, 2) & padding([30, 0], side="left"),
    "longformer": lambda: longformer(4, global_at=[0, 17, -1]),
    "longformer, causal": lambda: longformer(4, 0, global_at=[0, 17]) & causal(),
    "longformer, padded": lambda: longformer(3, 2, global_at=[5]) & padding([40, 0]),
    "longformer, marked": lambda: longformer(3, global_at=MARKED),
    "longformer, marked and padded": lambda: longformer(3, global_at=MARKED) & padding([11, 53]),
    "two longformers": lambda: longformer(3, global_at=[2, 9]) & longformer(5, global_at=[9, 30]),
    "bigbird": lambda: bigbird(8, random=2, seed=1),
    "bigbird by head": lambda: bigbird(8, random=2, heads=H, seed=2),
    "bigbird, causal": lambda: bigbird(8, random=1) & causal(),
    "bigbird, padded": lambda: bigbird(8, random=1) & padding([20, 53]),
    "bigbird without random": lambda: bigbird(7, random=0, last=0),
    "bigbird, windows": lambda: bigbird(8, random=1) & window(19, 30),
    "either": lambda: window(3, 1) | window(1, 6),
    "not": lambda: window(9, 1) & ~window(2, 0),
}


@pytest.fixture
def small(monkeypatch):
    """Strips for lengths that a dense oracle can hold."""
    monkeypatch.setattr(banded, "SHORTEST", 1)
    monkeypatch.setattr(banded, "SHARE", 100.0)
    monkeypatch.setattr(banded, "BLOCK", 8)


def drawn(q, k, dtype=torch.float64):
    generator = seeded(q + k)
    sizes = ((H, q), (G, k), (G, k))
    return [torch.randn(B, h, n, D, dtype=dtype, generator=generator).requires_grad_() for h, n in sizes]


def dense(q, k, v, seen):
    """Attention by the formula, over a matrix that is all there; a row that sees nothing mixes to 0."""
    k, v = (x.repeat_interleave(H // G, 1) for x in (k, v))
    scores = (q @ k.mT / D**0.5).masked_fill(~seen, -torch.inf)
    weights = torch.where(seen.any(-1, keepdim=True), scores.softmax(-1), 0.0)
    return weights @ v


@pytest.mark.parametrize(("name", "q"), list(product(MASKS, [53, 37, 61])))
def test_a_sparse_mask_gives_what_dense_attention_gives(small, name, q):
    mask, k = MASKS[name](), 53
    tensors = drawn(q, k)
    found = regard.attend(*tensors, mask=mask)
    expected = dense(*tensors, mask.dense(q, k, batch=B, heads=H))
    torch.testing.assert_close(found.mix, expected)
    slope = torch.randn(found.mix.shape, dtype=torch.float64, generator=seeded(1))
    ours = torch.autograd.grad(found.mix, tensors, slope)
    theirs = torch.autograd.grad(expected, tensors, slope)
    torch.testing.assert_close(ours, theirs)
    whole_blocks = not name.startswith("bigbird") or (q <= k and (k - q) % (7 if "without" in name else 8) == 0)
    assert found.path == "banded" or not whole_blocks or name == "bigbird, windows"
    torch.testing.assert_close(
        found.weights.dense(), regard.attend(*tensors, mask=mask, path="explicit").weights.dense()
    )


@pytest.mark.parametrize("room", [1, 700, 1 << 22])
def test_the_size_of_strips_changes_nothing(small, monkeypatch, room):
    monkeypatch.setattr("regard.attention.sparse.banded_kernel.ROOM", room)
    tensors, mask = drawn(53, 53), longformer(4, global_at=[20])
    expected = dense(*tensors, mask.dense(53, 53, batch=B, heads=H))
    torch.testing.assert_close(regard.attend(*tensors, mask=mask).mix, expected)


def test_every_allowed_cell_lies_in_the_cover(small):
    for (name, make), q in product(MASKS.items(), [53, 37, 61, 45]):
        mask, sizes = make(), Sizes((B, H), q, 53)
        cover = mask.cover(sizes)
        seen = mask.dense(q, 53, batch=B, heads=H)
        block = cover.block or 1
        rows, keys = torch.arange(q)[:, None], torch.arange(53)
        first = rows // block * block + sizes.offset
        covered = (keys >= first - cover.before) & (keys < first + block + cover.after)
        covered = covered.expand(H, q, 53).clone()
        if cover.keys is not None:
            places = cover.keys.expand(H, -(-q // block) if cover.keys.shape[1] > 1 else 1, -1)
            for h, i in product(range(H), range(q)):
                mine = places[h, i // block if places.shape[1] > 1 else 0]
                covered[h, i, mine[mine >= 0]] = True
        if cover.queries is not None:
            covered[:, cover.queries] = True
        assert not (seen & ~covered).any(), name


def test_a_long_window_takes_the_banded_kernel_by_itself_and_a_wide_one_does_not():
    x = torch.randn(1, 1, 1024, 4, generator=seeded(0))
    assert regard.attend(x, x, x, mask=window(64, 64)).path == "banded"
    assert regard.attend(x, x, x, mask=window(900, 900)).path == "fused"
    assert regard.attend(x, x, x, mask=causal()).path == "fused"
    assert regard.attend(x[..., :200, :], x, x, mask=window(64, 64)).path == "fused"


def test_batches_of_several_axes_and_none_are_served():
    x = torch.randn(3, 2, 1, 700, 4, generator=seeded(0))
    found = regard.attend(x, x, x, mask=window(30, 9))
    assert found.path == "banded"
    one = regard.attend(x[2, 1, 0], x[2, 1, 0], x[2, 1, 0], mask=window(30, 9))
    torch.testing.assert_close(found.mix[2, 1, 0], one.mix)
    plain = regard.attend(x, x, x, mask=window(30, 9), path="explicit")
    torch.testing.assert_close(found.mix, plain.mix)


def test_values_may_have_another_width():
    q, k, v = (torch.randn(1, 2, 600, d, generator=seeded(d)) for d in (6, 6, 9))
    found = regard.attend(q, k, v, mask=window(20, 3))
    assert found.path == "banded"
    torch.testing.assert_close(found.mix, regard.attend(q, k, v, mask=window(20, 3), path="explicit").mix)


def test_half_precision_keeps_its_normalisers_in_float32():
    q, k, v = (torch.randn(1, 1, 600, 8, generator=seeded(d)).half().requires_grad_() for d in range(3))
    mask = window(40, 40)
    found = regard.attend(q, k, v, mask=mask)
    assert found.path == "banded"
    exact = [x.detach().double().requires_grad_() for x in (q, k, v)]
    expected = regard.attend(*exact, mask=mask, path="explicit").mix
    torch.testing.assert_close(found.mix.double(), expected, atol=2e-3, rtol=2e-3)
    for ours, theirs in zip(
        torch.autograd.grad(found.mix.sum(), (q, k, v)), torch.autograd.grad(expected.sum(), exact)
    ):
        torch.testing.assert_close(ours.double(), theirs, atol=5e-3, rtol=5e-3)


def test_what_is_hidden_from_everybody_is_not_read():
    q, k, v = (torch.randn(1, 2, 640, 4, generator=seeded(d)) for d in range(3))
    mask = window(20, 20) & padding([600])
    clean = regard.attend(q, k, v, mask=mask).mix
    k[:, :, 600:], v[:, :, 600:] = torch.nan, torch.inf
    torch.testing.assert_close(regard.attend(q, k, v, mask=mask).mix, clean)


def test_a_second_derivative_is_refused_with_advice():
    x = torch.randn(1, 1, 600, 4, generator=seeded(0)).requires_grad_()
    mix = regard.attend(x, x, x, mask=window(5, 5)).mix
    slope = torch.ones_like(mix, requires_grad=True)
    with pytest.raises(PathError, match="path='explicit'"):
        torch.autograd.grad(mix, x, slope, create_graph=True)


def test_random_blocks_follow_from_the_seed_and_touch_no_random_state():
    before = torch.get_rng_state()
    same, again, other = (bigbird(4, random=2, seed=seed).dense(60, 60) for seed in (3, 3, 4))
    assert torch.equal(same, again)
    assert not torch.equal(same, other)
    assert torch.equal(before, torch.get_rng_state())
    drawn_once = bigbird(4, generator=seeded(9)).dense(60, 60)
    assert torch.equal(drawn_once, bigbird(4, generator=seeded(9)).dense(60, 60))


def test_bigbird_is_the_window_the_global_blocks_and_so_many_random_ones():
    block, window_, count = 3, 1, 20
    seen = bigbird(block, window=window_, first=1, last=1, random=2, seed=5).dense(58, 58)
    blocks = seen[::block, ::block]
    for i in range(count):
        links = blocks[i].nonzero().flatten().tolist()
        near = {j for j in range(count) if abs(i - j) <= window_}
        if i in (0, count - 1):
            assert links == list(range(count))
        else:
            assert near | {0, count - 1} <= set(links)
            assert len(set(links) - near - {0, count - 1}) == 2


def test_bad_sizes_are_told_in_one_sentence():
    with pytest.raises(ValueError, match="block is 0"):
        bigbird(0)
    with pytest.raises(ValueError, match="random is -1"):
        bigbird(4, random=-1)
    with pytest.raises(MaskError, match="global token 7 was asked for, but there are 5 keys"):
        longformer(1, global_at=[7]).dense(5, 5)
    with pytest.raises(DtypeError, match="give a boolean one"):
        longformer(1, global_at=torch.tensor([1, 0]))
    with pytest.raises(MaskError, match="batch and keys are"):
        longformer(1, global_at=torch.ones(2, 4, dtype=torch.bool)).dense(5, 5, batch=2, heads=1)
    with pytest.raises(MaskError, match="heads=4"):
        bigbird(2, heads=3).dense(8, 8, batch=1, heads=4)


def test_masks_of_other_kinds_still_combine_with_a_window(small):
    tensors = drawn(53, 53)
    for mask in (window(9, 4) & documents(torch.arange(53) // 7), window(5, 5) & allowed(MARKED, axes="b k")):
        expected = dense(*tensors, mask.dense(53, 53, batch=B, heads=H))
        found = regard.attend(*tensors, mask=mask)
        assert found.path == "banded"
        torch.testing.assert_close(found.mix, expected)


def test_strips_hold_every_query_once():
    for q, k, before, after in ((53, 53, 5, 3), (37, 53, 60, 0), (61, 53, 0, 9), (8, 8, 0, 0)):
        pattern = banded.pattern_of(window(before, after), Sizes((1, 1), q, k))
        if pattern is None:
            continue
        found = [
            row
            for strip in strips.strips(pattern, 30)
            for row in range(strip.first, strip.first + strip.blocks * strip.height)
        ]
        assert found == list(range(q))

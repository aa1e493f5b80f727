"""attend against torch, against the plain reference, and against itself by another path."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import regard
from regard import reference
from regard.attention.mask import rule
from regard.attention.score import Dot, ScaledDot
from tests.attention.cases import array, qkv

X = torch.tensor([[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0.5, 0.5, 0]])


def test_the_worked_example_has_its_published_numbers():
    a = regard.attend(X, X, X)
    assert_close(a.weights.scores[0], torch.tensor([1, 0, 0.5, 0.5, 0.75]))
    assert_close(a.weights.scores[4], torch.tensor([0.75, 0.25, 0.75, 0.25, 0.75]))
    published = [
        [0.2976, 0.1095, 0.1805, 0.1805, 0.2318],
        [0.1205, 0.3275, 0.1986, 0.1986, 0.1547],
        [0.1805, 0.1805, 0.2976, 0.1095, 0.2318],
        [0.1986, 0.1986, 0.1205, 0.3275, 0.1547],
        [0.2374, 0.1440, 0.2374, 0.1440, 0.2374],
    ]
    assert_close(a.weights.dense(), torch.tensor(published), atol=5e-5, rtol=0)
    assert_close(a.mix, a.weights.dense() @ X)


def test_masked_softmax_by_valid_lengths():
    scores = torch.rand(2, 2, 4)
    weights = regard.softmax(scores, regard.padding([2, 3]).dense(2, 4, batch=2))
    assert weights[0, :, 2:].eq(0).all()
    assert weights[1, :, 3:].eq(0).all()
    assert_close(weights.sum(-1), torch.ones(2, 2))


def test_additive_attention_over_equal_keys_takes_the_mean_of_the_valid_values():
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    score = regard.Additive(query=20, key=2, hidden=8)
    q, k, v = torch.randn(2, 1, 1, 20), torch.ones(2, 1, 10, 2), values[:, None]
    a = regard.attend(q, k, v, score=score, mask=regard.padding([2, 6]))
    assert_close(a.mix[:, 0, 0], torch.tensor([[2.0, 3, 4, 5], [10, 11, 12, 13]]))


MASKS = {
    "open": None,
    "causal": regard.causal(),
    "padding": regard.padding([3, 7]),
    "causal and padding": regard.causal() & regard.padding([3, 7]),
    "left padding": regard.causal() & regard.padding([3, 7], side="left"),
    "one blind row": rule(lambda b, h, q, k: (q != 2) & (k >= 0)),
    "tensor": torch.rand(2, 6, 5, 7, generator=torch.Generator().manual_seed(1)) > 0.5,
}


@pytest.mark.parametrize("path", ["fused", "explicit"])
@pytest.mark.parametrize("hk", [6, 3, 1])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_attend_and_its_gradients_equal_torch(mask, hk, path):
    q, k, v = qkv(hk=hk, grad=True)
    a = regard.attend(q, k, v, mask=mask, path=path)
    dense = mask.dense(5, 7, batch=2, heads=6) if isinstance(mask, regard.Mask) else mask
    theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=dense, enable_gqa=True)
    assert a.path == path
    assert_close(a.mix, theirs)
    ours = torch.autograd.grad(a.mix.square().sum(), (q, k, v))
    assert_close(ours, torch.autograd.grad(theirs.square().sum(), (q, k, v)))
    values = v.repeat_interleave(6 // hk, 1)
    assert_close(a.weights.dense() @ values, a.mix)


def test_long_padded_batches_are_sliced_and_equal_the_mask():
    q, k, v = qkv(b=5, h=4, hk=2, q=301, k=301, d=8, e=8, grad=True)
    lengths = [301, 17, 17, 0, 300]
    for extra in (None, regard.causal()):
        for side in ("right", "left"):
            mask = regard.padding(lengths, side=side)
            mask = mask if extra is None else extra & mask
            a = regard.attend(q, k, v, mask=mask)
            assert a.path == "sliced"
            dense = mask.dense(301, batch=5, heads=1)
            theirs = F.scaled_dot_product_attention(q, k, v, attn_mask=dense, enable_gqa=True)
            assert_close(a.mix, theirs)
            ours = torch.autograd.grad(a.mix.square().sum(), (q, k, v))
            assert_close(ours, torch.autograd.grad(theirs.square().sum(), (q, k, v)))


def test_slices_mean_the_same_where_queries_and_keys_differ_in_number():
    for q, k in ((280, 301), (301, 280)):
        x, y, z = qkv(b=3, h=2, q=q, k=k, d=8, e=8)
        for align, side in product(("last", "first"), ("right", "left")):
            for mask in (
                regard.causal(align=align) & regard.padding([k, 19, 270], side=side),
                regard.padding([k, 19, 0], side=side),
            ):
                dense = mask.dense(q, k, batch=3, heads=1)
                assert_close(
                    regard.attend(x, y, z, mask=mask).mix, F.scaled_dot_product_attention(x, y, z, attn_mask=dense)
                )


@pytest.mark.parametrize("lead", [(), (3,), (2, 3), (4, 2, 3), (1, 4, 2, 3)])
def test_any_number_of_leading_axes(lead):
    q, k, v = torch.randn(*lead, 5, 4), torch.randn(*lead, 7, 4), torch.randn(*lead, 7, 6)
    a = regard.attend(q, k, v, mask=regard.causal())
    assert a.mix.shape == (*lead, 5, 6)
    assert a.weights.shape == (*lead, 5, 7)
    plain = reference.attend(array(q), array(k), array(v), mask=reference.causal_mask(5, 7))
    assert_close(a.mix.double(), torch.tensor(plain.mix), atol=1e-5, rtol=1e-5)
    assert_close(a.weights.dense().double(), torch.tensor(plain.weights), atol=1e-5, rtol=1e-5)


SIZES = st.sampled_from([1, 2, 3, 5, 8])
SCORES = {
    "dot": (lambda d: Dot(), lambda s: reference.dot_scores),
    "scaled dot": (lambda d: ScaledDot(), lambda s: reference.scaled_dot_scores),
    "cosine": (lambda d: regard.Cosine(), lambda s: reference.cosine_scores),
    "gaussian": (lambda d: regard.Gaussian(1.3), lambda s: lambda q, k: reference.gaussian_scores(q, k, 1.3)),
    "bilinear": (
        lambda d: regard.Bilinear(query=d, key=d).double(),
        lambda s: lambda q, k: reference.bilinear_scores(q, k, array(next(s.parameters()))),
    ),
    "additive": (
        lambda d: regard.Additive(query=d, key=d, hidden=4).double(),
        lambda s: lambda q, k: reference.additive_scores(q, k, *(array(p) for p in in_order(s))),
    ),
}
WEIGHERS = {
    "softmax": (regard.softmax, reference.softmax),
    "sparsemax": (regard.sparsemax, reference.sparsemax),
    "entmax": (regard.entmax, reference.entmax15),
    "sigmoid": (regard.sigmoid, reference.sigmoid),
    "top_k": (regard.top_k(2), lambda s, m=None: reference.top_k(s, m, k=2)),
}


def in_order(additive):
    return additive.query_to_hidden.weight, additive.key_to_hidden.weight, additive.v


@st.composite
def calls(draw):
    heads, groups = draw(st.sampled_from([(1, 1), (2, 1), (4, 2), (3, 3)]))
    q, k, d, e, b = (draw(SIZES) for _ in range(5))
    weigher = draw(st.sampled_from(list(WEIGHERS)))
    return {
        "sizes": {"b": b, "h": heads, "hk": groups, "q": q, "k": k, "d": d, "e": e},
        "score": draw(st.sampled_from(list(SCORES))),
        "weigh": weigher,
        "mask": draw(st.sampled_from(["none", "causal", "lengths", "window", "random", "nothing"])),
        "scale": draw(st.sampled_from([None, 0.0, 0.3, -1.2])),
        "softcap": draw(st.sampled_from([None, 2.0])),
        "bias": draw(st.booleans()),
        "sink": draw(st.booleans()) and weigher == "softmax",
        "seed": draw(st.integers(0, 99)),
    }


@given(calls())
def test_attend_equals_the_plain_reference_in_mix_weights_and_gradients(call):
    sizes = call["sizes"]
    q, k, v = qkv(**sizes, grad=True, seed=call["seed"])
    generator = torch.Generator().manual_seed(call["seed"])
    shape = (sizes["b"], sizes["h"], sizes["q"], sizes["k"])
    lengths = torch.randint(0, sizes["k"] + 1, (sizes["b"],), generator=generator)
    mask = {
        "none": None,
        "causal": regard.causal(),
        "lengths": regard.padding(lengths),
        "window": regard.window(1, 1),
        "random": torch.rand(shape, generator=generator) > 0.5,
        "nothing": torch.zeros(1, 1, 1, sizes["k"], dtype=torch.bool),
    }[call["mask"]]
    dense = (
        None
        if mask is None
        else mask
        if isinstance(mask, torch.Tensor)
        else mask.dense(*shape[2:], batch=shape[0], heads=shape[1])
    )
    make, plain_of = SCORES[call["score"]]
    torch.manual_seed(call["seed"])
    score = make(sizes["d"])
    weigh, plain_weigh = WEIGHERS[call["weigh"]]
    bias = torch.randn(shape, dtype=torch.float64, generator=generator) if call["bias"] else None
    sink = torch.randn(sizes["h"], dtype=torch.float64, generator=generator) if call["sink"] else None

    a = regard.attend(
        q, k, v, score=score, mask=mask, weigh=weigh, scale=call["scale"], bias=bias, softcap=call["softcap"],
        sink_logits=sink,
    )  # fmt: skip

    scores = plain_of(score)
    unscaled = reference.dot_scores if call["score"] == "scaled dot" and call["scale"] is not None else scores

    def plain(q, k, v):
        more = {} if sink is None else {"sink": array(sink)[:, None, None]}
        return reference.attend(
            q, reference.repeat_heads(k, sizes["h"]), reference.repeat_heads(v, sizes["h"]),
            scores=unscaled, mask=array(dense), scale=call["scale"], bias=array(bias), softcap=call["softcap"],
            normalise=plain_weigh, **more,
        )  # fmt: skip

    expected = plain(array(q), array(k), array(v))
    assert_close(a.mix, torch.tensor(expected.mix), atol=1e-9, rtol=1e-7)
    assert_close(a.weights.dense(), torch.tensor(expected.weights), atol=1e-9, rtol=1e-7)
    explicit = regard.attend(
        q, k, v, score=score, mask=mask, weigh=weigh, scale=call["scale"], bias=bias, softcap=call["softcap"],
        sink_logits=sink, path="explicit",
    )  # fmt: skip
    assert_close(explicit.mix, a.mix, atol=1e-10, rtol=1e-8)
    if call["weigh"] == "top_k":
        return  # which keys are kept jumps, so there is no derivative to compare with
    # The derivative along one random direction, by central differences of the reference.
    along = [torch.randn(x.shape, dtype=torch.float64, generator=generator) for x in (q, k, v)]
    step = 1e-6
    moved = [
        plain(*(array(x) + sign * step * array(u) for x, u in zip((q, k, v), along))).mix.sum() for sign in (1, -1)
    ]
    slope = (moved[0] - moved[1]) / (2 * step)
    grads = torch.autograd.grad(a.mix.sum(), (q, k, v), allow_unused=True)
    ours = sum((g * u).sum().item() for g, u in zip(grads, along) if g is not None)
    assert ours == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_broadcast_batches_and_strides_change_nothing():
    q, k, v = qkv(b=3, k=7)
    expected = regard.attend(q, k[:1].expand(3, -1, -1, -1).clone(), v[:1].expand(3, -1, -1, -1).clone()).mix
    assert_close(regard.attend(q, k[:1], v[:1]).mix, expected)
    assert_close(regard.attend(q, k[:1].expand(3, -1, -1, -1), v[:1]).mix, expected)
    one = regard.attend(q[:1], k, v)
    assert one.mix.shape == (3, 6, 5, 13)
    assert_close(one.weights.dense()[2], regard.attend(q[0], k[2], v[2]).weights.dense())
    straight = regard.attend(q, k, v).mix
    bent = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
    turned = [x.mT.contiguous().mT for x in (q, k, v)]
    strided = [torch.stack([x, x], -1)[..., 0] for x in (q, k, v)]
    for other in (bent, turned, strided):
        assert_close(regard.attend(*other).mix, straight)
        assert_close(regard.attend(*other).weights.dense(), regard.attend(q, k, v).weights.dense())


@pytest.mark.parametrize("scale", [0.0, -0.0, -1.2])
@pytest.mark.parametrize("keys", [5, 300])
def test_a_scale_of_zero_or_less_hides_what_is_hidden(scale, keys):
    """The causal flag of torch's kernel hides by −inf before it scales, and −inf · 0 is no number."""
    q, k, v = qkv(b=2, q=keys, k=keys, grad=True)
    lengths = [keys, keys - 2]
    for mask in (regard.causal(), regard.causal() & regard.padding(lengths)):
        fused, plain = (regard.attend(q, k, v, mask=mask, scale=scale, path=path) for path in (None, "explicit"))
        assert fused.path in ("fused", "sliced")
        assert_close(fused.mix, plain.mix)
        for found, wanted in zip(*(torch.autograd.grad(each.mix.square().sum(), (q, k, v)) for each in (fused, plain))):
            assert_close(found, wanted)


@pytest.mark.parametrize("path", [None, "explicit"])
def test_zero_sizes_are_defined(path):
    none = regard.attend(torch.randn(2, 3, 5, 4), torch.randn(2, 3, 0, 4), torch.randn(2, 3, 0, 6), path=path)
    assert none.mix.shape == (2, 3, 5, 6)
    assert none.mix.eq(0).all()
    assert none.weights.dense().shape == (2, 3, 5, 0)
    assert none.weights.entropy().eq(0).all()
    assert none.weights.log_normaliser().eq(-torch.inf).all()
    assert none.weights.top(2)[1].eq(-1).all()
    for shape in ((0, 3, 5, 4), (2, 3, 0, 4)):
        x = torch.randn(shape)
        assert regard.attend(x, x, x, mask=regard.causal(), path=path).mix.shape == shape
    flat = regard.attend(torch.randn(2, 5, 0), torch.randn(2, 7, 0), torch.randn(2, 7, 3), path=path)
    assert_close(flat.weights.dense(), torch.full((2, 5, 7), 1 / 7))


@pytest.mark.parametrize(("d", "e"), [(1, 1), (1, 5), (3, 1), (7, 7), (16, 4), (4, 16)])
def test_odd_and_unequal_widths_stay_fused_and_right(d, e):
    q, k, v = qkv(d=d, e=e)
    a = regard.attend(q, k, v)
    assert a.path == "fused"
    assert_close(a.mix, reference_mix(q, k, v))


def reference_mix(q, k, v, **options):
    return torch.tensor(reference.attend(array(q), array(k), array(v), **options).mix)


def test_grouped_heads_come_in_the_order_of_repeat_interleave():
    q, k, v = qkv(h=6, hk=2)
    grouped = regard.attend(q, k, v)
    repeated = regard.attend(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1))
    assert_close(grouped.mix, repeated.mix)
    assert_close(grouped.weights.dense(), repeated.weights.dense())
    for head in range(6):
        assert_close(grouped.weights[1, head].dense(), repeated.weights.dense()[1, head])
    assert_close(grouped.weights[:, [5, 0, 3]].dense(), repeated.weights.dense()[:, [5, 0, 3]])
    assert_close(grouped.weights[:, 1:5].dense(), repeated.weights.dense()[:, 1:5])
    tiled = regard.attend(q, k.repeat(1, 3, 1, 1), v.repeat(1, 3, 1, 1))  # the other order
    order = [0, 2, 4, 1, 3, 5]
    assert_close(regard.attend(q[:, order], k, v).mix, tiled.mix[:, order])


def test_asking_for_weights_changes_nothing_bit_for_bit():
    for mask in MASKS.values():
        q, k, v = qkv(dtype=torch.float32)
        before = regard.attend(q, k, v, mask=mask)
        mix = before.mix.clone()
        kept = [x.clone() for x in (q, k, v)]
        before.weights.dense(), before.weights.top(2), before.weights.entropy(), before.weights[1, 2, 3]
        after = regard.attend(q, k, v, mask=mask)
        assert torch.equal(before.mix, mix)
        assert torch.equal(after.mix, mix)
        assert all(torch.equal(x, y) for x, y in zip((q, k, v), kept))


def test_the_paths_agree_to_a_stated_bound():
    q, k, v = qkv(q=65, k=130, d=32, e=32, dtype=torch.float32)
    for mask in (None, regard.causal()):
        fused, explicit = (regard.attend(q, k, v, mask=mask, path=path).mix for path in ("fused", "explicit"))
        assert (fused - explicit).abs().max() < 2e-6

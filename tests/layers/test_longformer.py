"""A window and global tokens with projections of their own: what the formula gives, and what `transformers` gives."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.errors import CacheError, MaskError, ShapeError
from regard.layers import listen
from regard.layers.longformer import LongformerAttention

B, T, M, H = 2, 23, 12, 3
LONG = 600  # computed by strips


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def drawn(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=seeded(sum(shape)))


def made(**options):
    """A layer whose global projections are not those of the window."""
    layer = LongformerAttention(M, H, **{"before": 4, **options}).double()
    generator = seeded(7)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, dtype=torch.float64, generator=generator) * 0.4)
    return layer


def marked(length, *rows):
    marks = torch.zeros(len(rows), length, dtype=torch.bool)
    for marks_of_one, places in zip(marks, rows):
        marks_of_one[list(places)] = True
    return marks


def by_formula(layer, x, marks, real, *, causal=False):
    """Both matrices whole (Beltagy et al. 2020, §3.1): (weights, output before its projection)."""
    n, d = x.shape[1], M // H

    def heads(project):
        return project(x).unflatten(-1, (H, d)).transpose(1, 2)

    at = torch.arange(n)
    ahead = at - at[:, None]
    near = (ahead >= -layer.before) & (ahead <= layer.after) & (ahead % layer.dilation == 0)
    looks = marks[:, None, :, None]
    seen = (near | marks[:, None, None, :] | looks) & real[:, None, None, :]
    seen = seen & (ahead <= 0) if causal else seen
    mixes, maps = [], []
    for q, k, v in (map(heads, layer.near()), map(heads, layer.far())):
        scores = (q @ k.mT / d**0.5).masked_fill(~seen, -torch.inf)
        maps.append(torch.where(seen.any(-1, keepdim=True), scores.softmax(-1), 0.0))
        mixes.append(maps[-1] @ v)
    return torch.where(looks, maps[1], maps[0]), torch.where(looks, mixes[1], mixes[0])


@pytest.mark.parametrize("n", [T, LONG])
@pytest.mark.parametrize(
    "options", [{"before": 4}, {"before": 5, "after": 2}, {"before": 6, "after": 3, "dilation": 3}, {"before": 0}]
)
def test_the_layer_and_its_gradients_follow_the_formula(n, options):
    layer, x = made(**options), drawn(B, n, M).requires_grad_()
    marks, lengths = marked(n, [0, 9], [3, 4, n - 8]), [n, n - 5]
    real = torch.arange(n) < torch.tensor(lengths)[:, None]
    found = layer.attend(x, global_at=marks, mask=regard.padding(lengths))
    weights, mix = by_formula(layer, x, marks, real)
    assert found.path == ("banded" if n == LONG else "fused")
    assert_close(found.mix, mix)
    assert_close(found.weights.dense(), weights)
    slope = drawn(*mix.shape)
    learned = [x, *(p for name, p in layer.named_parameters() if "to_out" not in name)]
    for ours, theirs in zip(torch.autograd.grad(found.mix, learned, slope), torch.autograd.grad(mix, learned, slope)):
        assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_places_for_all_are_marks_of_each():
    layer, x = made(), drawn(B, LONG, M)
    marks = marked(LONG, [0, 17, LONG - 1], [0, 17, LONG - 1])
    assert_close(layer(x, global_at=[0, 17, -1]), layer(x, global_at=marks))
    assert_close(layer(x[0], global_at=[0, 17, -1]), layer(x, global_at=marks)[0])  # without a batch


@pytest.mark.parametrize("n", [48, 1024])
def test_it_is_the_longformer_of_transformers_given_its_weights(n):
    theirs = pytest.importorskip("transformers.models.longformer.modeling_longformer")
    config = theirs.LongformerConfig(
        hidden_size=20, num_attention_heads=5, attention_window=[16], attention_probs_dropout_prob=0.0
    )
    generator = seeded(3)
    whole = theirs.LongformerAttention(config, 0).eval()
    with torch.no_grad():
        for parameter in whole.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    x, marks, lengths = drawn(B, n, 20, dtype=torch.float32), marked(n, [0, 7], [3, 20, 31]), [n, n - 13]
    real = torch.arange(n) < torch.tensor(lengths)[:, None]
    told = torch.where(real, 0.0, -10000.0).masked_fill(marks, 10000.0)
    given = {"is_index_masked": ~real, "is_index_global_attn": marks, "is_global_attn": True}
    expected = whole.self(x, attention_mask=told, **given)[0]
    mask = regard.padding(lengths)
    assert_close(LongformerAttention.from_transformers(whole.self)(x, global_at=marks, mask=mask)[real], expected[real])
    ours = LongformerAttention.from_transformers(whole)(x, global_at=marks, mask=mask)
    assert_close(ours[real], whole.output.dense(expected)[real], rtol=1e-5, atol=1e-5)


def test_without_global_tokens_it_is_multihead_under_a_window():
    layer, x = made(before=3, after=1), drawn(B, T, M)
    plain = regard.MultiHead(M, H).double()
    plain.load_state_dict({name: x for name, x in layer.state_dict().items() if "global" not in name})
    assert_close(layer(x, global_at=[]), plain(x, mask=regard.window(3, 1)))


def test_rotary_turns_both_kinds_of_rows():
    layer, x = made(positions=regard.Rotary(M // H)), drawn(B, T, M)
    marks = marked(T, [0], [5, 6])
    assert_close(
        layer(x, global_at=marks), layer(x, global_at=marks, places=torch.arange(T) + 100), rtol=1e-9, atol=1e-9
    )
    turned = layer.attend(x, global_at=marks).weights.dense()
    plain = made().attend(x, global_at=marks).weights.dense()
    assert not torch.allclose(turned[:, :, 5], plain[:, :, 5])


def test_one_map_has_both_kinds_of_rows_and_answers_as_any_other():
    layer, x, marks = made(), drawn(B, T, M), marked(T, [0, 9], [3])
    weights = layer.attend(x, global_at=marks).weights
    expected, _ = by_formula(layer, x, marks, torch.ones(B, T, dtype=torch.bool))
    assert weights.kind == "computed"
    assert_close(weights[1, 2].dense(), expected[1, 2])
    assert_close(weights[0, 1, 9], expected[0, 1, 9])
    assert_close(weights[0, :, 8:11, 2:6], expected[0, :, 8:11, 2:6])
    seen = weights.allowed[...]
    assert torch.equal(seen, expected > 0)
    scores = weights.scores[...].masked_fill(~seen, -torch.inf)
    assert_close(scores.softmax(-1), expected)
    values, keys = weights.top(2)
    assert_close(values, expected.topk(2).values)
    assert_close(expected.gather(-1, keys), values)
    entropy = torch.special.entr(expected).sum(-1)
    assert_close(weights.entropy(), entropy)


def test_a_listener_hears_the_one_map():
    layer, x = made(), drawn(B, T, M)
    with listen() as heard:
        layer(x, global_at=[4])
    ((module, attended),) = heard
    assert module is layer
    assert_close(attended.weights.dense().sum(-1), torch.ones(B, H, T, dtype=torch.float64))


@pytest.mark.parametrize("n", [T, LONG])
def test_a_watch_sees_two_calls_and_proves_both(n):
    layer, x = made(), drawn(B, n, M)
    with torch.no_grad():
        alone = layer(x, global_at=[0, 9])
        with regard.watch(layer) as trace:
            assert torch.equal(layer(x, global_at=[0, 9]), alone)
        whole = layer.attend(x, global_at=[0, 9]).weights.dense()
    near, far = trace.layers
    assert far.name == f"{near.name}#2"
    assert trace.verify(), trace.verify()
    assert not near.weights[..., [0, 9], :].any()
    assert not far.weights.allowed[..., 1:9, :].any()
    assert_close(near.weights.dense() + far.weights.dense(), whole)


def test_dropped_weights_can_be_shown():
    layer, x = made(dropout=0.4).train(), drawn(B, T, M)
    found = layer.attend(x, global_at=[2])
    used = found.weights.used()
    values = [project(x).unflatten(-1, (H, -1)).transpose(1, 2) for project in (layer.to_v, layer.to_global_v)]
    near, far = used.index_fill(2, torch.tensor([2]), 0.0), used[:, :, 2:3]
    expected = (near @ values[0]).index_copy(2, torch.tensor([2]), far @ values[1])
    assert (used == 0).sum() > (found.weights.dense() == 0).sum()
    assert_close(found.mix, expected)


def test_scores_too_large_for_an_exponent_reach_no_gradient_of_others():
    layer, x = made(), drawn(B, LONG, M) * 60
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(layer.attend(x, global_at=[0, 300]).mix.sum(), x)
    assert gradient.isfinite().all()


def test_bad_sizes_and_places_are_told_in_one_sentence():
    with pytest.raises(ShapeError, match="width 12 does not split into 5 equal heads"):
        LongformerAttention(12, 5, before=1)
    with pytest.raises(ValueError, match="before is -1"):
        LongformerAttention(12, 3, before=-1)
    with pytest.raises(TypeError, match="give a Rotary"):
        LongformerAttention(12, 3, before=1, positions=regard.ALiBi(3))
    with pytest.raises(MaskError, match="global token 23 was asked for, but there are 23 keys"):
        made()(drawn(B, T, M), global_at=[23])
    with pytest.raises(MaskError, match="batch and keys are"):
        made()(drawn(B, T, M), global_at=torch.ones(B, T + 1, dtype=torch.bool))


CUTS = [[7, 1, 1, 5, 1, 8], [6] + [1] * (T - 6), [T], [12, 11]]


@pytest.mark.parametrize("cut", CUTS, ids=str)
@pytest.mark.parametrize("cached", ["all", "window"])
@pytest.mark.parametrize("turned", [False, True])
def test_every_way_of_cutting_a_text_gives_the_same_numbers(cut, cached, turned):
    layer = made(after=0, positions=regard.Rotary(M // H) if turned else None)
    x, places = drawn(B, T, M), [0, 2]
    cache = regard.KeyValueCache() if cached == "all" else regard.KeyValueCache(window=4, keep_first=3)
    whole = layer(x, global_at=places, mask=regard.causal())
    parts = [layer(part, global_at=places, mask=regard.causal(), cache=cache) for part in x.split(cut, 1)]
    assert_close(torch.cat(parts, 1), whole, rtol=1e-10, atol=1e-10)
    marks, real = marked(T, places, places), torch.ones(B, T, dtype=torch.bool)
    if not turned:
        mix = by_formula(layer, x, marks, real, causal=True)[1]
        assert_close(layer.to_out(mix.transpose(1, 2).flatten(2)), whole)


def test_a_cache_that_cannot_serve_its_global_tokens_is_refused_with_advice():
    layer, x = made(after=0), drawn(B, T, M)
    windowed = regard.KeyValueCache(window=4, keep_first=1)
    with pytest.raises(CacheError, match="keep_first=3"):
        layer(x, global_at=[0, 2], cache=windowed)
    with pytest.raises(CacheError, match="window=4"):
        layer(x, cache=regard.KeyValueCache(window=3, keep_first=1))
    with pytest.raises(CacheError, match="count from the start"):
        layer(x, global_at=[-1], cache=windowed)
    with pytest.raises(CacheError, match="places that hold for all"):
        layer(x, global_at=torch.zeros(B, T, dtype=torch.bool), cache=windowed)
    cache = regard.KeyValueCache()
    layer(x[:, :5], global_at=[0], mask=regard.causal(), cache=cache)
    with pytest.raises(CacheError, match="in the first call"):
        layer(x[:, 5:], global_at=[0, 9], mask=regard.causal(), cache=cache)
    assert cache.seen == 5

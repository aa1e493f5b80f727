"""Gradient × attention, against autograd on explicit attention in float64."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.map import AttentionMap
from regard.attention.mask import rule
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.measure import gradient as walk
from regard.trace.measure.gradient import GradientMap, SideBySide, gradient_map, side_by_side
from regard.trace.measure.rollout import flow, rollout
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace

DTYPE = torch.float64


def attended(b=2, h=6, groups=3, q=5, k=7, mask=None, name="blocks.0", kind="self"):
    """A layer with its gradient, and A and ∂L/∂A by autograd through explicit attention."""
    x, y = torch.randn(b, h, q, 4, dtype=DTYPE), torch.randn(b, groups, k, 4, dtype=DTYPE)
    v = torch.randn(b, groups, k, 3, dtype=DTYPE)
    weights = regard.attend(x, y, v, mask=mask).weights
    scores = x @ y.repeat_interleave(h // groups, 1).mT / 2
    if mask is not None:
        scores = scores.masked_fill(~weights.allowed[...], -torch.inf)
    a = torch.softmax(scores, -1).nan_to_num(0.0).requires_grad_()
    mix = (a @ v.repeat_interleave(h // groups, 1)).requires_grad_()
    mix.retain_grad()
    (mix.sin() * torch.arange(1.0, 4)).sum().backward()
    return Layer(name, kind, weights, v=v, gradient=mix.grad), a.detach(), a.grad


MASKS = [None, regard.causal(), rule(lambda b, h, q, k: q != 3)]
NAMES = ["open", "causal", "blind row"]


@pytest.mark.parametrize("mask", MASKS, ids=NAMES)
def test_gradient_times_attention_equals_autograd(mask):
    layer, a, slope = attended(mask=mask)
    found = gradient_map(layer)
    assert found.shape == (2, 6, 5, 7)
    assert_close(found.dense(), a * slope)
    assert_close(found.slopes[...], slope)


@pytest.mark.parametrize(
    "item",
    [
        (1, 4, 2),
        (0, 5, 2, 6),
        (1, [5, 0, 3], slice(1, 4), [0, 6]),
        (slice(None), 3, slice(None), 1),
        (..., 2, slice(2, 5)),
        (slice(1, 2), slice(1, 5), [4, 0]),
        (1, torch.tensor([2, 2]), -1, -1),
    ],
    ids=["row", "cell", "tile", "column", "every head", "slices", "tensor"],
)
def test_any_part_is_the_part_of_the_whole(item):
    layer, a, slope = attended(mask=regard.causal())
    lists = tuple(torch.tensor(x) if isinstance(x, list) else x for x in item)
    whole = a * slope
    if sum(isinstance(x, torch.Tensor) for x in lists) > 1:  # ours picks rows and columns apart, as ix_ does
        whole = whole[1][lists[1]][:, lists[2]][..., lists[3]]
    else:
        whole = whole[lists]
    assert_close(gradient_map(layer)[item], whole)


def test_batch_and_head_give_a_smaller_map():
    layer, a, slope = attended()
    found = gradient_map(layer)
    one = found[1, 4]
    assert isinstance(one, GradientMap)
    assert repr(one) == "GradientMap (q 5, k 7)"
    assert_close(one.dense(), (a * slope)[1, 4])
    assert_close(found[:, [1, 5]][0].rows(2), (a * slope)[0, [1, 5], 2])
    assert_close(found[0, 2:5].received(), (a * slope)[0, 2:5].sum(-2))
    assert found[...].shape == found.shape


@pytest.mark.parametrize("mask", MASKS, ids=NAMES)
@pytest.mark.parametrize("budget", [1, 40, 1 << 19])
@pytest.mark.parametrize("positive", [False, True])
def test_sums_by_key_and_by_query_are_taken_block_by_block(mask, budget, positive, monkeypatch):
    plain = walk.walk_blocks
    monkeypatch.setattr(walk, "walk_blocks", lambda source: plain(source, budget))
    layer, a, slope = attended(mask=mask)
    whole = (a * slope).clamp_min(0) if positive else a * slope
    assert_close(gradient_map(layer).received(positive=positive), whole.sum(-2))
    assert_close(gradient_map(layer).sum_over_keys(positive=positive), whole.sum(-1))


def test_what_a_query_gives_is_its_gradient_times_its_mix():
    layer, a, _ = attended()
    mix = a @ layer.v.repeat_interleave(2, 1)
    assert_close(gradient_map(layer).sum_over_keys(), (mix * layer.gradient).sum(-1))


def test_half_precision_is_summed_in_single():
    layer, a, slope = attended()
    half = Layer("half", "self", layer.weights, v=layer.v.bfloat16(), gradient=layer.gradient.bfloat16())
    assert gradient_map(half).dense().dtype == torch.float64
    stored = AttentionMap.stored(a.float())
    found = gradient_map(Layer("half", "self", stored, v=layer.v.half(), gradient=layer.gradient.half())).dense()
    assert found.dtype == torch.float32
    assert_close(found.double(), a * slope, atol=0.02, rtol=0.02)


class Grouped(torch.nn.Module):
    """Attention with fewer key heads than query heads; explicit where `a` is to be differentiated."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Linear(12, size, dtype=DTYPE) for size in (12, 6, 6))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (-1, 3)).transpose(1, 2) for f in (self.q, self.k, self.v))
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def test_a_watched_model_gives_the_gradient_that_autograd_gives():
    from regard.trace.watch import watch

    model, x = Grouped(), torch.randn(2, 5, 12, dtype=DTYPE)
    with watch(model, gradients=True) as trace:
        mix = model(x)
        (mix.sin() * torch.arange(1.0, 4)).sum().backward()
    q, k, v = (f(x).unflatten(-1, (-1, 3)).transpose(1, 2).detach() for f in (model.q, model.k, model.v))
    hidden = torch.ones(5, 5).triu(1).bool()
    scores = q @ k.repeat_interleave(2, 1).mT / 3**0.5
    a = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1).requires_grad_()
    ((a @ v.repeat_interleave(2, 1)).sin() * torch.arange(1.0, 4)).sum().backward()
    assert_close(gradient_map(trace.layers[0]).dense(), (a * a.grad).detach())


def test_what_is_missing_is_named():
    layer, _, _ = attended()
    with pytest.raises(TraceError, match=r"blocks.0 has no gradient: watch with gradients=True"):
        gradient_map(Layer("blocks.0", "self", layer.weights, v=layer.v))
    with pytest.raises(TraceError, match=r"blocks.0 kept no values"):
        gradient_map(Layer("blocks.0", "self", layer.weights, gradient=layer.gradient))
    with pytest.raises(TraceError, match=r"the gradient has shape \(2, 6, 4, 3\)"):
        GradientMap(layer.weights, layer.gradient[:, :, :4], layer.v)


def traced():
    made = [attended(q=7, mask=regard.causal(), name=f"blocks.{i}") for i in range(3)]
    for layer, _, _ in made:
        layer.queries = layer.keys = (Tokens(tuple("abcdefg")),) * 2
    return Trace([Run([layer for layer, _, _ in made])]), made


def test_three_answers_stand_side_by_side():
    trace, made = traced()
    found = side_by_side(trace, 5, layer="blocks.1", batch=1)
    _, a, slope = made[1]
    assert isinstance(found, SideBySide)
    assert found.tokens == tuple("abcdefg")
    assert_close(found.attention, a[1, :, 5].mean(0))
    assert_close(found.gradient, (a * slope)[1, :, 5].mean(0))
    assert_close(found.rollout, rollout(Trace([Run(trace.layers[:2])]), 5, batch=1)[0])
    last = side_by_side(trace, -1, head=2)
    assert_close(last.attention, made[2][1][0, 2, 6])
    assert_close(last.gradient, (made[2][1] * made[2][2])[0, 2, 6])
    assert_close(last.rollout, rollout(trace, 6)[0])


def test_in_a_decoder_the_flow_to_the_source_is_not_among_the_tokens():
    made = {
        "encoder.layers.0.self": attended(q=4, k=4, name="encoder.layers.0.self"),
        "decoder.layers.0.self": attended(q=7, name="decoder.layers.0.self"),
        "decoder.layers.0.cross": attended(q=7, k=4, name="decoder.layers.0.cross", kind="cross"),
        "decoder.layers.1.self": attended(q=7, name="decoder.layers.1.self"),
    }
    trace = Trace([Run([layer for layer, _, _ in made.values()])])
    assert_close(side_by_side(trace, 3).rollout, flow(trace, 3).target[0])
    first = side_by_side(trace, 3, layer="decoder.layers.0.self").rollout
    assert_close(first, rollout(trace, 3, layers=[1])[0])
    assert_close(side_by_side(trace, 3, layer=0).rollout, rollout(trace, 3, layers=[0])[0])
    with pytest.raises(TraceError, match=r"columns of decoder.layers.0.cross are another sequence's"):
        side_by_side(trace, 3, layer="cross")


def test_questions_beyond_the_trace_are_refused():
    trace, _ = traced()
    with pytest.raises(TraceError, match=r"token 7 was asked for, but blocks.2 has 7"):
        side_by_side(trace, 7)
    with pytest.raises(TraceError, match=r"blocks.2 has 6 heads, but head 6"):
        side_by_side(trace, 0, head=6)
    with pytest.raises(TraceError, match="saw a batch of 2, but entry 3"):
        side_by_side(trace, 0, batch=3)
    with pytest.raises(TraceError, match="no self-attention to follow"):
        side_by_side(Trace(), 0)

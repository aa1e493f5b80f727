"""Rollout by vectors equals rollout by matrices, in float64."""

import math
import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.attention.map import AttentionMap, softmax_strips
from regard.attention.mask import rule
from regard.errors import TraceError
from regard.tokens import Tokens
from regard.trace.measure import rollout as walk
from regard.trace.measure.rollout import flow, rollout, spread
from regard.trace.measure.sampled_flow import draw_flow, sample_flow
from regard.trace.measure.stacks import in_decoder
from regard.trace.record.layer import Layer
from regard.trace.record.trace import Run, Trace

DTYPE = torch.float64
BLIND = rule(lambda b, h, q, k: (q != 2) & (k <= q))


def layer(name, q=7, k=7, *, kind="self", b=2, h=6, groups=3, mask=None, sink=False):
    x, y = torch.randn(b, h, q, 5, dtype=DTYPE), torch.randn(b, groups, k, 5, dtype=DTYPE)
    v = torch.randn(b, groups, k, 4, dtype=DTYPE)
    logits = torch.randn(h, dtype=DTYPE) if sink else None
    weights = regard.attend(2 * x, y, v, mask=mask, sink_logits=logits).weights
    return Layer(name, kind, weights, v=v)


def stack(mask=None, layers=3, **options):
    return Trace([Run([layer(f"blocks.{i}.attention", mask=mask, **options) for i in range(layers)])])


def matrix(one, entry, heads="mean", by="weights"):
    """The map of a layer as rollout takes it, (q, k), and which rows see nothing."""
    w = one.weights[entry].dense()
    h, q, k = w.shape
    rows = torch.zeros(h, q, k, dtype=DTYPE)
    blind = torch.zeros(h, q, dtype=DTYPE)
    for head in range(h):
        for i in range(q):
            row = w[head, i].clone()
            if by == "values":
                for j in range(k):
                    row[j] *= one.v[entry, head // (h // one.v.shape[1]), j].norm()
            if row.sum() == 0:
                blind[head, i] = 1.0
            else:
                rows[head, i] = row / row.sum()
    if heads == "max":
        most = rows.amax(0)
        total = most.sum(-1, keepdim=True)
        return torch.where(total == 0, most, most / total.clamp_min(1e-300)), (total == 0).double().squeeze(-1)
    chosen = list(range(h)) if heads == "mean" else list(heads)
    return rows[chosen].mean(0), blind[chosen].mean(0)


def dense(trace, entry, residual, heads="mean", by="weights"):
    """Every product of matrices from the top down: [… over inputs, …, identity], (layers + 1, n, n)."""
    whole = [torch.eye(7, dtype=DTYPE)]
    for one in reversed(trace.layers):
        w, blind = matrix(one, entry, heads, by)
        whole.append(whole[-1] @ (residual * torch.eye(7, dtype=DTYPE) + (1 - residual) * (w + torch.diag(blind))))
    return torch.stack(whole[::-1])


@pytest.mark.parametrize("mask", [None, regard.causal(), BLIND], ids=["open", "causal", "blind row"])
@pytest.mark.parametrize("heads", ["mean", "max", [4, 1, -1]], ids=["mean", "max", "some"])
@pytest.mark.parametrize("by", ["weights", "values"])
def test_rollout_equals_the_product_of_matrices(mask, heads, by, monkeypatch):
    monkeypatch.setattr(walk, "BUDGET", 10)
    trace = stack(mask)
    wanted = dense(trace, 1, 0.3, heads, by)
    for token in (0, 3, 6, -2):
        ours = rollout(trace, token, residual=0.3, heads=heads, by=by, batch=1)
        assert_close(ours, wanted[:, token])
        assert_close(ours.sum(-1), torch.ones(4, dtype=DTYPE))
        assert ours[-1].argmax() == token % 7


@pytest.mark.parametrize("heads", ["mean", "max", [0, 5]], ids=["mean", "max", "some"])
@pytest.mark.parametrize("by", ["weights", "values"])
def test_what_spreads_upwards_is_what_flows_downwards(heads, by):
    trace = stack(BLIND)
    up = torch.stack([spread(trace, token, heads=heads, by=by, residual=0.4) for token in range(7)])  # input, layer, n
    down = torch.stack([rollout(trace, token, heads=heads, by=by, residual=0.4)[0] for token in range(7)])  # top, input
    assert_close(up[:, -1], down.T)
    assert up[2, 0].tolist() == [0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("budget", [1, 20, 100])
def test_the_size_of_blocks_changes_nothing(budget, monkeypatch):
    trace = stack(regard.causal())
    whole = rollout(trace, 5), spread(trace, 1)
    plain = walk.walk_blocks
    monkeypatch.setattr(walk, "walk_blocks", lambda source: plain(source, budget))
    assert_close((rollout(trace, 5), spread(trace, 1)), whole)


def test_a_share_that_a_learned_sink_took_is_given_back():
    trace = stack(regard.causal(), sink=True)
    assert_close(rollout(trace, 6), dense(trace, 0, 0.5)[:, 6])


def test_the_residual_stream_alone_leaves_a_token_where_it_is_and_none_of_it_is_attention_alone():
    trace = stack(regard.causal())
    assert rollout(trace, 4, residual=1.0)[0].tolist() == [0, 0, 0, 0, 1, 0, 0]
    alone = [matrix(one, 0)[0] for one in trace.layers]
    assert_close(rollout(trace, 4, residual=0.0)[0], (alone[2] @ alone[1] @ alone[0])[4])


def test_on_causal_layers_the_flow_drifts_to_the_first_token():
    even = AttentionMap.stored(torch.ones(1, 1, 7, 7).tril() / torch.arange(1, 8)[:, None])
    shares = [
        float(rollout(Trace([Run([Layer(str(i), "self", even) for i in range(depth)])]), 6)[0, 0])
        for depth in (1, 4, 16)
    ]
    assert shares == sorted(shares)
    assert shares[-1] > 0.8


def pair(**names):
    """Encoder of 5 tokens, decoder of 7 that reads it twice."""
    return Trace(
        [
            Run(
                [
                    layer(names.get("first", "encoder.layers.0.self_attn"), 5, 5),
                    layer(names.get("second", "encoder.layers.1.self_attn"), 5, 5),
                    layer("decoder.layers.0.self_attn", mask=regard.causal()),
                    layer("decoder.layers.0.cross", 7, 5, kind="cross"),
                    layer("decoder.layers.1.self_attn", mask=regard.causal()),
                    layer("decoder.layers.1.cross", 7, 5, kind="cross"),
                ]
            )
        ]
    )


def test_what_a_pooling_layer_reads_is_an_encoder():
    layers = [
        layer("blocks.0.attention"),
        layer("blocks.1.attention"),
        layer("pooling", 1, 7, kind="cross", h=1, groups=1),
    ]
    assert in_decoder(layers) == [False, False, True]
    found = flow(Trace([Run(layers)]), 0, residual=0.3)
    first, second, pooled = (matrix(one, 0)[0] for one in layers)
    eye = torch.eye(7, dtype=DTYPE)
    assert_close(found.source[0], 0.7 * pooled[0] @ (0.3 * eye + 0.7 * second) @ (0.3 * eye + 0.7 * first))
    unnamed = [layer("0"), layer("1"), layer("2"), layer("3", 7, 5, kind="cross")]  # paths do not tell: as many rows
    assert in_decoder(unnamed) == [False, False, True, True]


@pytest.mark.parametrize("by", ["weights", "values"])
def test_a_decoder_token_flows_to_its_own_inputs_and_to_the_source(by):
    trace = pair()
    found = flow(trace, 4, residual=0.3, by=by, batch=1)
    e0, e1, d0, c0, d1, c1 = (matrix(one, 1, by=by)[0] for one in trace.layers)
    eye, small = torch.eye(7, dtype=DTYPE), torch.eye(5, dtype=DTYPE)
    now = eye[4]
    source = 0.7 * now @ c1
    now = 0.3 * now @ (0.3 * eye + 0.7 * d1)
    assert_close(found.target[4], now)
    assert_close(found.source[4], source)
    source = source + 0.7 * now @ c0
    now = 0.3 * now @ (0.3 * eye + 0.7 * d0)
    source = source @ (0.3 * small + 0.7 * e1) @ (0.3 * small + 0.7 * e0)
    assert_close(found.target[0], now)
    assert_close(found.source[0], source)
    assert_close(found.target.sum(-1) + found.source.sum(-1), torch.ones(7, dtype=DTYPE))
    assert found.layers == tuple(one.name for one in trace.layers)


def test_stacks_are_told_apart_by_what_comes_before_the_first_cross_where_names_do_not():
    trace = pair()
    wanted = flow(trace, 3)
    for number, one in enumerate(trace.layers):
        one.name = f"attention#{number}"
    assert_close(flow(trace, 3)[:2], wanted[:2])


def test_two_inputs_are_no_single_rollout_but_either_stack_is():
    trace = pair()
    with pytest.raises(TraceError, match=r"use flow\(trace, token\)"):
        rollout(trace, 3)
    with pytest.raises(TraceError, match="may spread through two stacks"):
        spread(trace, 3)
    assert rollout(trace, 3, layers="encoder").shape == (3, 5)
    assert spread(trace, 3, layers=[2, 4]).shape == (3, 7)


def test_layers_that_do_not_chain_are_refused_in_a_sentence():
    def refused(said, *layers, **options):
        with pytest.raises(TraceError, match=said):
            rollout(Trace([Run(list(layers))]), 0, **options)

    refused("has 3 queries and 7 keys, but 3 tokens flow", layer("a", 3, 7))
    refused("b has 5 queries and 5 keys, but 7 tokens flow", layer("a"), layer("b", 5, 5))
    refused("as windows of a picture do", layer("a", b=8), layer("b", b=2))
    shifted = layer("b")
    plain = layer("a")
    for one, names in ((plain, "abcdefg"), (shifted, "cdefgab")):
        one.queries = one.keys = (Tokens(tuple(names)),) * 2
    refused("the tokens of b are not those of the layers before it", plain, shifted)
    refused("the trace has no layers")
    refused("no layers that fit 'encoder'", layer("a"), layers="encoder")
    refused("layer 3 was asked for, but the trace has 1", layer("a"), layers=[3])
    refused("a batch of 2, but entry 2", layer("a"), batch=2)
    refused("residual is 1.5", layer("a"), residual=1.5)
    refused("by is 'norms'", layer("a"), by="norms")
    refused("heads is 'median'", layer("a"), heads="median")
    refused("a has 6 heads, but head 6", layer("a"), heads=[6])
    refused("a has 6 heads, but none", layer("a"), heads=[])
    without = layer("a")
    without.v = None
    refused("kept no values", without, by="values")
    with pytest.raises(TraceError, match="token 7 was asked for, but there are 7"):
        rollout(stack(), 7)


@pytest.mark.parametrize("by", ["weights", "values"])
def test_a_sampled_flow_is_exact_while_few_rows_flow_and_then_bounded(by, monkeypatch):
    monkeypatch.setattr(softmax_strips, "LEAST", 0)
    monkeypatch.setattr(softmax_strips, "KEYS", 3)
    trace = stack(BLIND, layers=4, sink=True, h=2, groups=1)
    asked = {"residual": 0.3, "by": by, "batch": 1}
    wanted = dense(trace, 1, 0.3, by=by)[:, 6]
    whole = sample_flow(trace, 6, draws=7, **asked)
    assert whole.exact
    assert_close(whole.flow.target, wanted)
    beyond, places = torch.zeros(5, dtype=DTYPE), torch.tensor([0, 3, 4])
    mean = torch.zeros(5, 7, dtype=DTYPE)
    for seed in range(60):
        some = sample_flow(trace, 6, draws=4, seed=seed, **asked)
        assert_close(some.flow.target.sum(-1), torch.ones(5, dtype=DTYPE))
        missed = (some.flow.target - wanted)[:, places].sum(-1).abs()
        beyond += missed > some.errors + 1e-12
        mean += some.flow.target / 60
    assert_close(some.errors.tolist(), [0.7 * (steps * math.log(40) / 8) ** 0.5 for steps in (3, 2, 1, 0, 0)])
    assert bool((beyond <= 60 * 0.05).all())
    assert float((mean - wanted).abs().max()) < 0.04  # unbiased
    assert torch.equal(some.flow.target, sample_flow(trace, 6, draws=4, seed=59, **asked).flow.target)


def test_draws_keep_the_sum_and_what_no_draw_can_miss():
    now = torch.tensor([0.0, 0.5, 0.0, 0.1, 0.05, 0.15, 0.0], dtype=DTYPE)
    drawn = draw_flow(now, 16, torch.Generator().manual_seed(0))
    assert_close(drawn.sum(), now.sum())
    assert bool((drawn[now == 0] == 0).all())
    assert bool(((drawn - now).abs() <= 2 * 0.8 / 16).all())  # each draw stands for one of 16 equal shares
    with pytest.raises(TraceError, match="draws=0 looks at nothing"):
        sample_flow(stack(), 3, draws=0)


MEMORY = """
import resource, torch, regard
from regard.trace.record.layer import Layer
from regard.trace.measure.rollout import rollout, spread
from regard.trace.record.trace import Run, Trace
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
n, layers = {n}, {layers}
def one(i, n):
    q, k, v = (torch.randn(1, h, n, 16) for h in (4, 2, 2))
    return Layer(f"blocks.{{i}}", "self", regard.attend(q, k, v[..., :16], mask=regard.causal()).weights, v=v)
small = Trace([Run([one(0, 64)])])
rollout(small, 63, by="values"), spread(small, 0)
trace = Trace([Run([one(i, n) for i in range(layers)])])
before = peak()
found = rollout(trace, n - 1, by="values")
assert abs(float(found[0].sum()) - 1) < 1e-4
spread(trace, 0)
print(peak() - before, n * n * 4 / 2**20)
"""


def grow(n, layers):
    """By how many MB the peak of a fresh process grows, and what one map of one head would take."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY.format(n=n, layers=layers)], capture_output=True, text=True, check=True
    )
    ours, one_map = map(float, done.stdout.split())
    print(f"n {n}, {layers} layers: {ours:.0f} MB more at the peak, one map is {one_map:.0f} MB")
    return ours, one_map


def test_rollout_holds_no_map():
    ours, one_map = grow(2500, 2)
    assert ours < 20 < one_map


@pytest.mark.slow
def test_rollout_over_8192_tokens_and_all_layers_takes_little_memory():
    ours, one_map = grow(8192, 12)
    assert ours < 40 < 256 <= one_map


def test_a_decoder_may_name_the_rows_of_its_cross_attention_after_what_they_write():
    from regard.tasks.text_translator import open_translator

    trace = open_translator("en-zh-grammar").translate(["The cat sat on the mat."])[0].trace()
    names = {layer.queries[0].shown for layer in trace.layers if not layer.name.startswith("encoder")}
    assert len(names) == 2  # what is read, what is written
    found = flow(trace, token=2)
    assert found.source is not None
    torch.testing.assert_close(found.source.sum(-1) + found.target.sum(-1), torch.ones(7, dtype=torch.float64))

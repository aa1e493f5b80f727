"""A logit taken apart: the parts add up to it, and each is what explicit arithmetic gives."""

import pytest
import torch
from torch.testing import assert_close

import regard
from regard.errors import TraceError
from tests.trace.residual.models import BLOCKS, HEADS, LAYERS, MODELS, OUT, B, N, build, draw_ids, hear, logits_of

# Llama's norm computes in float32 whatever the model's type.
TOLERANCE = {name: {"rel": 1e-5, "abs": 1e-6} if name == "llama" else {"rel": 1e-9, "abs": 1e-9} for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_the_parts_add_up_to_the_exact_logit_of_any_token_and_position(name):
    model, ids = build(name), draw_ids()
    plain = logits_of(model(ids))
    with regard.watch(model, residual=True) as trace:
        logits = logits_of(model(ids))
    assert torch.equal(logits, plain)
    for token, position, batch in ((4, -1, 0), (29, 2, 1), (None, N - 2, 1)):
        found = trace.attribution(token, position=position, batch=batch)
        wanted = plain[batch, position].max() if token is None else plain[batch, position, token]
        assert found.logit == pytest.approx(float(wanted), abs=1e-12)
        assert found.total == pytest.approx(float(wanted), **TOLERANCE[name])
        assert sum(row["logit"] for row in found.rows) == pytest.approx(found.total)
        heads = {(row["part"], row["head"]) for row in found.rows if row["kind"] == "head"}
        assert len(heads) == LAYERS * HEADS
        kinds = {row["part"]: row["kind"] for row in found.rows if row["head"] is None}
        assert set(kinds.values()) == {"mlp", "embedding", "bias"} - ({"bias"} if "biases" not in kinds else set())
        assert sum(kind == "mlp" for kind in kinds.values()) == LAYERS
    two = [trace.attribution(token, position=3).total for token in (6, 8)]
    assert trace.attribution(6, position=3, against=8).total == pytest.approx(two[0] - two[1], **TOLERANCE[name])


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@torch.no_grad()
def test_a_head_adds_its_values_through_the_projection_and_the_last_norm_whose_scale_is_held(name):
    model, ids = build(name), draw_ids()
    norm, head = (model.transformer.ln_f, model.lm_head) if name == "gpt2" else (model.model.norm, model.lm_head)
    out = model.get_submodule(f"{BLOCKS[name]}.1.{OUT[name]}")
    with regard.watch(model, residual=True) as trace, hear(out) as mixed, hear(norm) as normed:
        model(ids)
    token, position, batch, chosen = 9, 4, 1, 2
    mix = torch.zeros_like(mixed[0][0])
    size = mix.shape[-1] // HEADS
    mine = slice(chosen * size, (chosen + 1) * size)
    mix[..., mine] = mixed[0][0][..., mine]
    weight = out.weight if name == "gpt2" else out.weight.T  # (in, out)
    added = (mix @ weight)[batch, position]
    x = normed[0][0][batch, position]
    if name == "gpt2":
        scaled = (added - added.mean()) / (x.var(correction=0) + norm.eps).sqrt() * norm.weight
    else:
        scaled = added / (x.square().mean() + norm.variance_epsilon).sqrt() * norm.weight
    wanted = float(scaled @ head.weight[token])
    found = trace.attribution(token, position=position, batch=batch)
    (mine_row,) = [row for row in found.rows if row["head"] == chosen and ".1." in f"{row['part']}."]
    assert mine_row["logit"] == pytest.approx(wanted, **TOLERANCE[name])
    assert any("norm" in one or "ln_f" in one for one in found.held)


@pytest.mark.parametrize("name", ["gpt2", "llama", "by hand"])
@torch.no_grad()
def test_contributions_of_heads_and_the_bias_are_what_the_layer_adds(name):
    model, ids = build(name), draw_ids()
    out = model.get_submodule(f"{BLOCKS[name]}.2.{OUT[name]}")
    with regard.watch(model, residual=True) as trace, hear(out) as heard:
        model(ids)
    layer = trace.layers[2]
    bias = 0.0 if out.bias is None else out.bias
    for batch in range(B):
        parts = layer.contribution(batch=batch)
        assert_close(parts.sum(0) + bias, heard[0][1][batch])
        assert_close(layer.contribution(1, [-1, 2], batch=batch), parts[1, [-1, 2]])


@torch.no_grad()
def test_the_stream_and_the_mlps_are_what_their_modules_gave():
    model, ids = build("llama"), draw_ids()
    block, mlp = model.model.layers[1], model.model.layers[2].mlp
    with regard.watch(model, residual=True) as trace, hear(block) as blocks, hear(mlp) as mlps:
        model(ids)
    assert torch.equal(trace.residual("layers.1"), blocks[0][1])
    assert torch.equal(trace.residual("layers.2.mlp", [0, -1], batch=1), mlps[0][1][1, [0, -1]])
    with regard.watch(model, residual={"layers.0": [-1]}) as trace:
        model(ids)
    assert trace.residual("layers.0").shape[-2] == 1
    with pytest.raises(TraceError, match="only"):
        trace.residual("layers.0", 0)
    with pytest.raises(TraceError, match="residual=True"):
        trace.attribution(3)


def test_gradients_are_bit_for_bit_the_same_and_nothing_is_left():
    model, ids = build("gpt2"), draw_ids()

    def gradients():
        model.zero_grad()
        logits_of(model(ids)).square().sum().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    plain = gradients()
    with regard.watch(model, residual=True) as trace:
        assert all(map(torch.equal, plain, gradients()))
    assert all("forward" not in module.__dict__ for module in model.modules())
    assert not any(module._forward_hooks for module in model.modules())
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    assert all(map(torch.equal, plain, gradients()))
    assert abs(trace.attribution(3).error) < 1e-9


@torch.no_grad()
def test_a_logit_that_is_no_sum_is_refused():
    model, ids = build("by hand"), draw_ids()
    model.head = torch.nn.Sequential(model.head, torch.nn.Tanh())
    with regard.watch(model, residual=True) as trace:
        model(ids)
    with pytest.raises(TraceError, match="neither linear nor a norm"):
        trace.attribution(3)

"""Each edit against the same arithmetic written out."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from regard.trace.change.edit import edit
from regard.trace.watch import watch
from tests.trace.change.helpers import (
    HEADS,
    LENGTH,
    WAYS,
    WIDTH,
    by_formula,
    causal,
    hidden,
    inputs,
    layer_of,
    put,
    under,
)
from tests.trace.models import Attention, expected, seeded


@pytest.mark.parametrize("way", WAYS)
def test_an_edit_of_nothing_leaves_outputs_and_gradients_bit_equal(way):
    layer, x = layer_of(way).float(), inputs().float().requires_grad_()
    plain = layer(x)
    (wanted,) = torch.autograd.grad(plain.square().sum(), x)
    with edit(layer):
        out = layer(x)
    assert torch.equal(out, plain)
    assert torch.equal(torch.autograd.grad(out.square().sum(), x)[0], wanted)


@pytest.mark.parametrize("way", WAYS)
def test_muting_a_head_is_zeroing_its_columns_of_the_output_projection(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.mute("Attention", heads=[1])
        found = layer(x)
    assert_close(found, by_formula(layer, x, mix=put((slice(None), 1), 0.0)))
    with torch.no_grad():
        layer.out.weight[:, WIDTH // HEADS : 2 * WIDTH // HEADS] = 0
    assert_close(found, layer(x))


@pytest.mark.parametrize("way", WAYS)
def test_scaling_a_head_scales_what_it_gives(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.scale(None, [0, 2], 2.5)
        found = layer(x)
    assert_close(found, by_formula(layer, x, mix=lambda m: m * torch.tensor([2.5, 1.0, 2.5])[:, None, None]))


@pytest.mark.parametrize("way", WAYS)
def test_muting_to_the_mean_gives_every_position_the_mean_of_the_call(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.mute(heads=2, how="mean")
        found = layer(x)
    assert_close(
        found, by_formula(layer, x, mix=lambda m: torch.cat([m[:, :2], m[:, 2:].mean(2, True).expand_as(m[:, 2:])], 1))
    )


@pytest.mark.parametrize("way", WAYS)
def test_resampling_takes_a_head_from_the_next_entry_of_the_batch(way):
    layer, x = layer_of(way), inputs(batch=4)
    with torch.no_grad(), edit(layer) as e:
        e.mute(heads=0, how="resample")
        found = layer(x)
    assert_close(found, by_formula(layer, x, mix=lambda m: torch.cat([m[[3, 0, 1, 2], :1], m[:, 1:]], 1)))


@pytest.mark.parametrize("way", WAYS)
def test_blocking_an_edge_is_hiding_that_cell_by_a_mask(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.block(query=3, key=[0, 4], heads=slice(1, None))
        e.block(query=[1, -1], key=2)
        found = layer(x)
    mask = hidden((1, 2), (4, 2)) & hidden((3, 0), (3, 4), heads=slice(1, None))
    assert_close(found, layer(x, mask=mask))
    assert_close(found, by_formula(layer, x, mask))


@pytest.mark.parametrize("way", WAYS)
def test_zeroing_an_edge_leaves_the_rest_of_the_row_as_it_is(way):
    layer, x = layer_of(way), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.zero(query=slice(2, None), key=1)
        found = layer(x)
    assert_close(found, by_formula(layer, x, weights=put((..., slice(2, None), 1), 0.0)))


@pytest.mark.parametrize("way", WAYS)
def test_forcing_an_edge_shares_what_is_left_in_the_old_proportions(way):
    layer, x = layer_of(way), inputs()

    def forced(w: Tensor) -> Tensor:
        rest = w[:, 1, 3].clone()
        rest[:, [0, 2]] = 0
        w = w.clone()
        w[:, 1, 3] = 0.4 * rest / rest.sum(-1, keepdim=True)
        w[:, 1, 3, [0, 2]] = 0.3
        return w

    with torch.no_grad(), edit(layer) as e:
        e.force(query=3, key=[0, 2], weight=0.6, heads=1)
        found = layer(x)
    assert_close(found, by_formula(layer, x, weights=forced))


@pytest.mark.parametrize("way", WAYS)
def test_replacing_by_uniform_is_even_over_what_the_mask_lets_see(way):
    layer, x, mask = layer_of(way), inputs(), causal()
    with torch.no_grad(), edit(layer) as e:
        e.replace(None, [0, 1])
        found = layer(x, mask=mask)
    even = mask.double() / mask.sum(-1, keepdim=True)
    assert_close(found, by_formula(layer, x, mask, weights=put((slice(None), slice(0, 2)), even)))


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_replacing_by_a_tensor_uses_it_as_it_is(axes):
    layer, x = layer_of(), inputs()
    given = torch.rand((2, HEADS, LENGTH, LENGTH)[4 - axes :], dtype=torch.float64)
    with torch.no_grad(), edit(layer) as e:
        e.replace("Attention", 2, by=given)
        found = layer(x)
    whole = given.expand(2, HEADS, LENGTH, LENGTH)
    assert_close(found, by_formula(layer, x, weights=put((slice(None), 2), whole[:, 2])))


def test_replacing_by_another_traces_layer_takes_each_head_from_its_own():
    layer, x, other = layer_of(), inputs(), inputs(length=2 * LENGTH)[:, LENGTH:]
    with watch(layer) as trace:
        layer(other)
    with torch.no_grad(), edit(layer) as e:
        e.replace(heads=[0, 2], by=trace.layers[0])
        found = layer(x)
        e.clear()
        e.replace(heads=[1], by=trace.layers[0].weights[0, 2])
        one = layer(x)
    wanted = expected(layer, other)
    assert_close(found, by_formula(layer, x, weights=put((slice(None), [0, 2]), wanted[:, [0, 2]])))
    assert_close(one, by_formula(layer, x, weights=put((slice(None), 1), wanted[0, 2])))


@pytest.mark.parametrize("kind", ["inputs", "trace", "layer"])
def test_a_reference_gives_its_mean_or_its_own_output(kind):
    layer, x, other = layer_of(), inputs(), inputs(batch=4)[2:]
    given = other
    if kind != "inputs":
        with watch(layer) as trace:
            layer(other)
        given = trace if kind == "trace" else trace.layers[0]
    mixes: list[Tensor] = []
    by_formula(layer, other, mix=lambda m: mixes.append(m) or m)
    with torch.no_grad(), edit(layer) as e:
        e.mute(heads=1, how="mean", reference=given)
        usual = layer(x)
        e.clear()
        e.mute(heads=1, how="resample", reference=given)
        foreign = layer(x)
    assert_close(usual, by_formula(layer, x, mix=put((slice(None), 1), mixes[0][:, 1].mean((0, 1)))))
    assert_close(foreign, by_formula(layer, x, mix=put((slice(None), 1), mixes[0][:, 1])))


def test_a_query_whose_last_key_is_blocked_gets_nothing():
    layer, x = layer_of(), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.block(query=0, key=0)
        found = layer(x, mask=causal())
    assert_close(found, by_formula(layer, x, causal(), weights=put((..., 0, slice(None)), 0.0)))


def test_what_is_left_after_a_block_is_exact_however_little_it_was():
    class Sharp(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, scale=1.0)

    k = torch.tensor([[[[400.0], [0.0], [1.0]]]])
    with edit(Sharp()) as e:
        e.block(query=0, key=0)
        found = Sharp.forward(e._model, torch.ones(1, 1, 1, 1), k, torch.eye(3)[None, None])
    assert_close(found[0, 0, 0], torch.tensor([0.0, 1.0, torch.e]) / (1 + torch.e))


def test_a_forced_edge_is_forced_even_where_the_mask_hid_the_key():
    layer, x = layer_of(), inputs()

    def forced(w: Tensor) -> Tensor:
        w = w.clone()
        w[..., 1, :] *= 0.75
        w[..., 1, 4] = 0.25
        return w

    with torch.no_grad(), edit(layer) as e:
        e.force(query=1, key=4, weight=0.25)
        found = layer(x, mask=causal())
    assert_close(found, by_formula(layer, x, causal(), weights=forced))


def test_a_forced_edge_without_any_other_key_keeps_its_weight():
    layer, x = layer_of(), inputs()
    with torch.no_grad(), edit(layer) as e:
        e.force(query=0, key=0, weight=0.25)
        found = layer(x, mask=causal())
    assert_close(found, by_formula(layer, x, causal(), weights=put((..., 0, 0), 0.25)))


def test_a_mean_is_over_every_run_of_a_list():
    layer, x, others = layer_of(), inputs(), [inputs(batch=3)[2:], inputs(length=2)]
    mixes: list[Tensor] = []
    for other in others:
        by_formula(layer, other, mix=lambda m: mixes.append(m[:, 1].flatten(0, 1)) or m)
    found = under(layer, lambda e: e.mute(heads=1, how="mean", reference=others), x)
    assert_close(found, by_formula(layer, x, mix=put((slice(None), 1), torch.cat(mixes).mean(0))))


@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_edits_reach_the_right_head_of_a_group(heads):
    layer = seeded(Attention(WIDTH, 6, kv_heads=heads)).double()
    x = inputs()
    mask = torch.ones(1, 6, LENGTH, LENGTH, dtype=torch.bool)
    mask[:, 4, 2, 1] = False
    found = under(layer, lambda e: [e.block(query=2, key=1, heads=4), e.zero(query=0, key=3, heads=3)], x)
    assert_close(found, by_formula(layer, x, mask, weights=put((slice(None), 3, 0, 3), 0.0)))


def test_many_rows_are_computed_in_blocks_of_few(monkeypatch):
    layer, x = layer_of(), inputs()
    monkeypatch.setattr("regard.trace.change.call_change.BUDGET", 1)
    monkeypatch.setattr("regard.trace.change.call_change.FUSED", 2 * HEADS * LENGTH * 2)
    found = under(layer, lambda e: e.zero(key=1), x)
    assert_close(found, by_formula(layer, x, weights=put((..., 1), 0.0)))
    found = under(layer, lambda e: e.block(key=1), x, mask=causal())
    hide = causal().clone()
    hide[:, 1] = False
    assert_close(found, by_formula(layer, x, hide))


def test_a_product_that_gives_its_axes_in_another_order_is_edited_in_that_order():
    class Turned(Attention):
        def forward(self, x: Tensor) -> Tensor:
            q = self.q(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            k, v = self.kv(x).unflatten(-1, (2, self.kv_heads, -1)).permute(2, 0, 3, 1, 4)
            return self.out(torch.einsum("bhqk,bhke->bqhe", self.weights(q, k, None), v).flatten(2))

    layer, x = seeded(Turned(WIDTH, HEADS)).double(), inputs(batch=HEADS, length=HEADS)  # alike, to be mistaken
    found = under(layer, lambda e: [e.scale(None, 1, 3.0), e.zero(query=2, key=0, heads=0)], x)
    head = torch.tensor([1.0, 3.0, 1.0])[:, None, None]
    assert_close(found, by_formula(layer, x, weights=put((slice(None), 0, 2, 0), 0.0), mix=lambda m: m * head))

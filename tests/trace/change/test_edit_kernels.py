"""Edits of torch's own encoder, of flex attention, and of this package's own layers."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.testing import assert_close

import regard
from regard.trace.change.edit import edit
from regard.trace.watch import watch

HEADS, LAYERS, LENGTH = 4, 2, 7

# torch's own encoder


def encoder(norm_first: bool = False, **how: Any) -> nn.TransformerEncoder:
    torch.manual_seed(4)
    layer = nn.TransformerEncoderLayer(24, HEADS, 20, dropout=0.0, batch_first=True, norm_first=norm_first)
    return nn.TransformerEncoder(layer, LAYERS, **how).double()


def x_of(batch: int = 2, length: int = LENGTH) -> Tensor:
    return torch.randn(batch, length, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_the_encoders_fast_path_is_edited_like_the_slow_one(norm_first, padded):
    model, x = encoder(norm_first, enable_nested_tensor=not norm_first), x_of()
    padding = torch.tensor([[False] * LENGTH, [False] * 4 + [True] * 3]) if padded else None
    found = []
    for training in (False, True):
        model.train(training)
        with torch.no_grad(), edit(model) as e:
            e.block(query=2, key=[0, 1], path="layers.0")
            e.mute("layers.1", heads=[2])
            e.force(query=1, key=3, weight=0.5, path="layers.1")
            found.append(model(x, src_key_padding_mask=padding))
    keep = slice(None) if padding is None else ~padding
    assert_close(found[0][keep], found[1][keep])
    model.train()
    plain = model(x, src_key_padding_mask=padding)
    assert (plain[keep] - found[0][keep]).abs().max() > 1e-2


def test_the_fast_path_stays_bit_equal_under_an_edit_of_nothing_or_of_another_layer():
    model, x = encoder().eval(), x_of()
    with torch.no_grad():
        plain, after_first = model(x), model.layers[0](x)
        with edit(model):
            assert torch.equal(model(x), plain)
        with edit(model) as e:
            e.mute("layers.1")
            assert torch.equal(model.layers[0](x), after_first)
            model(x)


def test_multihead_attention_of_torch_is_edited_with_and_without_its_weights():
    torch.manual_seed(4)
    layer, x = nn.MultiheadAttention(24, HEADS, batch_first=True).double(), x_of()
    found = []
    with torch.no_grad():
        for training, weights in ((False, False), (True, False), (True, True)):
            layer.train(training)
            with edit(layer) as e:
                e.mute(heads=2)
                found.append(layer(x, x, x, need_weights=weights)[0])
        layer.out_proj.weight[:, 12:18] = 0
        wanted = layer(x, x, x)[0]
    for one in found:
        assert_close(one, wanted)


# flex


class Flexible(nn.Module):
    def __init__(self, mask: Any = None, score: Any = None) -> None:
        super().__init__()
        self.mask, self.score = mask, score

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flex_attention(q, k, v, score_mod=self.score, block_mask=self.mask)


@pytest.mark.parametrize("kind", ["mask", "bias", "cap"])
def test_flex_attention_is_edited(kind):
    q, k, v = (torch.randn(2, HEADS, n, d) for n, d in ((8, 16), (8, 16), (8, 16)))
    scores = q.double() @ k.double().mT / 4
    if kind == "mask":
        model = Flexible(create_block_mask(lambda b, h, i, j: i >= j, None, None, 8, 8, device="cpu"))
        scores = scores.masked_fill(~torch.ones(8, 8, dtype=torch.bool).tril(), -torch.inf)
    elif kind == "bias":
        model = Flexible(score=lambda s, b, h, i, j: s + 0.1 * (i - j))
        scores = scores + 0.1 * (torch.arange(8)[:, None] - torch.arange(8))
    else:
        model = Flexible(score=lambda s, b, h, i, j: 2 * torch.tanh(s / 2))
        scores = 2 * torch.tanh(scores / 2)
    with torch.no_grad(), edit(model) as e:
        e.block(query=5, key=2, heads=1)
        e.mute(heads=3)
        found = model(q, k, v)
    scores[:, 1, 5, 2] = -torch.inf
    wanted = scores.softmax(-1) @ v.double()
    wanted[:, 3] = 0
    assert_close(found, wanted.float(), atol=1e-5, rtol=1e-4)


# This package's own


@pytest.mark.parametrize("batch", [True, False])
def test_our_own_layer_is_edited_with_grouped_heads_positions_and_sinks(batch):
    torch.manual_seed(4)
    layer = regard.MultiHead(24, 4, kv_heads=2, positions=regard.Rotary(6), sinks=True).double()
    x = x_of() if batch else x_of()[0]
    with torch.no_grad(), edit(layer) as e, watch(layer) as trace:
        e.block(query=5, key=[0, 3], heads=[1, 2])
        e.mute(heads=0)
        found = layer(x, mask=regard.causal())
        told = layer.attend(x, mask=regard.causal()).weights
    hide = torch.ones(4, LENGTH, LENGTH, dtype=torch.bool)
    hide[1:3, 5, [0, 3]] = False
    mask = regard.causal() & regard.allowed(hide[None] if batch else hide)
    with torch.no_grad():
        weights = layer.attend(x, mask=mask).weights
        layer.to_out.weight[:, :6] = 0
        wanted = layer(x, mask=mask)
    assert_close(found, wanted)
    assert_close(told.dense(), weights.dense())
    assert_close(trace.runs[0].layers[0].weights.dense().reshape(told.shape), weights.dense())


@pytest.mark.parametrize(
    "weigh", [regard.sparsemax, regard.sigmoid, regard.softmax], ids=["sparsemax", "sigmoid", "softmax"]
)
def test_a_block_comes_before_whatever_makes_the_weights(weigh):
    class Weighing(nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Any = None) -> Tensor:
            return regard.attend(q, k, v, weigh=weigh, mask=mask).mix

    q, k, v = (torch.randn(2, 3, n, 4, dtype=torch.float64) for n in (5, 6, 6))
    model = Weighing()
    with edit(model) as e, watch(model) as trace:
        e.block(query=1, key=[2, 3])
        e.zero(query=1, key=4)
        found = model(q, k, v)
    hide = torch.ones(1, 1, 5, 6, dtype=torch.bool)
    hide[..., 1, [2, 3]] = False
    weights = regard.attend(q, k, v, weigh=weigh, mask=hide).weights.dense().clone()
    weights[..., 1, 4] = 0
    assert_close(found, weights @ v)
    assert_close(trace.layers[0].weights.dense(), weights)


def test_our_own_cache_counts_positions_from_the_first_token():
    torch.manual_seed(4)
    layer, x = regard.MultiHead(24, 4).double(), x_of()
    cache = layer.cache() if hasattr(layer, "cache") else regard.KeyValueCache()
    with torch.no_grad(), edit(layer) as e:
        e.block(query=5, key=1)
        whole = layer(x, mask=regard.causal())
        steps = [layer(x[:, i : i + 1], mask=regard.causal(), cache=cache) for i in range(LENGTH)]
    assert_close(torch.cat(steps, 1), whole)

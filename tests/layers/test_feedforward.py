"""FeedForward and Residual against their formulas."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.layers import FeedForward, Residual


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def bend(name, x):
    if name == "relu":
        return x.clamp(min=0)
    if name == "gelu":
        return x * (1 + torch.erf(x / math.sqrt(2))) / 2
    if name == "gelu_tanh":
        return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    return x / (1 + torch.exp(-x))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_tanh", "swiglu"])
def test_feed_forward_is_its_formula_at_every_position(activation, bias):
    layer, x = FeedForward(5, 7, activation=activation, bias=bias).double(), draw(2, 3, 4, 5)
    parameters = dict(layer.named_parameters())
    assert ("to_out.bias" in parameters) == bias

    def linear(name, y):
        return y @ parameters[f"{name}.weight"].T + (parameters[f"{name}.bias"] if bias else 0)

    bent = bend(activation, linear("to_gate" if activation == "swiglu" else "to_hidden", x))
    hidden = bent * linear("to_hidden", x) if activation == "swiglu" else bent
    assert_close(layer(x), linear("to_out", hidden))
    assert_close(layer(x[1, 2]), layer(x)[1, 2])


def test_feed_forward_drops_hidden_channels_in_training_only():
    layer, x = FeedForward(5, 7, dropout=1.0).double(), draw(3, 5)
    assert_close(layer(x), layer.to_out.bias.expand(3, 5))
    assert not torch.allclose(layer.eval()(x), layer.to_out.bias.expand(3, 5))


def norm_by_hand(name, x, weight, bias):
    if name == "layer":
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt() * weight + bias
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_residual_is_its_formula(order, norm):
    residual, x, w = Residual(5, order, norm).double(), draw(2, 3, 5), draw(5, 5)
    for p in residual.parameters():
        nn.init.normal_(p)

    def normed(y):
        return norm_by_hand(norm, y, residual.norm.weight, getattr(residual.norm, "bias", None))

    wanted = x + normed(x) @ w if order == "pre" else normed(x + x @ w)
    assert_close(residual(x, lambda y: y @ w), wanted)


def test_residual_drops_the_sublayer_and_keeps_the_input():
    x = draw(3, 5)
    assert torch.equal(Residual(5, "pre", dropout=1.0).double()(x, lambda y: y + 1), x)
    post = Residual(5, "post", dropout=1.0).double()
    assert_close(post(x, lambda y: y + 1), nn.functional.layer_norm(x, (5,)))
    assert not torch.allclose(post.eval()(x, torch.exp), post.norm(x))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: FeedForward(4, 8, activation="tanh"),
            "activation is 'tanh'; choose one of 'relu', 'gelu', 'gelu_tanh', ",
        ),
        (lambda: Residual(4, order="both"), "order is 'both'; choose one of 'pre', 'post'"),
        (lambda: Residual(4, norm="batch"), "norm is 'batch'; choose one of 'layer', 'rms'"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(build, words):
    with pytest.raises(ValueError, match=words):
        build()

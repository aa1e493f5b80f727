"""Dropout against what chance promises, and against torch where it is torch's."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.layers.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_a_share_is_dropped_and_the_rest_keeps_the_mean(p):
    n = 400_003
    found = Dropout(p)(torch.ones(n, dtype=torch.float64))
    assert found.unique().tolist() == [0.0, pytest.approx(1 / (1 - p), rel=1e-4)]
    spread = math.sqrt(p * (1 - p) / n)
    assert abs((found == 0).double().mean().item() - p) < 5 * spread + 1e-5
    centred = (found == 0).double() - p
    for step in (1, 2, 3, 4, 5, 64):  # four neighbours share a draw, and know nothing of each other
        together = (centred[step:] * centred[:-step]).mean().item() / (p * (1 - p))
        assert abs(together) < 5 / math.sqrt(n), step


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_gradients_pass_where_numbers_passed(dtype):
    x = torch.randn(3, 5, 7, dtype=dtype, requires_grad=True)
    found = Dropout(0.4)(x)
    found.sum().backward()
    assert (found.dtype, found.shape) == (dtype, x.shape)
    assert_close(found, x * x.grad)
    assert (x.grad == 0).any()
    assert (x.grad != 0).any()


def test_a_seed_decides_and_evaluation_drops_nothing():
    layer, x = Dropout(0.3), torch.randn(11, 13)
    torch.manual_seed(3)
    first = layer(x)
    assert not torch.equal(first, layer(x))
    torch.manual_seed(3)
    assert torch.equal(first, layer(x))
    assert layer.eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert isinstance(layer, nn.Dropout)


def test_all_nothing_and_views_are_dropped_too():
    assert not Dropout(1.0)(torch.ones(5)).any()
    assert Dropout(0.5)(torch.ones(0, 3)).shape == (0, 3)
    turned = torch.randn(7, 5).t()
    found = Dropout(0.5)(turned)
    assert_close(found[found != 0], 2 * turned[found != 0])
    assert Dropout(0.5)(torch.tensor(3.0)).item() in (0.0, 6.0)


def test_elsewhere_it_is_the_dropout_of_torch():
    assert Dropout(0.5)(torch.ones(3, 5, device="meta")).shape == (3, 5)
    found = torch.func.vmap(Dropout(0.5), randomness="different")(torch.ones(50, 20))
    assert set(found.unique().tolist()) == {0.0, 2.0}
    x = torch.ones(100)
    assert Dropout(0.5, inplace=True)(x) is x

"""What a block adds to a row, however many rows there are."""

import pytest
import torch
from torch.testing import assert_close

from regard.models.lean.joined import JoinedLinear
from regard.models.lean.layer import FEW, add_linear


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("rows", [1, FEW - 3, FEW + 5])
@pytest.mark.parametrize("tokens", [1, 3])
def test_what_is_added_is_the_sum_and_nothing_that_came_is_changed(rows, tokens, biased):
    draw = torch.Generator().manual_seed(rows)
    x, y = (torch.randn(rows, tokens, size, dtype=torch.float64, generator=draw) for size in (7, 11))
    weight, bias = (torch.randn(shape, dtype=torch.float64, generator=draw) for shape in ((7, 11), (7,)))
    linear = JoinedLinear(weight, bias if biased else None)
    kept = [one.clone() for one in (x, y, weight, bias)]
    wanted = torch.einsum("btn,mn->btm", y, weight) + x + (bias if biased else 0)
    assert_close(add_linear(x, y, linear), wanted)
    assert all(torch.equal(one, was) for one, was in zip((x, y, weight, bias), kept))
